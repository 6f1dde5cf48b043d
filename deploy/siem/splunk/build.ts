// `node deploy/siem/splunk/build.ts`: writes the Splunk app `sluice` from the tables in fields.ts, the panels, and the
// converted rules. A test compares the files with what this makes of the present sources, and evaluates each field, event
// type and search over events of every kind.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { calculated, eventTypes, sourceTypes } from './fields.ts';
import { dashboardXml } from './panels.ts';

const app = new URL('sluice/', import.meta.url);
const sigma = new URL('../sigma/', import.meta.url);
const version = '1.0.0';
const severities: Readonly<Record<string, number>> = { low: 2, medium: 3, high: 4, critical: 5 };
const sourceTypeTerm = `sourcetype IN (${sourceTypes.map((name) => `"${name}"`).join(', ')})`;

type Settings = Readonly<Record<string, string | number>>;

/** All files of the app by path. */
export function splunkFiles(): ReadonlyMap<string, string> {
  return new Map([
    ['default/app.conf', conf(appSettings)],
    ['default/props.conf', conf(props())],
    ['default/fields.conf', conf({ sluice_uid: { INDEXED: 'true' } })],
    ['default/macros.conf', conf({ sluice_index: { definition: '(index=security)', iseval: 0 } })],
    ['default/eventtypes.conf', conf(eventTypeStanzas())],
    ['default/tags.conf', conf(tagStanzas())],
    ['default/savedsearches.conf', conf(savedSearches())],
    ['default/data/ui/views/sluice.xml', dashboardXml()],
    ['default/data/ui/nav/default.xml', navigation],
    ['metadata/default.meta', metadata],
    ['README.txt', readme],
  ]);
}

const appSettings = {
  install: { is_configured: 0 },
  package: { id: 'sluice', check_for_updates: 'false' },
  launcher: {
    author: 'sluice',
    description: 'Fields of the Common Information Model, searches and a dashboard for sluice',
    version,
  },
  ui: { is_visible: 1, label: 'sluice' },
  id: { name: 'sluice', version },
};

function props(): Readonly<Record<string, Settings>> {
  const settings: Settings = {
    TRUNCATE: 0,
    KV_MODE: 'json',
    ...Object.fromEntries(
      Object.entries(calculated).map(([name, expression]) => [`EVAL-${name}`, expression]),
    ),
  };
  return Object.fromEntries(sourceTypes.map((name) => [name, settings]));
}

function eventTypeStanzas(): Readonly<Record<string, Settings>> {
  return Object.fromEntries(
    Object.entries(eventTypes).map(([name, { search }]) => [
      name,
      { search: `${sourceTypeTerm} ${search}` },
    ]),
  );
}

function tagStanzas(): Readonly<Record<string, Settings>> {
  return Object.fromEntries(
    Object.entries(eventTypes).map(([name, { tags }]) => [
      `eventtype=${name}`,
      Object.fromEntries(tags.map((tag) => [tag, 'enabled'])),
    ]),
  );
}

interface StoredRule {
  readonly title: string;
  readonly level: string;
  readonly query: string;
}

/** A rule as a search: by the time of indexing, since upstream shows some records late. */
function savedSearches(): Readonly<Record<string, Settings>> {
  return Object.fromEntries(
    storedRules().map(([name, { title, level, query }]) => [
      `sluice - ${title}`,
      {
        description: `See deploy/siem/sigma: ${name}.`,
        search: `\`sluice_index\` ${query}`.replaceAll('\n', ' '),
        disabled: 1,
        enableSched: 1,
        cron_schedule: '*/15 * * * *',
        'dispatch.earliest_time': '-7d@d',
        'dispatch.latest_time': '+1d@d',
        'dispatch.index_earliest': '-15m@m',
        'dispatch.index_latest': '@m',
        counttype: 'number of events',
        relation: 'greater than',
        quantity: 0,
        'alert.track': 1,
        'alert.severity': severities[level] ?? 3,
      },
    ]),
  );
}

function storedRules(): readonly (readonly [string, StoredRule])[] {
  const { rules } = JSON.parse(readFileSync(new URL('converted/splunk.json', sigma), 'utf8'));
  const converted = Object.entries<StoredRule>(rules).map(
    ([name, rule]) => [name, { ...rule, query: `${rule.query} | dedup sluice_uid` }] as const,
  );
  const written = readdirSync(new URL('written/', sigma))
    .toSorted()
    .map((file) => {
      const rule = JSON.parse(readFileSync(new URL(`written/${file}`, sigma), 'utf8'));
      return [file.slice(0, -5), { ...rule, query: rule.splunk }] as const;
    });
  return [...converted, ...written];
}

const navigation = `<nav search_view="search">
  <view name="sluice" default="true" />
  <view name="search" />
  <view name="reports" />
</nav>
`;

const metadata = `[]
access = read : [ * ], write : [ admin, sc_admin ]
export = system
`;

const readme = `Fields of the Common Information Model, searches and a dashboard for events of sluice. Use the sluice docs page
docs/siem/splunk.md. The macro sluice_index has the index of the events. All searches are disabled.
`;

/** The text of a .conf file. */
function conf(stanzas: Readonly<Record<string, Settings>>): string {
  return Object.entries(stanzas)
    .map(([name, settings]) => {
      const lines = Object.entries(settings).map(([key, value]) => `${key} = ${value}`);
      return [`[${name}]`, ...lines, ''].join('\n');
    })
    .join('\n');
}

if (import.meta.main) {
  for (const [path, text] of splunkFiles()) {
    const file = new URL(path, app);
    mkdirSync(dirname(file.pathname), { recursive: true });
    writeFileSync(file, text);
  }
}

// The generated part of a page about a source, sink or format, from its declaration: a few facts, its keys, and an
// example event. The page's path names the connector: sinks/kafka.md is about the sink `kafka`.

import { sinks } from '../../connectors/index.ts';
import { sources } from '../../connectors/sources/index.ts';
import { formats, formatsOf } from '../../formats/index.ts';
import type {
  FormatDefinition,
  SinkDefinition,
  SourceDefinition,
} from '../../src/contracts/definition.ts';
import type { Assurance } from '../../src/contracts/sink.ts';
import { anEvent } from './ocsf.ts';
import { blocksOf, isConfig, type Page, readExample } from './page.ts';
import { settingsTable, table, typeSchema, wholeSchema } from './settings-table.ts';

type Subject =
  | { readonly kind: 'source'; readonly definition: SourceDefinition }
  | { readonly kind: 'sink'; readonly definition: SinkDefinition }
  | { readonly kind: 'format'; readonly definition: FormatDefinition };

function subjectOf({ path }: Page): Subject {
  const [folder, file = ''] = path.split('/');
  const type = file.replace(/\.md$/, '');
  const named = <D extends { readonly type: string }>(list: readonly D[]): D => {
    const found = list.find((definition) => definition.type === type);
    if (found === undefined) throw new Error(`${path} is about nothing that is listed`);
    return found;
  };
  switch (folder) {
    case 'sources':
      return { kind: 'source', definition: named(sources) };
    case 'sinks':
      return { kind: 'sink', definition: named(sinks) };
    case 'formats':
      return { kind: 'format', definition: named(formats) };
    default:
      throw new Error(`${path} is in no folder of connectors`);
  }
}

const assurances: Readonly<Record<Assurance, string>> = {
  once: '**each event once**',
  answered:
    '**at least once**: the receiver has acknowledged the event; a repeat has the same `uid`',
  settled:
    '**at least once**: the receiver has closed the connection after sluice had, or, if the receiver never closes, the connection stayed healthy for `resend_window`; a repeat has the same `uid`',
  none: '**best effort**: sluice cannot know whether an event has arrived',
};

/** Links to the pages of all sources, sinks and formats. */
export function connectorPages(): string {
  const lists = [
    ['Sources', 'sources', sources],
    ['Sinks', 'sinks', sinks],
    ['Formats', 'formats', formats],
  ] as const;
  return lists
    .map(([title, folder, list]) => {
      const links = list.map(({ type }) => `[\`${type}\`](${folder}/${type}.md)`);
      return `- ${title}: ${links.join(', ')}`;
    })
    .join('\n');
}

/** The facts at the top of a page. */
export function factsOf(page: Page): string {
  const subject = subjectOf(page);
  const { summary } = subject.definition;
  const rows =
    subject.kind === 'source'
      ? sourceFacts(subject.definition)
      : subject.kind === 'sink'
        ? sinkFacts(subject.definition, page)
        : formatFacts(subject.definition);
  return `${summary}\n\n${table(['', ''], rows)}`;
}

function sourceFacts({ apis, list, collection }: SourceDefinition): readonly (readonly string[])[] {
  const read =
    list === undefined
      ? 'changes between readings of a collection'
      : 'the records of a list, each once';
  const gives =
    (list ?? collection) ? read : 'events that upstream sends by itself, each delivery once';
  return [
    ['reads', `the ${apis.join(' or the ')} API`],
    ['events', gives],
  ];
}

function sinkFacts(sink: SinkDefinition, page: Page): readonly (readonly string[])[] {
  const { type, batch } = sink;
  const [example] = blocksOf(page).filter(isConfig);
  const configured = Object.values(readExample(example?.text ?? '', page.path).sinks);
  const settings = configured.find(({ definition }) => definition.type === type)?.settings;
  if (settings === undefined) throw new Error(`the first config of ${page.path} has no such sink`);
  const links = formatsOf(sink).map((name) => `[\`${name}\`](../formats/${name}.md)`);
  return [
    ['guarantee of the example below', assurances[sink.assurance(settings)]],
    sink.takes === 'pages'
      ? ['accepts', 'whole responses of upstream; a route to this sink may not filter or redact']
      : ['formats', `${links.join(', ')}${links.length > 1 ? '; the first unless set' : ''}`],
    ...(batch === undefined
      ? []
      : [
          [
            'one request',
            `at most ${batch.events} events or ${batch.bytes / 1024} KiB, collected for at most ${batch.waitMs} ms (setting: \`batch\`)`,
          ],
        ]),
  ];
}

function formatFacts({ type }: FormatDefinition): readonly (readonly string[])[] {
  const carriers = sinks.filter((sink) => sink.takes !== 'pages' && formatsOf(sink).includes(type));
  return [
    [
      'carried by',
      carriers.map((sink) => `[\`${sink.type}\`](../sinks/${sink.type}.md)`).join(', '),
    ],
  ];
}

/** The keys of a page's subject that are its own. */
export function settingsOf(page: Page): string {
  const { kind, definition } = subjectOf(page);
  const own = new Set(Object.keys(definition.fields));
  if (kind !== 'format') return settingsTable(typeSchema(`${kind}s`, definition.type), own);
  return settingsTable(wholeSchema.$defs?.[`format_${definition.type}`] ?? {}, own);
}

/** What keeps samples the same on every machine, and readable. */
const sampleSettings: Readonly<Record<string, object>> = {
  syslog: { hostname: 'export-1', message: 'cef' },
  gelf: { host: 'export-1' },
  otel: { encoding: 'json', body: 'json' },
};

/** One event as the page's format writes it. */
export function sampleOf(page: Page): string {
  const { kind, definition } = subjectOf(page);
  if (kind !== 'format') throw new Error(`${page.path} is about no format`);
  const { type } = definition;
  const parsed: object = Object.fromEntries(
    Object.entries(definition.fields).map(([name, field]) => {
      const given = Object.entries(sampleSettings[type] ?? {}).find(([key]) => key === name)?.[1];
      return [
        name,
        'parse' in field && typeof field.parse === 'function' ? field.parse(given) : given,
      ];
    }),
  );
  const text = Buffer.from(definition.make({ ...parsed, type }).encode(anEvent())).toString('utf8');
  const json = text.startsWith('{') ? JSON.stringify(JSON.parse(text), null, 2) : text;
  return `\`\`\`${text.startsWith('{') ? 'json' : 'text'}\n${json}\n\`\`\``;
}

// The Splunk app: its files are those of the present rules and tables, its references resolve, and its fields, event types
// and searches are evaluated over events of every kind. splunk-appinspect checks the package where it is installed; it finds
// no wrong field or search.

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { splunkFiles } from '../../deploy/siem/splunk/build.ts';
import { eventTypes, sourceTypes } from '../../deploy/siem/splunk/fields.ts';
import type { Event } from '../../src/contracts/event.ts';
import { tempDir } from '../support/temp.ts';
import { everyKind, logMappings } from './every-kind.ts';
import { fewerEvents, type JudgedEvent, sigmaJson, sigmaRules } from './planted-events.ts';
import { evalOf, type Fields } from './spl-eval.ts';
import { runSpl } from './spl-pipeline.ts';
import { jsonFields, searchOf } from './spl-search.ts';

const app = new URL('../../deploy/siem/splunk/sluice/', import.meta.url);
const confs = ['app', 'props', 'fields', 'macros', 'eventtypes', 'tags', 'savedsearches'];
const appinspect = process.env.SLUICE_APPINSPECT ?? 'splunk-appinspect';

test('the files are those of the present rules and tables', () => {
  const files = splunkFiles();
  const stored = readdirSync(app, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(fileURLToPath(app).length));

  expect(stored.toSorted()).toEqual([...files.keys()].toSorted());
  for (const [name, text] of files)
    expect(readFileSync(new URL(name, app), 'utf8'), 'run deploy/siem/splunk/build.ts').toBe(text);
});

test.each(confs)('%s.conf has each stanza and each key once', (name) => {
  const stanzas = conf(name);

  expect(stanzas.size).toBeGreaterThan(0);
});

test('each tag is of an event type, and each event type has tags', () => {
  expect([...conf('tags').keys()].map((name) => name.replace('eventtype=', ''))).toEqual([
    ...conf('eventtypes').keys(),
  ]);
});

test('both source types have the same fields', () => {
  const props = conf('props');

  expect([...props.keys()]).toEqual([...sourceTypes]);
  expect(props.get(sourceTypes[0])).toEqual(props.get(sourceTypes[1]));
});

test('each search is disabled, looks back by the time of indexing, and uses the macro of the index', () => {
  const searches = conf('savedsearches');

  expect(searches.size).toBe(sigmaRules.length + 2);
  for (const [name, settings] of searches) {
    expect(settings.get('disabled'), name).toBe('1');
    expect(settings.get('dispatch.index_earliest'), name).toMatch(/^-\d+m@m$/);
    expect(settings.get('search'), name).toMatch(/^`sluice_index` sourcetype IN/);
  }
  expect([...conf('macros').keys()]).toEqual(['sluice_index']);
});

test('the page has the mappings that the tests use', () => {
  const page = readFileSync(new URL('../../docs/siem/splunk.md', import.meta.url), 'utf8');
  const { sources } = parse(/```yaml\n(.*?)```/s.exec(page)?.[1] ?? '');

  expect(sources.flows.mapping).toEqual(logMappings.flow);
  expect(sources.ids.mapping).toEqual(logMappings.ids);
});

describe('over events of every kind', () => {
  let events: readonly Event[];
  let shown: readonly Fields[];
  const extracted = new Set<string>();

  beforeAll(async () => {
    events = await everyKind();
    for (const { ocsf } of events) for (const name of jsonFields(ocsf).keys()) extracted.add(name);
    shown = events.map(shownFields);
  });

  test('each calculated field reads fields of our events, and has a value in one', () => {
    for (const [key, expression] of conf('props').get('ocsf:sluice') ?? []) {
      if (!key.startsWith('EVAL-')) continue;
      const read: string[] = [];
      evalOf(expression, (field) => read.push(field));
      // OCSF has them; the records of the tests lack them.
      const rare = /^((src|dst)_endpoint\.hostname|metadata\.product\.vendor_name)$/;
      for (const field of read)
        if (!rare.test(field)) expect([...extracted], `${key} reads ${field}`).toContain(field);
      const name = key.slice('EVAL-'.length);
      expect(
        shown.some((fields) => fields.has(name)),
        key,
      ).toBe(true);
    }
  });

  test.each(Object.entries(eventTypes))('%s has its fields for the data model', (name, type) => {
    const found = shown.filter((fields) => fields.get('eventtype')?.includes(name));

    expect(found.length).toBeGreaterThan(0);
    for (const field of type.always)
      for (const fields of found)
        expect(fields.get(field)?.join(), `${field} of ${fields.get('message')}`).toMatch(/\S/);
    for (const field of type.often)
      expect(
        found.some((fields) => fields.has(field)),
        field,
      ).toBe(true);
  });

  test.each([
    ['sluice_authentication', 'action', ['failure', 'success']],
    ['sluice_change', 'action', ['created', 'deleted', 'modified', 'other']],
    ['sluice_network_traffic', 'action', ['allowed', 'blocked']],
    ['sluice_intrusion', 'action', ['allowed', 'blocked']],
    ['sluice_alert', 'severity', ['high', 'medium']],
    ['sluice_ticket', 'status', ['closed', 'open']],
  ])('%s: %s has the words of the data model', (name, field, words) => {
    const found = shown.filter((fields) => fields.get('eventtype')?.includes(name));

    expect([...new Set(found.flatMap((fields) => fields.get(field) ?? []))].toSorted()).toEqual(
      words,
    );
  });

  test('each panel finds events, and each of its fields has values', () => {
    const xml = readFileSync(new URL('default/data/ui/views/sluice.xml', app), 'utf8');
    const queries = [...xml.matchAll(/<query>(.*)<\/query>/g)].map(([, query = '']) => query);

    expect(queries.length).toBe(8);
    for (const query of queries) {
      const [search = '', dedup, last = ''] = query.replace('`sluice_index`', '').split(' | ');
      const found = shown.filter(searchOf(search));
      expect(found.length, query).toBeGreaterThan(0);
      expect(dedup).toBe('dedup sluice_uid');
      const field = last.split(' ').at(-1) ?? '';
      expect(
        found.some((fields) => fields.has(field)),
        query,
      ).toBe(true);
    }
  });
});

describe('the searches', () => {
  let events: readonly JudgedEvent[];
  /** What a search sees of each event with the app, and without it. */
  let shown: readonly Fields[];
  let plain: readonly Fields[];

  beforeAll(async () => {
    events = await fewerEvents();
    shown = events.map(({ event }) => shownFields(event));
    plain = events.map(({ event }) => withSourceType(jsonFields(event.ocsf)));
  });

  test.each(sigmaRules)('%s finds its attacks and nothing else', (name) => {
    const { query, title } = sigmaJson('converted/splunk.json').rules[name];
    const stored = conf('savedsearches').get(`sluice - ${title}`)?.get('search');
    const matches = searchOf(query);

    const uidsOf = (fields: readonly Fields[]) =>
      events.filter((_, at) => matches(fields[at] ?? new Map())).map(({ event }) => event.uid);
    const planted = events.filter(({ rule }) => rule === name).map(({ event }) => event.uid);

    expect(stored).toBe(`\`sluice_index\` ${query} | dedup sluice_uid`);
    expect(planted.length).toBeGreaterThan(0);
    expect(uidsOf(shown)).toEqual(planted);
    expect(uidsOf(plain)).toEqual(planted);
  });

  test.each([
    ['sluice_agent_without_approval', ['run']],
    ['sluice_logins_failed_then_success', ['user.name', 'src_endpoint.ip']],
  ])('%s finds its groups and nothing else', (name, groupFields) => {
    const { splunk, title } = sigmaJson(`written/${name}.json`);
    const stored = conf('savedsearches').get(`sluice - ${title}`)?.get('search') ?? '';

    const groups = runSpl(stored.replace('`sluice_index`', ''), shown).map((fields) =>
      groupFields.map((field) => fields.get(field)?.[0]).join(' '),
    );
    const planted = events.filter(({ rule }) => rule === name).map(({ group }) => group);

    expect(stored.replace('`sluice_index` ', '')).toBe(splunk.replaceAll('\n', ' '));
    expect(planted.length).toBeGreaterThan(0);
    expect([...new Set(groups)].toSorted()).toEqual([...new Set(planted)].toSorted());
  });
});

const inspectNote = hasAppinspect()
  ? ''
  : ' (skipped: no splunk-appinspect; name it with SLUICE_APPINSPECT)';

test.skipIf(!hasAppinspect())(
  `splunk-appinspect finds nothing${inspectNote}`,
  { timeout: 300_000 },
  () => {
    const dir = tempDir();
    const packed = join(dir, 'sluice.tgz');
    const out = join(dir, 'out.json');
    execFileSync('tar', ['-C', fileURLToPath(new URL('..', app)), '-czf', packed, 'sluice']);
    execFileSync(
      appinspect,
      ['inspect', packed, '--mode', 'test', '--data-format', 'json', '--output-file', out],
      { stdio: 'ignore' },
    );

    const { summary } = JSON.parse(readFileSync(out, 'utf8'));
    expect(summary).toMatchObject({ error: 0, failure: 0, warning: 0, future_failure: 0 });
    expect(summary.success).toBeGreaterThan(50);
  },
);

function hasAppinspect(): boolean {
  try {
    execFileSync(appinspect, ['--help'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Stanzas of a .conf file of the app; throws on a line that is no stanza or setting, and on a repeated one. */
function conf(name: string): Map<string, Map<string, string>> {
  const stanzas = new Map<string, Map<string, string>>();
  let at: Map<string, string> | undefined;
  for (const line of readFileSync(new URL(`default/${name}.conf`, app), 'utf8').split('\n')) {
    if (line === '') continue;
    const stanza = /^\[(.+)\]$/.exec(line)?.[1];
    const [, key, value] = /^(\S+) = (.+)$/.exec(line) ?? [];
    if (stanza !== undefined) {
      if (stanzas.has(stanza)) throw new Error(`${name}.conf: [${stanza}] is there twice`);
      at = new Map();
      stanzas.set(stanza, at);
    } else if (key !== undefined && value !== undefined && at !== undefined && !at.has(key)) {
      at.set(key, value);
    } else throw new Error(`${name}.conf: cannot read ${line}`);
  }
  return stanzas;
}

function withSourceType(fields: Map<string, string[]>): Map<string, string[]> {
  const time = Number(fields.get('time')?.[0]) / 1_000;
  return fields.set('sourcetype', ['ocsf:sluice']).set('_time', [String(time)]);
}

const calculations = [...(conf('props').get('ocsf:sluice') ?? [])]
  .filter(([key]) => key.startsWith('EVAL-'))
  .map(([key, expression]) => [key.slice('EVAL-'.length), evalOf(expression)] as const);
const typed = [...conf('eventtypes')].map(
  ([name, settings]) => [name, searchOf(settings.get('search') ?? '')] as const,
);

/** Fields as a search sees them: extracted, calculated from these at the same time, then the event types. */
function shownFields({ ocsf }: Event): Fields {
  const fields = withSourceType(jsonFields(ocsf));
  const values = calculations.map(([name, calculate]) => [name, calculate(fields)] as const);
  for (const [name, value] of values) {
    if (Array.isArray(value) && value.length > 0) fields.set(name, [...value]);
    else fields.delete(name);
  }
  const types = typed.filter(([, matches]) => matches(fields)).map(([name]) => name);
  return fields.set('eventtype', types);
}

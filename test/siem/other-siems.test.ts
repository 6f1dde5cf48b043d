// The content for QRadar, Graylog, Google SecOps and Datadog, run over what sluice writes for these receivers: each detection
// finds its planted attacks and nothing else, and each field that the content names is in an event. The products themselves do
// not run here: the languages are read by small readers (rule-languages.ts).

import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { datadogForm } from '../../connectors/sinks/datadog/log.ts';
import { udmForm } from '../../connectors/sinks/google-secops/udm.ts';
import { builtFiles } from '../../deploy/siem/build.ts';
import { makeFormat } from '../formats/make-format.ts';
import { fewerEvents, type JudgedEvent, sigmaRules } from './planted-events.ts';
import {
  aqlCondition,
  datadogQuery,
  type FieldOf,
  graylogRule,
  yaraRule,
} from './rule-languages.ts';

const siemDir = new URL('../../deploy/siem/', import.meta.url);
const fileText = (path: string) => readFileSync(new URL(path, siemDir), 'utf8');
const fileJson = (path: string) => JSON.parse(fileText(path));

let events: readonly JudgedEvent[];
beforeAll(async () => {
  events = await fewerEvents();
});

/** A test of one detection, and the names of the fields that it reads. */
interface Detection {
  readonly names: readonly string[];
  readonly finds: (of: FieldOf) => boolean;
}

/** The fields of each event as the receiver sees them, read once. */
const seen = new Map<string, readonly FieldOf[]>();

function fieldsOf(receiver: string, read: (event: JudgedEvent) => FieldOf): readonly FieldOf[] {
  const known = seen.get(receiver) ?? events.map(read);
  seen.set(receiver, known);
  return known;
}

/** The detection finds exactly its attacks, and each of its fields is in an event. */
function expectExact(name: string, { names, finds }: Detection, fields: readonly FieldOf[]): void {
  const found = events
    .filter((_, at) => finds(fields[at] ?? (() => [])))
    .map(({ event }) => event.uid);
  const planted = events.filter(({ rule }) => rule === name).map(({ event }) => event.uid);

  expect(planted.length).toBeGreaterThan(0);
  expect(found).toEqual(planted);
  expectNames(names, fields);
}

function expectNames(names: readonly string[], fields: readonly FieldOf[]): void {
  const missing = new Set(names);
  for (const of of fields)
    for (const name of missing) if (of(name).length > 0) missing.delete(name);
  expect([...missing]).toEqual([]);
}

/** All values at a path of names joined by dots; members of lists count each. */
function valuesAt(value: unknown, path: readonly string[]): readonly unknown[] {
  if (Array.isArray(value)) return value.flatMap((one) => valuesAt(one, path));
  const [name, ...below] = path;
  if (name === undefined) return value === undefined || value === null ? [] : [value];
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return [];
  return valuesAt((value as Record<string, unknown>)[name], below);
}

test('the files are those of the present rules', () => {
  for (const [path, text] of builtFiles()) {
    const hint = `${path}: run deploy/siem/build.ts`;
    if (path.endsWith('.json')) expect(fileJson(path), hint).toEqual(JSON.parse(text));
    else expect(fileText(path), hint).toBe(text);
  }
});

test('no exclusion counts a list that was cut as a match', () => {
  const rules = builtFiles();
  const [graylog, secops] = [
    rules.get('graylog/pipeline-rules.txt') ?? '',
    rules.get('secops/rules/sluice_webhook_redirected.yaral') ?? '',
  ];
  const redirected = /rule "sluice_webhook_redirected"[\s\S]*?\nend\n/.exec(graylog)?.[0] ?? '';
  const monitor = fileJson('datadog/monitors.json').find(({ tags }: { tags: readonly string[] }) =>
    tags.includes('rule:sluice_webhook_redirected'),
  ).query;

  for (const text of [redirected, secops, monitor]) {
    const own = text.indexOf('hooks');
    expect(own).toBeGreaterThan(0);
    expect(text.slice(0, own)).toContain('…');
    expect(text.slice(own)).not.toContain('…');
  }
});

describe('Graylog', () => {
  const gelf = makeFormat('gelf');
  // Graylog removes the underscore, and renames short_message.
  const read = ({ event }: JudgedEvent): FieldOf => {
    const message = JSON.parse(String(gelf.encode(event)));
    return (name) =>
      [message[`_${name}`] ?? message[name === 'message' ? 'short_message' : name] ?? []].flat();
  };
  const pack = fileJson('graylog/content-pack.json');
  const entities = (type: string) => pack.entities.filter((one: Entity) => one.type.name === type);
  interface Entity {
    readonly id: string;
    readonly type: { readonly name: string };
    // biome-ignore lint/suspicious/noExplicitAny: each type of entity has data of its own
    readonly data: any;
  }
  const sourceOf = (name: string): string =>
    entities('pipeline_rule').find(({ data }: Entity) => data.title['@value'] === name).data.source[
      '@value'
    ];

  test.each(sigmaRules)('the pipeline rule %s finds its attacks and nothing else', (name) => {
    expectExact(name, graylogRule(sourceOf(name)), fieldsOf('graylog', read));
  });

  test('the entities refer to each other, and each alert reads a field that a rule sets', () => {
    const [stream] = entities('stream');
    const [pipeline] = entities('pipeline');
    const ids = pack.entities.map(({ id }: Entity) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(pipeline.data.connected_streams).toEqual([{ '@type': 'string', '@value': stream.id }]);
    expect(
      [...pipeline.data.source['@value'].matchAll(/rule "(\w+)";/g)].map(([, name]) => name),
    ).toEqual(sigmaRules);

    const set = sigmaRules.map((name) => graylogRule(sourceOf(name)).field);
    const queries = entities('event_definition').map(
      ({ data }: { data: { config: { streams: unknown; query: never } } }) => {
        expect(data.config.streams).toEqual([stream.id]);
        return data.config.query['@value'];
      },
    );
    expect(queries.slice(0, -1)).toEqual(set.map((field) => `_exists_:${field}`));
  });

  test('the stream and the alert of failed logins read fields of events', () => {
    const fields = fieldsOf('graylog', read);
    const [stream] = entities('stream');
    const rules = stream.data.stream_rules.map(
      ({ field }: { field: { '@value': string } }) => field['@value'],
    );
    for (const of of fields) for (const name of rules) expect(of(name).length, name).toBe(1);

    const { config } = entities('event_definition').at(-1).data;
    expect(config.query['@value']).toBe('class_uid:3002 AND status:Failure');
    const groups = new Map<string, number>();
    for (const of of fields)
      if (of('class_uid')[0] === 3002 && of('status')[0] === 'Failure') {
        const key = config.group_by.map((name: string) => of(name)[0]).join(' ');
        groups.set(key, (groups.get(key) ?? 0) + 1);
      }
    const attacks = events.flatMap(({ rule, group }) =>
      rule === 'sluice_logins_failed_then_success' ? [group] : [],
    );
    for (const attack of attacks) expect(groups.get(attack ?? '')).toBeGreaterThanOrEqual(10);
  });

  test('a change that hides behind many values is found, and no value forges an entry', () => {
    const attack = events.find(({ rule }) => rule === 'sluice_dlp_rule_weakened');
    if (attack === undefined) throw new Error('there is no attack');
    const withAfter = (after: object): JudgedEvent => {
      const { ocsf } = attack.event;
      const [resource] = ocsf.resources ?? [];
      const resources = [{ ...resource, data: { before: {}, after } }] as typeof ocsf.resources;
      return {
        ...attack,
        event: { ...attack.event, ocsf: { ...ocsf, ...(resources && { resources }) } },
      };
    };
    const { finds } = graylogRule(sourceOf('sluice_dlp_rule_weakened'));
    const many = Object.fromEntries(
      Array.from({ length: 60 }, (_, at) => [`f${at}`, 'x'.repeat(1_000)]),
    );

    expect(finds(read(withAfter({ ...many, enabled: false })))).toBe(true);
    expect(finds(read(withAfter({ enabled: false })))).toBe(true);
    expect(finds(read(withAfter({ is_enabled: false, note: 'a\nenabled=false\nb' })))).toBe(false);
  });
});

describe('Google SecOps', () => {
  const read = ({ event }: JudgedEvent): FieldOf => {
    const { udm } = JSON.parse(String(udmForm.encode(event)));
    return (name) => {
      const key = /^additional\.fields\["(\w+)"\]$/.exec(name)?.[1];
      const path = key === undefined ? name.split('.').map(camel) : ['additional', key];
      return valuesAt(udm, path);
    };
  };
  const camel = (name: string) =>
    name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

  test.each(sigmaRules)('the rule %s finds its attacks and nothing else', (name) => {
    expectExact(name, yaraRule(fileText(`secops/rules/${name}.yaral`)), fieldsOf('secops', read));
  });

  test.each(['sluice_logins_failed_then_success', 'sluice_agent_without_approval'])(
    'each field and word of %s is in an event of its attack',
    (name) => {
      const text = fileText(`secops/rules/${name}.yaral`);
      const fields = fieldsOf('secops', read).filter((_, at) => events[at]?.rule === name);
      const all = fieldsOf('secops', read);
      const reads = [
        ...text.matchAll(/\$(?!e\b)\w+\.([\w.]+(?:\["\w+"\])?) = (?:"([^"]*)"|\$\w+)/g),
      ];

      expect(reads.length).toBeGreaterThan(3);
      for (const [, field = '', word] of reads) {
        expectNames([field.replace('.seconds', '')], fields);
        if (word !== undefined)
          expect(
            all.some((of) => of(field).includes(word)),
            `${field} ${word}`,
          ).toBe(true);
      }
    },
  );
});

describe('Datadog', () => {
  const form = datadogForm({ ddsource: 'sluice' }, makeFormat('json'));
  const pipeline = fileJson('datadog/pipeline.json');
  /** The log after the pipeline. */
  const read = ({ event }: JudgedEvent): FieldOf => {
    const log = JSON.parse(String(form.encode(event)));
    const made = new Map<string, readonly unknown[]>();
    for (const { type, source, sources, target, grok } of pipeline.processors) {
      const [, name = '', filter] =
        /^\w+ %\{data:([\w.]+)(?::(\w+))?\}$/.exec(grok?.match_rules ?? '') ?? [];
      if (type === 'grok-parser')
        made.set(
          name,
          valuesAt(log, source.split('.')).map((code) =>
            filter === 'lowercase' ? String(code).toLowerCase() : code,
          ),
        );
      else
        made.set(
          target,
          sources.flatMap((one: string) => valuesAt(log, one.split('.'))),
        );
    }
    return (name) => made.get(name) ?? valuesAt(log, name.split('.'));
  };
  interface Monitor {
    readonly query: string;
    readonly tags: readonly string[];
    readonly options: { readonly thresholds: { readonly critical: number } };
  }
  const monitors: readonly Monitor[] = fileJson('datadog/monitors.json');
  const partsOf = ({ query }: Monitor) => {
    const form =
      /^logs\("((?:[^"\\]|\\.)*)"\)\.index\("\*"\)\.rollup\("count"\)\.by\("([^"]*)"\)\.last\("(\d+[mh])"\) >= (\d+)$/;
    const [, text = '', by = '', , limit] = form.exec(query) ?? [];
    return {
      text: text.replace(/\\(.)/g, '$1'),
      by: by.split(',').map((name) => name.slice(1)),
      limit: Number(limit),
    };
  };

  test.each(sigmaRules)('the monitor of %s finds its attacks and nothing else', (name) => {
    const monitor = monitors.find(({ tags }) => tags.includes(`rule:${name}`));
    if (monitor === undefined) throw new Error('there is no monitor');
    const { text, by, limit } = partsOf(monitor);

    expectExact(name, datadogQuery(text), fieldsOf('datadog', read));
    expectNames(by, fieldsOf('datadog', read));
    expect(limit).toBe(monitor.options.thresholds.critical);
  });

  test('each facet, group and source of the pipeline is an attribute of events', () => {
    const paths = fileJson('datadog/facets.json').map(({ path }: { path: string }) =>
      path.slice(1),
    );
    const logins = monitors.flatMap((one) => partsOf(one).by);
    // The audit trail of the sandbox has no destination address.
    expectNames([...paths, ...logins], fieldsOf('datadog', read));
    const facets = new Set([...paths, 'ocsf.class_uid', 'ocsf.user.name']);
    const used = monitors.flatMap((one) => [...datadogNames(partsOf(one).text)]);
    for (const name of used) expect(facets, name).toContain(name);
  });

  const datadogNames = (text: string) =>
    [...text.matchAll(/@([\w.]+):/g)].map(([, name = '']) => name);
});

describe.each(['leef', 'cef'] as const)('QRadar by %s', (type) => {
  const format = makeFormat(type);
  interface Expression {
    readonly format: string;
    readonly key?: string;
    readonly regex: string;
  }
  interface Property {
    readonly name: string;
    readonly expressions: readonly Expression[];
  }
  const properties: readonly Property[] = fileJson('qradar/custom-properties.json');
  const forms = new Map(
    properties.map(({ name, expressions }) => [
      name,
      expressions
        .filter((one) => one.format === type || one.format === 'any')
        .map(({ regex }) => new RegExp(regex)),
    ]),
  );
  const read = ({ event }: JudgedEvent): FieldOf => {
    const line = `<134>Nov 26 10:00:00 sluice-1 ${format.encode(event)}`;
    return (name) => {
      for (const regex of forms.get(name) ?? []) {
        const [, value] = regex.exec(line) ?? [];
        if (value !== undefined) return [type === 'cef' ? value.replace(/\\(.)/g, '$1') : value];
      }
      return [];
    };
  };
  const rules: readonly { readonly name: string; readonly condition: string }[] =
    fileJson('qradar/rules.json');

  test.each(sigmaRules)('the condition of %s finds its attacks and nothing else', (name) => {
    const condition = rules.find((one) => one.name === name)?.condition ?? '';

    expectExact(name, aqlCondition(condition), fieldsOf(type, read));
    expect(fileText('qradar/searches.aql')).toContain(`WHERE ${condition}\nLAST 24 HOURS\n`);
  });

  test('each custom property has the value that its key has in the line', () => {
    const fields = fieldsOf(type, read);
    const long = format.encode(events[0]?.event as never);
    expect(String(long)).not.toContain('sluiceTruncated');
    expectNames(
      properties.map(({ name }) => name).filter((name) => name !== 'sluice Truncated'),
      fields,
    );
    for (const [at, of] of fields.entries())
      expect(of('sluice Uid')).toEqual([events[at]?.event.uid]);
  });

  test('the log source extension is well formed, and finds QRadar’s own properties', () => {
    const xml = fileText('qradar/log-source-extension.xml');
    const patterns = new Map(
      [...xml.matchAll(/<pattern id="(\w+)" xmlns=""><!\[CDATA\[(.*?)\]\]><\/pattern>/g)].map(
        ([, id, regex = '']) => [id, new RegExp(regex)],
      ),
    );
    const matchers = [
      ...xml.matchAll(
        /<matcher field="(\w+)" order="(\d)" pattern-id="(\w+)" capture-group="1"\/>/g,
      ),
    ];
    expect(matchers.length).toBe(patterns.size);
    const known =
      'EventName EventCategory SourceIp SourcePort SourceMAC DestinationIp DestinationPort DestinationMAC Protocol UserName'.split(
        ' ',
      );
    expect(new Set(matchers.map(([, field]) => field))).toEqual(new Set(known));

    const attack = events.find(({ rule }) => rule === 'sluice_admin_role_raised')?.event;
    const line = String(format.encode(attack as never));
    const value = (field: string) =>
      patterns.get(`${field}_${type.toUpperCase()}`)?.exec(line)?.[1];
    expect([
      value('EventName'),
      value('EventCategory'),
      value('SourceIp'),
      value('SourcePort'),
      value('UserName'),
    ]).toEqual([
      'admin.role_changed',
      'API Activity',
      attack?.ocsf.src_endpoint?.ip,
      String(attack?.ocsf.src_endpoint?.port),
      attack?.ocsf.actor?.user?.name,
    ]);
  });
});

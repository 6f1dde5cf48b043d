// Every event that normalising makes must be valid against OCSF 1.8.0. These tests hold the whole of the sample records
// and arbitrary JSON under arbitrary mappings against the official validator, and the tables of classes and
// objects against the official schema.

import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Json } from '../../src/contracts/json.ts';
import { setBySluice } from '../../src/normalise/mapping.ts';
import { compileNormaliser, type Mapping, mappingFlaws } from '../../src/normalise/normalise.ts';
import {
  type Attribute,
  classNames,
  classOf,
  objectOf,
  type Shape,
} from '../../src/normalise/schema.ts';
import { sampleMappings } from '../support/sample-mappings.ts';
import {
  aContext,
  aUid,
  type CompactAttribute,
  type CompactItem,
  type CompactSchema,
  hasShared,
  loadCheck,
  loadSamples,
  loadSchema,
  sampleNames,
  sharedNote,
  type Verdict,
} from './ocsf.ts';

const time = ['timestamp', 'time', 'created_at', 'eventTime', 'ts'];

describe.skipIf(!hasShared)(`normalised events against the official validator${sharedNote}`, () => {
  let check: (event: unknown) => Verdict;

  beforeAll(async () => {
    check = await loadCheck();
  });

  for (const name of sampleNames) {
    it(`${name} samples are valid as audit events, as logs and as mapped logs`, () => {
      const samples = loadSamples(name);
      const normalisers = [
        { kind: 'audit', normalise: compileNormaliser('audit', { time, id: 'id' }) },
        { kind: 'log', normalise: compileNormaliser('log', { time, id: 'id' }) },
        {
          kind: 'log',
          normalise: compileNormaliser('log', { time, id: null, mapping: sampleMappings[name] }),
        },
      ] as const;

      const complaints = normalisers.flatMap(({ kind, normalise }) =>
        samples.flatMap((record) => {
          const event = normalise(record, aUid, aContext(kind));
          const { errors, warnings } = check(event);
          return [...errors, ...warnings];
        }),
      );

      expect(samples.length).toBeGreaterThan(0);
      expect(complaints).toEqual([]);
    });

    it(`${name} samples are mostly placed in the class that they are mapped to`, () => {
      const normalise = compileNormaliser('log', { time, id: 'id', mapping: sampleMappings[name] });

      const placed = loadSamples(name).filter(
        (record) => normalise(record, aUid, aContext('log')).class_uid !== 0,
      );

      expect(mappingFlaws(sampleMappings[name])).toEqual([]);
      expect(placed.length).toBeGreaterThan(20);
    });
  }

  it('audit samples become API Activity, Entity Management or Authentication, hardly ever a Base Event', () => {
    const normalise = compileNormaliser('audit', { time, id: 'id' });

    const samples = loadSamples('audit');
    const classes = samples.map((record) => normalise(record, aUid, aContext('audit')).class_uid);

    const bases = classes.filter((uid) => uid === 0).length;
    expect([...new Set(classes)].sort()).toEqual(expect.arrayContaining([3002, 3004, 6003]));
    expect(bases / samples.length).toBeLessThan(0.02);
  });

  it('any JSON is valid under any kind', () => {
    const kinds = (['audit', 'log', 'drift', 'condition'] as const).map((kind) => ({
      kind,
      normalise: compileNormaliser(kind, { time, id: 'id' }),
    }));

    fc.assert(
      fc.property(anyRecord(), (record) => {
        for (const { kind, normalise } of kinds) {
          expect(check(normalise(record, aUid, aContext(kind)))).toEqual({
            errors: [],
            warnings: [],
          });
        }
      }),
      { numRuns: 800 },
    );
  });

  it('any record is valid under any mapping', () => {
    fc.assert(
      fc.property(anyMapping(), fc.array(anyRecord(), { maxLength: 6 }), (mapping, records) => {
        const normalise = compileNormaliser('log', { time, id: 'id', mapping });
        for (const record of records) {
          expect(check(normalise(record, aUid, aContext('log')))).toEqual({
            errors: [],
            warnings: [],
          });
        }
      }),
      { numRuns: 800, examples: [[listedEnum, [{ threat: 'EICAR' }]]] },
    );
  });
});

/** An object that needs a list of an enum's members, of which nothing is known. */
const listedEnum: Mapping = { class: 'detection_finding', fields: { 'malware.name': 'threat' } };

/** Values that attributes take and values that they nearly take. */
function anyValue(): fc.Arbitrary<Json> {
  return fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom<Json>(...likely) },
    fc.ipV4(),
    fc.ipV6(),
    fc.emailAddress(),
    fc.integer({ min: -5, max: 70_000 }),
    fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
    fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json>,
  );
}

const likely: readonly Json[] = [
  'Other',
  'other',
  'Unknown',
  'success',
  'failed',
  'HIGH',
  'sev1',
  'P2',
  'login',
  'policy.update',
  'agent',
  'Policy',
  'GET',
  'PROPFIND',
  '',
  ' ',
  '99',
  '0',
  '443',
  99,
  0,
  1,
  2 ** 53,
  1.5,
  1e300,
  true,
  false,
  null,
  [],
  {},
  ['10.0.0.1', 'x'],
  [{ id: 1 }],
  { id: 'x', name: 'y', type: 'Other' },
  '10.0.0.1',
  '::1',
  'aa:bb:cc:dd:ee:ff',
  '2022-02-23T19:23:17.563183+0100',
];

const keys = [
  'id',
  'time',
  'timestamp',
  'action',
  'actor',
  'user',
  'agent',
  'user_id',
  'email',
  'name',
  'type',
  'ip',
  'src',
  'port',
  'mac',
  'hostname',
  'target',
  'resource',
  'policy_id',
  'status',
  'outcome',
  'success',
  'error',
  'errorCode',
  'statusCode',
  'reason',
  'severity',
  'severity_id',
  'priority',
  'level',
  'risk',
  'message',
  'request',
  'http',
  'method',
  'url',
  'session',
  'trace_id',
  'before',
  'after',
  'changes',
  'company_id',
  'event',
  'log',
  'service',
  'condition',
  'source',
  'change',
  'entity_kind',
  'entity_id',
  'observed_at',
  '__proto__',
  'constructor',
  'toString',
  'actor.email',
  'a',
  'b',
];

function anyRecord(): fc.Arbitrary<Json> {
  const inner = fc.dictionary(fc.constantFrom(...keys), anyValue(), {
    maxKeys: 6,
    noNullPrototype: true,
  });
  const outer = fc.dictionary(fc.constantFrom(...keys), fc.oneof(anyValue(), inner), {
    maxKeys: 14,
    noNullPrototype: true,
  });
  return fc.oneof(
    { weight: 9, arbitrary: outer },
    fc.jsonValue() as fc.Arbitrary<Json>,
  ) as fc.Arbitrary<Json>;
}

function anyMapping(): fc.Arbitrary<Mapping> {
  return fc.constantFrom(...classNames).chain((name) => {
    const paths = pathsOf(classOf(name) as Shape, 3);
    const field = fc.tuple(
      fc.constantFrom(...paths),
      fc.constantFrom(...keys, 'actor.name', 'target.id', 'http.url'),
    );
    return fc
      .array(field, { maxLength: 12 })
      .map((fields) => ({ class: name, fields: Object.fromEntries(fields) }));
  });
}

function pathsOf(shape: Shape, depth: number): readonly string[] {
  return [...shape.attributes.values()].flatMap((attribute) => {
    if (attribute.type !== 'object') return [attribute.name];
    if (depth === 0) return [];
    return pathsOf(objectOf(attribute.object), depth - 1).map(
      (path) => `${attribute.name}.${path}`,
    );
  });
}

describe.skipIf(!hasShared)(
  `the tables of classes and objects against the official schema${sharedNote}`,
  () => {
    const schema = hasShared ? loadSchema() : ({} as CompactSchema);

    it.each(classNames)('%s has the official uid, caption, attributes and constraints', (name) => {
      const known = classOf(name);
      const official = schema.classes[name];

      expect({ uid: known?.uid, caption: known?.caption }).toEqual({
        uid: official?.uid,
        caption: official?.caption,
      });
      expect(differences(schema, known as Shape, official as CompactItem)).toEqual([]);
    });

    const file = new URL('../../src/normalise/ocsf-1.8.0.json', import.meta.url);
    const objectNames = Object.keys(JSON.parse(readFileSync(file, 'utf8')).objects);

    it.each(objectNames)('%s has the official attributes and constraints', (name) => {
      const official = schema.objects[name] as CompactItem;

      expect(differences(schema, objectOf(name), official)).toEqual([]);
    });
  },
);

/** Set by sluice for every event, so no mapping needs to know them. */
const setForAll = ['class_uid', 'category_uid', 'type_uid', 'product', 'version'];

function differences(
  schema: CompactSchema,
  known: Shape,
  official: CompactItem,
): readonly string[] {
  const wrong: string[] = [];
  for (const attribute of known.attributes.values()) {
    const there = official.attributes[attribute.name];
    if (there === undefined) wrong.push(`${attribute.name} is unknown`);
    else
      wrong.push(
        ...mismatches(schema, attribute, there).map((what) => `${attribute.name}: ${what}`),
      );
  }
  for (const [name, attribute] of Object.entries(official.attributes)) {
    const needed =
      attribute.r === 'required' && attribute.p === undefined && !setForAll.includes(name);
    if (needed && !known.attributes.has(name)) wrong.push(`${name} is required`);
    const plain = attribute.t === 'string_t' && attribute.e === undefined;
    const isOwn = setBySluice.has(name) || setBySluice.has(`metadata.${name}`);
    if (plain && attribute.p === undefined && attribute.d === undefined && !isOwn)
      if (!known.attributes.has(name)) wrong.push(`${name} is missing`);
  }
  const { at_least_one: some = [], just_one: one = [] } = official.constraints ?? {};
  if (`${known.some}` !== `${some}` || `${known.one}` !== `${one}`) wrong.push('constraints');
  return wrong;
}

const officialTypes: Readonly<Record<string, string>> = {
  int: 'integer_t',
  long: 'long_t',
  float: 'float_t',
  bool: 'boolean_t',
  time: 'timestamp_t',
  ip: 'ip_t',
  port: 'port_t',
  mac: 'mac_t',
  email: 'email_t',
  json: 'json_t',
  enum: 'integer_t',
};

function mismatches(
  schema: CompactSchema,
  known: Attribute,
  official: CompactAttribute,
): readonly string[] {
  const wrong: string[] = [];
  if (!sameType(schema, known, official)) wrong.push(`type ${known.type} for ${official.t}`);
  if (known.list !== (official.a !== undefined)) wrong.push('list');
  if (known.required !== (official.r === 'required')) wrong.push('required');
  if (`${known.profile ?? []}` !== `${official.p ?? []}`) wrong.push('profile');
  if (official.d !== undefined) wrong.push('deprecated');
  if (known.type === 'enum') {
    if (known.sibling !== official.s) wrong.push('sibling');
    if (JSON.stringify(Object.fromEntries(known.captions)) !== JSON.stringify(official.e))
      wrong.push('captions');
  } else if (known.type === 'choice') {
    if (`${[...known.captions.keys()].sort()}` !== `${Object.keys(official.e ?? {}).sort()}`)
      wrong.push('choices');
  } else if (known.captionOf === '' && official.e !== undefined) {
    wrong.push('is an enum');
  }
  return wrong;
}

function sameType(schema: CompactSchema, known: Attribute, official: CompactAttribute): boolean {
  if (known.type === 'object') return official.o === 1 && official.t === known.object;
  if (known.type !== 'text' && known.type !== 'choice')
    return official.t === officialTypes[known.type];
  const type = schema.types[official.t];
  return (
    (type?.type ?? official.t) === 'string_t' &&
    type?.regex === undefined &&
    type?.max_len === undefined
  );
}

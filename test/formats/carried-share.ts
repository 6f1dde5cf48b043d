// The share of a record that a receiver can find: records go through the real normaliser and format, a decoder that is
// not the formatter's reads the output, and each value of the record as upstream sent it is looked up. A value is a
// text that is not empty, a number or a boolean. It counts as found if its whole text is a value there: one that was
// cut does not count, nor does anything in JSON that was cut. Case does not count, since OCSF's captions replace
// the record's own (`high` becomes `High`). A reader cannot get back white space at a value's ends nor control
// characters (cef-escape.ts), so those are compared as they arrive (carried.ts).

import { formats } from '../../formats/index.ts';
import type { RecordReading } from '../../src/contracts/definition.ts';
import type { Event, PageContext, RecordKind } from '../../src/contracts/event.ts';
import { isObject, type Json } from '../../src/contracts/json.ts';
import { compileNormaliser, type Mapping } from '../../src/normalise/normalise.ts';
import { carriedValue } from './carried.ts';
import { decodeCef, decodeLeef, parse5424, readGelf } from './decoders.ts';
import { readEcs } from './ecs-reader.ts';
import { makeFormat } from './make-format.ts';
import { readRequest } from './otlp-reader.ts';

/** Where the values of a record were found; the sum is `values`. */
export interface Found {
  values: number;
  /** In keys that a standard or convention defines; for JSON anywhere but in `unmapped`. */
  standard: number;
  /** In keys of sluice's own. */
  own: number;
  /** In `unmapped`, or in CEF the one value that holds the rest as JSON. */
  rest: number;
  lost: number;
}

/** How records are read, and as what they are written. */
export interface Way {
  readonly kind: RecordKind;
  readonly mapping?: Mapping;
  /** How a source has its records read; undefined: by common names. */
  readonly reading?: RecordReading;
  readonly format: string;
  readonly settings?: Readonly<Record<string, unknown>>;
}

/** Texts by where they were found. */
interface Texts {
  readonly standard: ReadonlySet<string>;
  readonly own: ReadonlySet<string>;
  readonly rest: ReadonlySet<string>;
}

const uid = 'ab'.repeat(32);
const none: ReadonlySet<string> = new Set();

/** Counts what of these records is found. */
export function foundOf(records: readonly Json[], way: Way): Found {
  const { encode } = makeFormat(way.format, way.settings);
  const normalise = compileNormaliser(way.kind, {
    time: ['timestamp', 'time', 'created_at'],
    id: 'id',
    ...(way.mapping === undefined ? {} : { mapping: way.mapping }),
    ...way.reading,
  });
  const context: PageContext = {
    source: 'sample',
    stream: 'sample',
    kind: way.kind,
    fetchedAt: 1_790_000_000_000,
  };
  const found: Found = { values: 0, standard: 0, own: 0, rest: 0, lost: 0 };
  for (const record of records) {
    const event: Event = {
      uid,
      ...context,
      context,
      offset: 0,
      raw: Buffer.from(JSON.stringify(record)),
      ocsf: normalise(record, uid, context),
    };
    count(found, sentOf(record, way), read(Buffer.from(encode(event)), way));
  }
  return found;
}

/** Upstream's record: for a change the entity before and after, which sluice has put together. */
function sentOf(record: Json, { kind }: Way): Json {
  if (kind !== 'drift' || !isObject(record)) return record;
  return [record.before ?? null, record.after ?? null];
}

/** Adds one count to another. */
export function addFound(total: Found, more: Found): Found {
  for (const place of ['values', 'standard', 'own', 'rest', 'lost'] as const) {
    total[place] += more[place];
  }
  return total;
}

/** The share that was found, in per cent. */
export function foundShare({ values, lost }: Found): number {
  return values === 0 ? 100 : ((values - lost) * 100) / values;
}

function count(found: Found, record: Json, texts: Texts): void {
  for (const value of valuesOf(record)) {
    found.values++;
    if (texts.standard.has(value)) found.standard++;
    else if (texts.own.has(value)) found.own++;
    else if (texts.rest.has(value)) found.rest++;
    else found.lost++;
  }
}

function carried(text: string): string {
  return carriedValue(text).toLowerCase();
}

/** The texts of all values in a JSON value, as they arrive. */
function valuesOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(valuesOf);
  if (isObject(value)) return Object.values(value).flatMap(valuesOf);
  if (value === null || value === undefined) return [];
  const text = carried(String(value));
  return text === '' ? [] : [text];
}

function read(written: Buffer, { format, settings }: Way): Texts {
  const text = written.toString('utf8');
  switch (format) {
    case 'cef':
      return readCef(text);
    case 'gelf': {
      const { _sluice_rest: rest = '{}', ...fields } = readGelf(text);
      return {
        standard: new Set(valuesOf(fields)),
        own: none,
        rest: new Set(valuesOf(JSON.parse(String(rest)))),
      };
    }
    case 'leef':
      return readLeef(text);
    case 'syslog': {
      const message = parse5424(text).message ?? '';
      return settings?.message === 'cef' ? readCef(message) : readJson(JSON.parse(message));
    }
    case 'otel':
      return readOtel(written);
    case 'json':
      return readJson(JSON.parse(text));
    case 'ecs': {
      const { fields, sluice } = readEcs(text);
      return {
        standard: new Set(valuesOf([...fields.values()])),
        own: new Set(valuesOf(sluice.ocsf)),
        rest: new Set(valuesOf(sluice.unmapped)),
      };
    }
  }
  throw new Error(`no reader for ${format}; there are ${formats.map(({ type }) => type)}`);
}

function readCef(text: string): Texts {
  const { extension, deviceEventClassId, name } = decodeCef(text);
  const standard = new Set([deviceEventClassId, name].map(carried));
  const own = new Set<string>();
  let rest = none;
  for (const [key, value] of extension) {
    if (key === 'sluiceUnmapped') rest = new Set(valuesOf(parsed(value)));
    else (key.startsWith('sluice') ? own : standard).add(carried(value));
  }
  return { standard, own, rest };
}

function readLeef(text: string): Texts {
  const { attributes, eventId } = decodeLeef(text);
  const standard = new Set([carried(eventId)]);
  const own = new Set<string>();
  let rest = none;
  for (const [key, value] of attributes) {
    if (key === 'sluiceUnmapped') rest = new Set(valuesOf(parsed(value)));
    else (key.startsWith('sluice') ? own : standard).add(carried(value));
  }
  return { standard, own, rest };
}

/** JSON that was cut holds nothing that can be relied on. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readJson({ unmapped, ...ocsf }: { readonly [name: string]: unknown }): Texts {
  return { standard: new Set(valuesOf(ocsf)), own: none, rest: new Set(valuesOf(unmapped)) };
}

/** The body of the one record, and its attributes. */
function readOtel(written: Buffer): Texts {
  const [record] = readRequest(written).groups.flatMap(({ records }) => records);
  if (record === undefined) throw new Error('no record');
  const { ocsf: attribute, ...attributes } = record.attributes;
  const event = isObject(record.body) ? record.body : attribute;
  const { unmapped, ...ocsf } = event as { readonly [name: string]: unknown };
  const standard = new Set(valuesOf([ocsf, attributes]));
  return { standard, own: none, rest: new Set(valuesOf(unmapped)) };
}

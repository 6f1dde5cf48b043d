// Reads events from a Parquet object written by write.ts of this or any earlier version: columns
// come from the file's own schema. The only file that knows hyparquet. Invariants: pruning excludes
// no row that could match; an event is read as it was written.

import { zstdDecompressSync } from 'node:zlib';
import {
  type AsyncBuffer,
  type FileMetaData,
  type ParquetQueryFilter,
  parquetMetadata,
  parquetMetadataAsync,
  parquetReadObjects,
  type SchemaElement,
} from 'hyparquet';
import { isObject, type Json, type OcsfEvent } from '../contracts/index.ts';
import { restKey } from './rows.ts';
import { type Column, type ColumnType, type ParquetGroup, tableOf } from './schema.ts';
import type { Facts } from './write.ts';

/** Bytes of an object, read on demand. */
export type ObjectBytes = AsyncBuffer;

/** Conditions on rows; all are checked against statistics, filters and page indexes. */
export interface RowFilter {
  /** Epoch milliseconds: from (inclusive), and to (exclusive). */
  readonly from?: number;
  readonly to?: number;
  /** Texts or numbers by dotted path; one of each list must be at its path. */
  readonly values?: Readonly<Record<string, readonly (string | number)[]>>;
}

const compressors = { ZSTD: (bytes: Uint8Array) => zstdDecompressSync(bytes) };

/** The object's matching events, in the order of their time. */
export async function readParquet(
  file: ObjectBytes,
  requested: RowFilter = {},
): Promise<OcsfEvent[]> {
  const whole = await parquetMetadataAsync(file);
  const metadata = withoutNulls(whole);
  const filter = filterOf(requested, whole, metadata);
  if (filter === null) return [];
  const rows = await parquetReadObjects({
    file,
    metadata,
    compressors,
    ...(filter !== undefined && { filter, useBloomFilters: true, usePageIndex: true }),
  });
  return rows.map(eventOf);
}

/** Rows read at once when all of an object are read: each row's tree takes one or two kilobytes. */
const rowsAtOnce = 32_768;

/** All events of an object in the order of their time, in chunks. */
export async function* readEvents(body: Uint8Array): AsyncGenerator<OcsfEvent[]> {
  const file = bufferOf(body);
  const whole = await parquetMetadataAsync(file);
  const metadata = withoutNulls(whole);
  for (let rowStart = 0; rowStart < whole.num_rows; rowStart += rowsAtOnce) {
    const rowEnd = Math.min(rowStart + rowsAtOnce, Number(whole.num_rows));
    const rows = await parquetReadObjects({ file, metadata, compressors, rowStart, rowEnd });
    yield rows.map(eventOf);
  }
}

/** Key in an object's footer: the cut of its events. */
export const cutFact = 'sluice.cut';

/** The uids of an object's events, in the order of their time. Throws for any other object. */
export async function readUids(body: Uint8Array): Promise<readonly string[]> {
  const file = bufferOf(body);
  const metadata = withoutNulls(await parquetMetadataAsync(file), 'metadata.uid');
  const rows = await parquetReadObjects({ file, metadata, compressors });
  return rows.map(({ metadata: about }) => String(about?.uid));
}

/**
 * The cut in the footer of an object of this size; null if the footer names none. Throws likewise.
 * `read`: returns bytes from an offset.
 */
export async function cutOf(
  bytes: number,
  read: (from: number, length: number) => Promise<Uint8Array>,
): Promise<string | null> {
  const end = Buffer.from(await read(Math.max(0, bytes - endBytes), endBytes));
  const length = Math.min(bytes, footerBytesMax, end.readUInt32LE(0) + endBytes);
  return footerFacts(await read(bytes - length, length))[cutFact] ?? null;
}

/** The footer of an object with all columns of its class has some 100 KB. */
const footerBytesMax = 16 * 1024 * 1024;
/** The end of an object: the length of its footer, and four magic bytes. */
const endBytes = 8;

/** The bytes as an ArrayBuffer of their own, copied only if the buffer has other bytes too. */
export function bufferOf(body: Uint8Array): ArrayBuffer {
  const { buffer, byteOffset, byteLength } = body;
  if (buffer instanceof ArrayBuffer && byteOffset === 0 && byteLength === buffer.byteLength)
    return buffer;
  return Uint8Array.from(body).buffer;
}

/** The facts in an object's footer. Throws likewise. */
export function footerFacts(body: Uint8Array): Facts {
  const { key_value_metadata: facts = [] } = parquetMetadata(bufferOf(body));
  return Object.fromEntries(facts.map(({ key, value = '' }) => [key, value]));
}

/** The metadata with only the columns that have values, usually few; or with one column only. */
function withoutNulls(metadata: FileMetaData, only?: string): FileMetaData {
  const used = new Set<string>();
  for (const { columns } of metadata.row_groups) {
    for (const { meta_data: facts } of columns) {
      if (facts?.statistics?.null_count === facts?.num_values) continue;
      const path = facts?.path_in_schema ?? [];
      if (only !== undefined && path.join('.') !== only) continue;
      for (let depth = 1; depth <= path.length; depth++) used.add(path.slice(0, depth).join('.'));
    }
  }
  const schema: SchemaElement[] = [];
  let next = 0;
  const take = (above: readonly string[]): boolean => {
    const element = metadata.schema[next++];
    if (element === undefined) throw new Error('its schema ends too soon');
    const path = next === 1 ? [] : [...above, element.name];
    const isUsed = path.length === 0 || used.has(path.join('.'));
    const place = schema.length;
    let children = 0;
    for (let child = 0; child < (element.num_children ?? 0); child++) if (take(path)) children++;
    if (isUsed) {
      const own = children > 0 ? { ...element, num_children: children } : element;
      schema.splice(place, 0, own);
    }
    return isUsed;
  };
  take([]);
  const isUsed = (path: readonly string[] | undefined) => used.has((path ?? []).join('.'));
  return {
    ...metadata,
    schema,
    row_groups: metadata.row_groups.map((group) => ({
      ...group,
      columns: group.columns.filter(({ meta_data }) => isUsed(meta_data?.path_in_schema)),
    })),
  };
}

/** Undefined: all may match; null: none can, because a required value is absent from the object. */
function filterOf(
  { from, to, values: requested = {} }: RowFilter,
  whole: FileMetaData,
  used: FileMetaData,
): ParquetQueryFilter | undefined | null {
  const all: ParquetQueryFilter[] = [];
  if (from !== undefined) all.push({ time: { $gte: BigInt(from) } });
  if (to !== undefined) all.push({ time: { $lt: BigInt(to) } });
  const paths = chunkPaths(used);
  const { event } = tableOf(classIn(whole));
  for (const [path, values] of Object.entries(requested)) {
    // A value without a column, or of another type, may be in `unmapped`.
    const type = typeAt(event, path.split('.'));
    const isFit = (value: string | number) =>
      type === (typeof value === 'string' ? 'text' : 'int') && isStored(value);
    if (!values.every(isFit) || !chunkPaths(whole).has(path)) continue;
    if (!paths.has(path)) return null;
    all.push({ [path]: { $in: [...values] } });
  }
  return all.length === 0 ? undefined : { $and: all };
}

function chunkPaths({ row_groups }: FileMetaData): ReadonlySet<string | undefined> {
  return new Set(
    row_groups.flatMap(({ columns }) =>
      columns.map(({ meta_data }) => meta_data?.path_in_schema.join('.')),
    ),
  );
}

/** All rows of an object are of one class. */
function classIn({ row_groups: [group] }: FileMetaData): number {
  const chunk = group?.columns.find(
    ({ meta_data }) => meta_data?.path_in_schema[0] === 'class_uid',
  );
  return Number(chunk?.meta_data?.statistics?.min_value ?? 0);
}

/** Whether a column can hold the value: other values are stored elsewhere. */
function isStored(value: string | number): boolean {
  return typeof value === 'string' ? value.isWellFormed() : (value | 0) === value;
}

function typeAt(group: ParquetGroup, [name = '', ...below]: readonly string[]): ColumnType | null {
  const attribute = group.attributes.get(name);
  if (attribute === undefined || attribute.list) return null;
  if ('type' in attribute) return below.length === 0 ? attribute.type : null;
  return typeAt(attribute, below);
}

function eventOf(row: Record<string, unknown>): OcsfEvent {
  const { event } = tableOf(Number(row.class_uid));
  const restored = groupOf(row, event);
  const { unmapped } = restored;
  if (!isObject(unmapped) || !Object.hasOwn(unmapped, restKey)) {
    return restored as unknown as OcsfEvent;
  }
  const { [restKey]: rest, ...own } = unmapped;
  if (Object.keys(own).length > 0) restored.unmapped = own;
  else delete restored.unmapped;
  return withRest(restored as Json, rest ?? {}) as unknown as OcsfEvent;
}

type Open = Record<string, Json>;

function groupOf(row: Record<string, unknown>, group: ParquetGroup | undefined): Open {
  const object: Open = {};
  for (const [name, value] of Object.entries(row)) {
    const attribute = group?.attributes.get(name);
    const held = valueAt(value, attribute);
    if (held !== undefined) object[name] = held;
  }
  return object;
}

function valueAt(value: unknown, attribute: Column | ParquetGroup | undefined): Json | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === 'bigint') return Number(value);
  if (Array.isArray(value)) return value.map((one) => valueAt(one, attribute) ?? null);
  if (typeof value === 'object') {
    const group = attribute !== undefined && 'attributes' in attribute ? attribute : undefined;
    const object = groupOf(value as Record<string, unknown>, group);
    return Object.keys(object).length === 0 ? undefined : object;
  }
  if (typeof value !== 'string') return value as Json;
  const isJson = attribute !== undefined && 'type' in attribute && attribute.type === 'json';
  return isJson ? (JSON.parse(value) as Json) : value;
}

/**
 * The event with the values that its columns could not hold; elements of lists are under their
 * index.
 */
function withRest(value: Json | undefined, rest: Json): Json {
  if (value === undefined || !isObject(rest)) return rest;
  if (Array.isArray(value)) {
    return value.map((one: Json, at) => {
      const own = rest[String(at)];
      return own === undefined ? one : withRest(one, own);
    });
  }
  const whole = new Map(Object.entries(isObject(value) ? value : {}));
  for (const [name, one] of Object.entries(rest)) {
    if (one !== undefined) whole.set(name, withRest(whole.get(name), one));
  }
  return Object.fromEntries(whole) as Json;
}

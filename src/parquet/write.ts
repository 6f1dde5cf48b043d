// Writes rows as one Parquet object: one row group in the order of the events' time, zstd, with
// statistics of every column, and bloom filters for columns that are searched by value. The standard
// API of hyparquet-writer visits every column of the schema for each row, up to a thousand of which
// few are used. So it only writes the object's frame and metadata, columns are written here
// (column.ts), and one of only nulls by copying the bytes of another one.

import { setImmediate } from 'node:timers/promises';
import type { ColumnChunk } from 'hyparquet';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import { type ColumnLevels, writeColumn } from './column.ts';
import { encodedValues, type ValueOrder } from './encodings.ts';
import type { ColumnRows, NestingLevel, Rows } from './rows.ts';
import { physical } from './schema.ts';

const firstBytes = 256 * 1024;

/** Key-value facts in the footer. */
export type Facts = Readonly<Record<string, string>>;

/** The object's bytes. Consumes the rows. The event loop runs after each column. */
export async function writeParquet(rows: Rows, facts: Facts = {}): Promise<Uint8Array> {
  rows.complete();
  const bytes = new ObjectBytes(firstBytes);
  const file = new ParquetWriter({
    writer: bytes,
    schema: [...rows.table.elements],
    codec: 'ZSTD',
    kvMetadata: Object.entries(facts).map(([key, value]) => ({ key, value })),
    createdBy: 'sluice',
  });
  const levels = levelsByTime(rows);
  const nulls = new Map<NestingLevel | string, NullColumn>();
  const columns: ColumnChunk[] = [];
  for (const one of rows.columns) {
    const kind = kindOf(one.level);
    const known = one.values.length === 0 ? nulls.get(kind) : undefined;
    if (known !== undefined) {
      columns.push(copyOf(known, one, file));
      continue;
    }
    await setImmediate();
    const start = file.writer.offset;
    const level = levels.get(one.level);
    if (level === undefined) throw new Error('a column has no level');
    const written = writeColumn(file.writer, inFileOrder(one, level, rows));
    one.values.free();
    columns.push(written.chunk);
    file.pendingIndexes.push(written);
    if (one.values.length === 0) {
      nulls.set(kind, {
        chunk: written.chunk,
        bytes: file.writer.getBytes().slice(start, file.writer.offset),
      });
    }
  }
  addRowGroup(file, rows, columns);
  void file.finish();
  return bytes.whole();
}

/** The bytes of an object. They grow without a copy that waits for the garbage collector. */
class ObjectBytes extends ByteWriter {
  override ensure(size: number): void {
    const needed = this.index + size;
    if (needed > this.buffer.byteLength) this.#resize(Math.max(needed, this.buffer.byteLength * 2));
  }

  /** All of them; nothing may be added afterwards. */
  whole(): Uint8Array {
    this.#resize(this.index);
    return new Uint8Array(this.buffer);
  }

  #resize(bytes: number): void {
    this.buffer = this.buffer.transfer(bytes);
    this.view = new DataView(this.buffer);
  }
}

function addRowGroup(file: ParquetWriter, rows: Rows, columns: ColumnChunk[]): void {
  const total = columns.reduce(
    (sum, one) => sum + (one.meta_data?.total_uncompressed_size ?? 0n),
    0n,
  );
  file.num_rows = BigInt(rows.count);
  file.row_groups.push({
    columns,
    total_byte_size: total,
    num_rows: BigInt(rows.count),
    sorting_columns: [
      { column_idx: rows.columns.indexOf(rows.time), descending: false, nulls_first: false },
    ],
    total_compressed_size: BigInt(file.writer.offset - 4),
  });
}

/** All-null columns of levels of one kind have the same bytes. */
function kindOf(level: NestingLevel): NestingLevel | string {
  return level.entries > 0 ? level : `${level.present} ${level.repetition}`;
}

/** An all-null column as written. */
interface NullColumn {
  readonly chunk: ColumnChunk;
  readonly bytes: Uint8Array;
}

/**
 * Writes a null column as a copy of another one of the same level: only its name and type differ.
 */
function copyOf({ chunk, bytes }: NullColumn, one: ColumnRows, file: ParquetWriter): ColumnChunk {
  const offset = BigInt(file.writer.offset);
  file.writer.appendBytes(bytes);
  const { meta_data: facts } = chunk;
  if (facts === undefined) throw new Error('a column was written without facts');
  return {
    file_offset: offset,
    meta_data: {
      ...facts,
      type: physical[one.column.type].type ?? facts.type,
      path_in_schema: [...one.path],
      data_page_offset: offset,
    },
  };
}

/** A level's entries in the order of time. */
interface SortedLevel {
  readonly definitions: Uint8Array;
  /** Null: the entries are rows. */
  readonly repetitions: Uint8Array | null;
  /** New position of each entry; null: unchanged. */
  readonly places: Uint32Array | null;
}

function levelsByTime(rows: Rows): ReadonlyMap<NestingLevel, SortedLevel> {
  const order = rowOrder(rows);
  const sorted = (level: NestingLevel): SortedLevel => {
    const { above, entries } = level;
    const places = order === null || entries === 0 ? null : newPositionsOf(level, order);
    if (above === null) return { definitions: new Uint8Array(entries), repetitions: null, places };
    // A list that no row has: nothing in each of them.
    const nothing = new Uint8Array(rows.count);
    if (entries === 0) return { definitions: nothing, repetitions: nothing, places };
    const definitions = placed(level.definitions.subarray(0, entries), places);
    return {
      definitions,
      repetitions: placed(level.repetitions.subarray(0, entries), places),
      places,
    };
  };
  return new Map(rows.levels.map((level) => [level, sorted(level)]));
}

/** The rows in the order of their time; null: already sorted. */
function rowOrder({ count, time }: Rows): Uint32Array | null {
  const times = new Float64Array(count);
  for (let at = 0; at < time.values.length; at++) {
    times[time.entries?.[at] ?? at] = time.values.numbers[at] ?? 0;
  }
  if (times.every((one, row) => row === 0 || (times[row - 1] ?? 0) <= one)) return null;
  const order = Uint32Array.from(times.keys());
  return order.sort((one, other) => (times[one] ?? 0) - (times[other] ?? 0) || one - other);
}

/**
 * New position of each entry of a level; the entries of a row begin where the repetition level is
 * 0.
 */
function newPositionsOf(
  { above, entries, repetitions }: NestingLevel,
  order: Uint32Array,
): Uint32Array {
  const starts: number[] = [];
  for (let entry = 0; entry < entries; entry++) {
    if (above === null || repetitions[entry] === 0) starts.push(entry);
  }
  const places = new Uint32Array(entries);
  let next = 0;
  for (const row of order) {
    const end = starts[row + 1] ?? entries;
    for (let entry = starts[row] ?? end; entry < end; entry++) places[entry] = next++;
  }
  return places;
}

function placed(list: Uint8Array, places: Uint32Array | null): Uint8Array {
  if (places === null) return list;
  const sorted = new Uint8Array(list.length);
  for (let at = 0; at < list.length; at++) sorted[places[at] ?? 0] = list[at] ?? 0;
  return sorted;
}

/** A column with its values, and the levels of their entries, in the order of the file. */
function inFileOrder(one: ColumnRows, sorted: SortedLevel, rows: Rows) {
  const { column, path, level, entries, values } = one;
  const { places, repetitions } = sorted;
  const present = level.present + (column.list ? 0 : 1);
  const definitions = sorted.definitions.slice();
  /** Index of the value at each position, plus one; null: nothing moves. */
  const moved = places === null ? null : new Uint32Array(definitions.length);
  for (let at = 0; at < values.length; at++) {
    const entry = entries === null ? at : (entries[at] ?? 0);
    const place = places === null ? entry : (places[entry] ?? 0);
    definitions[place] = present;
    if (moved !== null) moved[place] = at + 1;
  }
  const order: ValueOrder = moved === null ? null : new Uint32Array(values.length);
  let next = 0;
  for (const at of moved ?? []) if (order !== null && at > 0) order[next++] = at - 1;
  const levels: ColumnLevels = { definitions, present, repetitions, repetition: level.repetition };
  return {
    ...{ column, path, levels },
    isIndexed: column.bloom || one === rows.time,
    values: encodedValues(column.type, values, order),
  };
}

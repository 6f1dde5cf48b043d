// Writes rows as one Parquet object: one row group in the order of the events' time, zstd, with
// statistics of every column, and bloom filters for columns that are searched by value. The only
// file that knows hyparquet-writer. Its standard API visits every column of the schema for each
// row, up to a thousand of which few are used; so its column writer is called directly, with the
// known levels, and a column of only nulls is written by copying the bytes of another one.

import { setImmediate } from 'node:timers/promises';
import { constants, zstdCompressSync } from 'node:zlib';
import type { ColumnChunk } from 'hyparquet';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import { writeColumn } from 'hyparquet-writer/src/column.js';
import { schemaPathResolver } from 'hyparquet-writer/src/schema.js';
import { bloomFilterOf, type Texts } from './bloom.ts';
import type { ColumnRows, NestingLevel, Rows } from './rows.ts';
import { type ColumnType, physical } from './schema.ts';

/** Data pages stay below 1 MiB: this counts UTF-16 units, each of up to three bytes of UTF-8. */
const pageSize = 256 * 1024;

const zstd = { params: { [constants.ZSTD_c_compressionLevel]: 3 } };
const compressors = { ZSTD: (bytes: Uint8Array) => zstdCompressSync(bytes, zstd) };

/** Types for which a dictionary costs more than it saves. */
const plain: ReadonlySet<ColumnType> = new Set(['json', 'long']);

/** Key-value facts in the footer. */
export type Facts = Readonly<Record<string, string>>;

/** The object's bytes. Consumes the rows. The event loop runs after each column. */
export async function writeParquet(rows: Rows, facts: Facts = {}): Promise<Uint8Array> {
  rows.complete();
  const file = new ParquetWriter({
    writer: new ByteWriter(1024 * 1024),
    schema: [...rows.table.elements],
    codec: 'ZSTD',
    compressors,
    kvMetadata: Object.entries(facts).map(([key, value]) => ({ key, value })),
    createdBy: 'sluice',
  });
  const levels = levelsByTime(rows);
  const pathTo = schemaPathResolver(file.schema);
  const nulls = new Map<NestingLevel | string, NullColumn>();
  const columns: ColumnChunk[] = [];
  for (const one of rows.columns) {
    const schemaPath = pathTo([...one.path]).map(({ element }) => element);
    const kind = kindOf(one.level);
    const known = one.values.length === 0 ? nulls.get(kind) : undefined;
    if (known !== undefined) {
      columns.push(copyOf(known, one, file));
      continue;
    }
    await setImmediate();
    const start = file.writer.offset;
    const values = one.values.all();
    const isKey = one.column.bloom || one === rows.time;
    const written = writeColumn({
      writer: file.writer,
      column: {
        columnName: one.path.join('.'),
        element: schemaPath.at(-1) ?? { name: '' },
        schemaPath,
        codec: 'ZSTD',
        compressors,
        stats: one.column.type !== 'json',
        pageSize,
        ...(plain.has(one.column.type) && { encoding: 'PLAIN' as const }),
        columnIndex: isKey,
        offsetIndex: true,
      },
      pageData: pageDataOf(one, values, levels.get(one.level)),
    });
    columns.push(written.chunk);
    const bloomFilter = one.column.bloom ? bloomFilterOf(values as Texts) : undefined;
    file.pendingIndexes.push(bloomFilter === undefined ? written : { ...written, bloomFilter });
    if (one.values.length === 0) {
      nulls.set(kind, {
        chunk: written.chunk,
        bytes: file.writer.getBytes().slice(start, file.writer.offset),
      });
    }
  }
  addRowGroup(file, rows, columns);
  void file.finish();
  return file.writer.getBytes();
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
  readonly definitions: readonly number[];
  readonly repetitions: number[];
  /** New position of each entry; null: unchanged. */
  readonly places: Uint32Array | null;
}

function levelsByTime(rows: Rows): ReadonlyMap<NestingLevel, SortedLevel> {
  const order = rowOrder(rows);
  const zeros = new Array<number>(rows.count).fill(0);
  const sorted = (level: NestingLevel): SortedLevel => {
    const { above, entries, repetitions } = level;
    if (entries === 0) return { definitions: zeros, repetitions: zeros, places: null };
    const definitions = above === null ? zeros : level.definitions;
    if (order === null) return { definitions, repetitions, places: null };
    const places = newPositionsOf(level, order);
    const all = { definitions: placed(definitions, places), places };
    return { ...all, repetitions: placed(repetitions, places) };
  };
  return new Map(rows.levels.map((level) => [level, sorted(level)]));
}

/** The rows in the order of their time; null: already sorted. */
function rowOrder({ count, time }: Rows): Uint32Array | null {
  const times = new Float64Array(count);
  for (const [at, value] of time.values.all().entries()) {
    times[time.entries?.[at] ?? at] = value as number;
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

function placed(list: readonly number[], places: Uint32Array): number[] {
  const sorted = new Array<number>(list.length).fill(0);
  for (let at = 0; at < list.length; at++) sorted[places[at] ?? 0] = list[at] ?? 0;
  return sorted;
}

function pageDataOf(
  { column, level, entries }: ColumnRows,
  values: readonly unknown[],
  sorted?: SortedLevel,
) {
  if (sorted === undefined) throw new Error('a column has no level');
  const { places, repetitions } = sorted;
  const definitionLevels = sorted.definitions.slice();
  const maxDefinitionLevel = level.present + (column.list ? 0 : 1);
  const all = new Array<unknown>(definitionLevels.length).fill(undefined);
  const isLong = column.type === 'long';
  for (let at = 0; at < values.length; at++) {
    const entry = entries === null ? at : (entries[at] ?? 0);
    const place = places === null ? entry : (places[entry] ?? 0);
    all[place] = isLong ? BigInt(values[at] as number) : values[at];
    definitionLevels[place] = maxDefinitionLevel;
  }
  return { values: all, definitionLevels, repetitionLevels: repetitions, maxDefinitionLevel };
}

// Writes one column: its dictionary, its pages with their levels, and the facts on them. The
// interface of hyparquet-writer takes a list of JavaScript values and computes each fact in a pass
// of its own, with a call per value and byte: that took most of the time of Parquet. Here the
// values are encoded already (encodings.ts).

import { constants, zstdCompressSync } from 'node:zlib';
import type { ColumnChunk } from 'hyparquet';
import type { ParquetWriter } from 'hyparquet-writer';
import { writePageHeader } from 'hyparquet-writer/src/datapage.js';
import { unconvertMinMax } from 'hyparquet-writer/src/unconvert.js';
import { bloomFilterOf } from './bloom.ts';
import { type Bounds, compareBounds, type EncodedValues } from './encodings.ts';
import { bitsOf, hybridBytesMax, writeHybrid } from './hybrid.ts';
import { type Column, physical } from './schema.ts';

/** The levels of a column's entries, in the order of the file. */
export interface ColumnLevels {
  readonly definitions: Uint8Array;
  /** The definition level of a value. */
  readonly present: number;
  /** Null: the entries are rows. */
  readonly repetitions: Uint8Array | null;
  /** The level of repetition of an element of the innermost list. */
  readonly repetition: number;
}

type ByteWriter = ParquetWriter['writer'];
type PageIndexes = ParquetWriter['pendingIndexes'][number];

/** A column to be written. */
export interface WrittenColumn {
  readonly column: Column;
  /** Names of the elements that lead to it. */
  readonly path: readonly string[];
  /** Whether it has bounds for each page. */
  readonly isIndexed: boolean;
  readonly levels: ColumnLevels;
  readonly values: EncodedValues;
}

const level = 3;

/** In few chunks, each of about the size that most pages need: a larger one would be garbage. */
function compressed(bytes: Uint8Array): Uint8Array {
  return zstdCompressSync(bytes, {
    params: { [constants.ZSTD_c_compressionLevel]: level },
    chunkSize: Math.max(1024, bytes.length >> 2),
  });
}

/** A page: ranges of entries and of values. */
interface Page {
  readonly entries: { readonly from: number; readonly to: number };
  readonly values: { readonly from: number; readonly to: number };
  readonly rows: number;
}

/** Writes the column, and returns its facts. */
export function writeColumn(file: ByteWriter, one: WrittenColumn): PageIndexes {
  const { column, path, levels, values } = one;
  const start = file.offset;
  const { dictionary } = values;
  let uncompressed = dictionary === null ? 0 : writeDictionary(file, dictionary);
  const firstPage = file.offset;
  const encoding = dictionary === null ? 'PLAIN' : 'RLE_DICTIONARY';
  const pages = [...pagesOf(levels, values)];
  const places: { offset: bigint; compressed_page_size: number; first_row_index: bigint }[] = [];
  let rows = 0;
  for (const page of pages) {
    const offset = file.offset;
    uncompressed += writePage(file, page, { ...one, encoding });
    const compressed_page_size = file.offset - offset;
    places.push({ offset: BigInt(offset), compressed_page_size, first_row_index: BigInt(rows) });
    rows += page.rows;
  }
  const entries = levels.definitions.length;
  const stats = column.type === 'json' ? null : values.bounds(0, values.length);
  const type = physical[column.type].type ?? 'BYTE_ARRAY';
  const chunk: ColumnChunk = {
    file_offset: BigInt(start),
    meta_data: {
      type,
      encodings: dictionary === null ? [encoding] : ['PLAIN', encoding],
      path_in_schema: [...path],
      codec: 'ZSTD',
      num_values: BigInt(entries),
      total_compressed_size: BigInt(file.offset - start),
      total_uncompressed_size: BigInt(uncompressed),
      data_page_offset: BigInt(firstPage),
      ...(dictionary !== null && { dictionary_page_offset: BigInt(start) }),
      ...(stats !== null && {
        statistics: {
          ...(stats.min !== undefined && { min_value: stats.min }),
          ...(stats.max !== undefined && { max_value: stats.max }),
          null_count: BigInt(entries - values.length),
        },
      }),
      encoding_stats: [
        ...(dictionary === null
          ? []
          : [{ page_type: 'DICTIONARY_PAGE', encoding: 'PLAIN', count: 1 } as const]),
        { page_type: 'DATA_PAGE_V2', encoding, count: pages.length },
      ],
    },
  };
  const bloomFilter =
    column.bloom && values.texts !== null ? bloomFilterOf(values.texts) : undefined;
  const isSplit = pages.length > 1;
  return {
    chunk,
    ...(isSplit && { offsetIndex: { page_locations: places } }),
    ...(isSplit && one.isIndexed && columnIndexOf(one, pages)),
    ...(bloomFilter !== undefined && { bloomFilter }),
  };
}

function writeDictionary(
  file: ByteWriter,
  { count, bytes }: NonNullable<EncodedValues['dictionary']>,
): number {
  const [start, packed] = [file.offset, compressed(bytes)];
  writePageHeader(file, {
    type: 'DICTIONARY_PAGE',
    uncompressed_page_size: bytes.length,
    compressed_page_size: packed.length,
    dictionary_page_header: { num_values: count, encoding: 'PLAIN' },
  });
  const headerBytes = file.offset - start;
  file.appendBytes(packed);
  return headerBytes + bytes.length;
}

/** Pages of whole rows, as the format requires; only one if all values fit. */
function* pagesOf(
  { definitions, present, repetitions }: ColumnLevels,
  values: EncodedValues,
): Generator<Page> {
  let entry = 0;
  let value = 0;
  while (entry < definitions.length) {
    const [from, first] = [entry, value];
    const end = values.pageEnd(first);
    const last = end >= values.length ? Number.POSITIVE_INFINITY : end;
    let rows = 0;
    for (; entry < definitions.length; entry += 1) {
      if (repetitions === null || repetitions[entry] === 0) {
        if (value >= last && entry > from) break;
        rows += 1;
      }
      if (definitions[entry] === present) value += 1;
    }
    yield { entries: { from, to: entry }, values: { from: first, to: value }, rows };
  }
}

/** Levels of the page being written. */
let scratch = new Uint8Array(4096);

function writePage(
  file: ByteWriter,
  { entries, values: range, rows }: Page,
  { levels, values, encoding }: WrittenColumn & { readonly encoding: 'PLAIN' | 'RLE_DICTIONARY' },
): number {
  const { definitions, present, repetitions, repetition } = levels;
  const bytesMax = hybridBytesMax(entries.to - entries.from, 8) * 2;
  if (bytesMax > scratch.length) scratch = new Uint8Array(bytesMax);
  const repetitionsEnd =
    repetitions === null
      ? 0
      : writeHybrid({ values: repetitions, ...entries, bits: bitsOf(repetition) }, scratch, 0);
  const levelsEnd = writeHybrid(
    { values: definitions, ...entries, bits: bitsOf(present) },
    scratch,
    repetitionsEnd,
  );
  const bytes = values.page(range.from, range.to);
  const [start, packed] = [file.offset, compressed(bytes)];
  const count = entries.to - entries.from;
  writePageHeader(file, {
    type: 'DATA_PAGE_V2',
    uncompressed_page_size: levelsEnd + bytes.length,
    compressed_page_size: levelsEnd + packed.length,
    data_page_header_v2: {
      num_values: count,
      num_nulls: count - (range.to - range.from),
      num_rows: rows,
      encoding,
      definition_levels_byte_length: levelsEnd - repetitionsEnd,
      repetition_levels_byte_length: repetitionsEnd,
      is_compressed: true,
    },
  });
  const headerBytes = file.offset - start;
  file.appendBytes(scratch.subarray(0, levelsEnd));
  file.appendBytes(packed);
  return headerBytes + levelsEnd + bytes.length;
}

/** The bounds of each page; nothing if one has none. */
function columnIndexOf({ column, path, values }: WrittenColumn, pages: readonly Page[]) {
  const element = { name: path.at(-1) ?? '', ...physical[column.type] };
  const bounds = pages.map(({ values: { from, to } }) => values.bounds(from, to));
  const isNull = pages.map(({ values: { from, to } }) => from === to);
  const least = bounds.map(({ min }) => unconvertMinMax(min, element, false));
  const greatest = bounds.map(({ max }) => unconvertMinMax(max, element, true));
  const isBounded = isNull.every((none, i) => none || (least[i] && greatest[i]));
  if (!isBounded) return {};
  const isSorted = bounds.every((one, i) => i === 0 || isBehind(one, bounds[i - 1]));
  const nothing = new Uint8Array(0);
  return {
    columnIndex: {
      null_pages: isNull,
      min_values: least.map((bytes) => bytes ?? nothing),
      max_values: greatest.map((bytes) => bytes ?? nothing),
      boundary_order: isSorted ? ('ASCENDING' as const) : ('UNORDERED' as const),
      null_counts: pages.map(({ entries, values }) =>
        BigInt(entries.to - entries.from - (values.to - values.from)),
      ),
    },
  };
}

/** False if it is not known. */
function isBehind({ min, max }: Bounds, before: Bounds | undefined): boolean {
  if (min === undefined || max === undefined) return false;
  if (before?.min === undefined || before.max === undefined) return false;
  return compareBounds(before.min, min) <= 0 && compareBounds(before.max, max) <= 0;
}

// Converts a stored page to a row of the state database and back. Each row has a checksum over all its values: SQLite
// has none of its own, so a byte changed by the disk would be delivered as if upstream had sent it. The body of a large
// page is split over rows, because SQLite keeps a row three times in memory while writing it. The cache of a log stores
// a page as the log does, compressed and with its other columns, as the body. Invariant: a page read back equals the
// appended page byte for byte, or the read fails.

import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import { constants, crc32, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import {
  type HeldPage,
  type NewPage,
  type Offset,
  type PageContext,
  uidBytes,
} from '../contracts/index.ts';
import { damageError, type Row } from './database.ts';

const pageColumns =
  'first count bytes held_at stream context items only_sink kept uids body crc'.split(' ');
const insertPage = `
INSERT INTO page (${pageColumns.join(', ')})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const insertPart = 'INSERT INTO page_part (first, bytes) VALUES (?, ?)';
const partsLength = 'SELECT sum(length(bytes)) AS n FROM page_part WHERE first = ?';
const partsOfPage = 'SELECT bytes FROM page_part WHERE first = ? ORDER BY id';

/** A larger body is split into parts of this size. */
const partBytes = 1024 * 1024;
const noBytes = new Uint8Array(0);

/**
 * Approximate cost of a row in addition to its body; counted only for responses without records,
 * which may be tiny.
 */
export const answerRowBytes = 512;

/** The size of a page for the spool's bound. */
export function heldBytes({ body, onlySink }: Pick<NewPage, 'body' | 'onlySink'>): number {
  return body.length + (onlySink === '' ? answerRowBytes : 0);
}

/** Runs a writing statement. */
type Run = (sql: string, ...values: SQLInputValue[]) => unknown;
/** Iterates over the rows of a statement. */
type Each = (sql: string, ...values: SQLInputValue[]) => Iterable<Record<string, unknown>>;

/** The rows of a database. */
export function allRows(database: DatabaseSync): Each {
  return (sql, ...values) => database.prepare(sql).iterate(...values);
}

/** Writes a page. */
export function writePage(run: Run, page: NewPage, first: Offset, now: number): void {
  const own = writeParts(run, page.body, first);
  run(insertPage, ...pageValues(page, first, now).with(bodyAt, own));
}

/**
 * Writes a page to the cache of a log, in the form of the log unless that is larger: SQLite computes checksums over all
 * bytes and copies them several times. Returns the form of the log.
 */
export function writeLoggedPage(run: Run, page: NewPage, first: Offset, now: number): Uint8Array {
  const values = pageValues(page, first, now);
  const value = bytesOfPage(
    Object.fromEntries(pageColumns.map((column, i) => [column, values[i]])),
  );
  // Otherwise its length could be that of the body.
  const isPacked = value.length < page.body.length;
  const own = writeParts(run, isPacked ? value : page.body, first);
  const rest = isPacked ? values.with(keptAt, null).with(uidsAt, noBytes) : values;
  run(insertPage, ...rest.with(bodyAt, own));
  return value;
}

/** Writes the parts of a large body; returns the rest for the page's own row. */
export function writeParts(run: Run, body: Uint8Array, first: Offset): Uint8Array {
  if (body.length <= partBytes) return body;
  for (let at = 0; at < body.length; at += partBytes) {
    run(insertPart, first, body.subarray(at, at + partBytes));
  }
  return noBytes;
}

/** A row of the table of pages with its whole body, as far as readable. */
export function wholeRow(row: Record<string, unknown>, each: Each): Record<string, unknown> {
  const { first, bytes, body } = row;
  if (!(body instanceof Uint8Array) || body.length === bytes) return row;
  const stored = body.length > 0 ? body : joinedParts(Number(first), Number(bytes), each);
  if (stored.length === bytes) return { ...row, body: stored };
  const page = unpacked(stored);
  return page !== null && standsFor(row, page) ? page : row;
}

/** Whether the columns of a row are those of its packed page: SQL reads the columns, and the checksum is of the page. */
function standsFor(row: Record<string, unknown>, page: Record<string, unknown>): boolean {
  return pageColumns.every((column, i) => packed.includes(i) || row[column] === page[column]);
}

/** The parts of a body; empty if they are longer than the body. */
function joinedParts(first: Offset, bytesMax: number, each: Each): Uint8Array {
  const [found] = each(partsLength, first);
  const bytes = Number(found?.n ?? 0);
  if (bytes > bytesMax) return noBytes;
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const part of each(partsOfPage, first)) {
    whole.set(part.bytes as Uint8Array, at);
    at += (part.bytes as Uint8Array).length;
  }
  return whole;
}

/** The row of a page in the form of the log; null: the bytes are damaged. */
function unpacked(stored: Uint8Array): Record<string, unknown> | null {
  try {
    return pageOfBytes(stored);
  } catch {
    return null;
  }
}

/** Indices of some columns among a row's values. */
const [keptAt, uidsAt, bodyAt] = ['kept', 'uids', 'body'].map((name) =>
  pageColumns.indexOf(name),
) as [number, number, number];

/** The columns that only the packed page has. */
const packed = [keptAt, uidsAt, bodyAt];

function pageValues(page: NewPage, first: Offset, now: number): SQLInputValue[] {
  const values = [
    first,
    page.uids.length / uidBytes,
    page.body.length,
    now,
    page.context.stream,
    JSON.stringify(page.context),
    page.items,
    page.onlySink ?? null,
    page.kept === null ? null : bytesOf(page.kept),
    page.uids,
    page.body,
  ];
  return [...values, checksum(values)];
}

/** The page of a whole row. Throws `state_damaged` if the row differs from the bytes written. */
export function pageOfRow(row: Record<string, unknown>): HeldPage {
  if (!isIntactRow(row)) {
    const [first, last] = [Number(row.first), Number(row.first) + Number(row.count) - 1];
    throw damageError(
      'reading the state database',
      `the page of the events ${first} to ${last} differs from the bytes written`,
    );
  }
  const { kept, only_sink: onlySink } = row;
  return {
    first: Number(row.first),
    count: Number(row.count),
    context: JSON.parse(String(row.context)) as PageContext,
    items: String(row.items),
    kept: kept instanceof Uint8Array ? new Uint32Array(new Uint8Array(kept).buffer) : null,
    uids: row.uids as Uint8Array,
    body: row.body as Uint8Array,
    ...(typeof onlySink === 'string' ? { onlySink } : {}),
  };
}

/** True if a row is as written. Older rows without a checksum must be plausible. */
export function isIntactRow(row: Record<string, unknown>): boolean {
  const { crc = null, ...rest } = row;
  const { uids, body } = row;
  if (!(uids instanceof Uint8Array && body instanceof Uint8Array)) return false;
  if (uids.length !== Number(row.count) * uidBytes || body.length !== row.bytes) return false;
  return crc === null ? isJson(row.context) : crc === checksum(Object.values(rest));
}

/** Over a row's values in the order of the table's columns. */
function checksum(values: readonly unknown[]): number {
  let crc = 0;
  for (const value of values) crc = crc32(value instanceof Uint8Array ? value : `${value}\0`, crc);
  return crc;
}

function isJson(text: unknown): boolean {
  try {
    JSON.parse(String(text));
    return true;
  } catch {
    return false;
  }
}

function bytesOf(numbers: Uint32Array): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
}

// A row of any table as bytes: its columns in JSON, a line end, and its blobs in order. Rows go to the log in this form
// (outbox.ts). A page is compressed there, too.

/** Stands for a blob in the JSON, by its length. */
interface BlobLength {
  readonly bytes: number;
}

const lineEnd = 0x0a;
const packing = {
  params: { [constants.ZSTD_c_compressionLevel]: 1 },
  // Compressed pages have 100 to 200 KB: with Node's default of 16 KB, a page takes a sixth more time.
  chunkSize: 64 * 1024,
};

/** A row of any table but that of pages. */
export function bytesOfRow(row: Row): Uint8Array {
  const blobs: Uint8Array[] = [];
  const columns = Object.entries(row).map(([column, value]) => {
    if (!(value instanceof Uint8Array)) return [column, value];
    blobs.push(value);
    return [column, { bytes: value.length } satisfies BlobLength];
  });
  return owned(
    Buffer.concat([Buffer.from(`${JSON.stringify(Object.fromEntries(columns))}\n`), ...blobs]),
  );
}

/** These bytes with memory of their own: a row moves to the main thread, and a part of shared memory is copied whole. */
function owned(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
}

/** The row of these bytes. */
export function rowOfBytes(value: Uint8Array): Record<string, SQLInputValue> {
  const whole = Buffer.from(value.buffer, value.byteOffset, value.length);
  let at = whole.indexOf(lineEnd) + 1;
  const row = JSON.parse(whole.toString('utf8', 0, at)) as Record<
    string,
    SQLInputValue | BlobLength
  >;
  return Object.fromEntries(
    Object.entries(row).map(([column, held]) => {
      if (held === null || typeof held !== 'object' || !('bytes' in held))
        return [column, held as SQLInputValue];
      at += held.bytes;
      return [column, whole.subarray(at - held.bytes, at)];
    }),
  );
}

/** A row of the table of pages with its whole body. */
export function bytesOfPage(row: Row): Uint8Array {
  return owned(zstdCompressSync(bytesOfRow(row), packing));
}

/** The page of these bytes. Throws if they are not as written. */
export function pageOfBytes(value: Uint8Array): Record<string, SQLInputValue> {
  return rowOfBytes(zstdDecompressSync(value));
}

// A row of the state database as bytes: its columns in JSON, a line end, and its blobs in order. Rows go to the log in
// this form (outbox.ts). A page is compressed, and the cache of a log stores it so, too (held-page.ts).

import type { SQLInputValue } from 'node:sqlite';
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { Row } from './statements.ts';

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

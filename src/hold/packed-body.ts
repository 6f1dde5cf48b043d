// The body of a page, compressed: SQLite copies each byte several times, computes a checksum over it, and writes it to its log
// and then to its database. So fewer bytes save more CPU than this compression costs. Invariant: a body that compression does not
// make smaller is stored as it is, so that the length of the stored bytes shows which form they have.

import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';

/** A smaller body saves less than the call costs; beside a larger one, its compressed form would take memory. */
const packedBytesMin = 16 * 1024;
const packedBytesMax = 4 * 1024 * 1024;
/** A fast level: a higher one costs more CPU than fewer bytes save. The window is as large as the processor's cache. */
const params = {
  [constants.ZSTD_c_compressionLevel]: -2,
  [constants.ZSTD_c_windowLog]: 17,
};
/** Most bodies shrink to less than this share of their size: their output is one buffer, and is not copied. */
const outputShare = 0.125;

/** The bytes to store for a body. */
export function packBody(body: Uint8Array): Uint8Array {
  if (body.length < packedBytesMin || body.length > packedBytesMax) return body;
  const chunkSize = Math.max(packedBytesMin, Math.ceil(body.length * outputShare));
  const packed = zstdCompressSync(body, { params, chunkSize });
  return packed.length < body.length ? packed : body;
}

/** Compressed bytes as they were before; null: they are damaged. */
export function unpacked(stored: Uint8Array): Uint8Array | null {
  try {
    return zstdDecompressSync(stored);
  } catch {
    return null;
  }
}

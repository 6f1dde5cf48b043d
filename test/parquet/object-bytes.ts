// An object in memory as the reader of Parquet asks for it.

import type { ObjectBytes } from '../../src/parquet/read.ts';

/** These bytes, in slices. */
export function objectBytes(bytes: Uint8Array): ObjectBytes {
  return {
    byteLength: bytes.length,
    slice: (from, to) => Uint8Array.from(bytes.subarray(from, to)).buffer,
  };
}

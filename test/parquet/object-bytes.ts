// An object in memory for the reader of Parquet.

import type { ObjectBytes } from '../../src/parquet/read.ts';

/** These bytes, in slices. */
export function objectBytes(bytes: Uint8Array): ObjectBytes {
  return {
    byteLength: bytes.length,
    slice: (from, to) => Uint8Array.from(bytes.subarray(from, to)).buffer,
  };
}

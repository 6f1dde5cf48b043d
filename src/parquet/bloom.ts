// Bloom filters of text columns (https://parquet.apache.org/docs/file-format/bloomfilter/): split
// blocks of eight 32-bit words, filled with the xxHash64 of each value's bytes. hyparquet-writer
// has an implementation whose hash allocates at each step: with it the filter of `metadata.uid`
// alone took a third of the time of all columns. Here each step is cut to 64 bits where it is
// computed, which V8 compiles to machine arithmetic.

import { optimalNumBytes } from 'hyparquet-writer/src/bloom.js';
import { lengthBytes, type ManyTexts } from './values.ts';

const falsePositives = 0.01;
const bytesMax = 1024 * 1024;

const salts = Int32Array.of(
  ...[0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947],
  0x5c6bfb31,
);

/** The filter's words for these texts; undefined without any. */
export function bloomFilterOf({ bytes, ends, length }: ManyTexts): Uint32Array | undefined {
  const distinct = new Set<bigint>();
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let from = 0;
  for (let i = 0; i < length; i++) {
    const end = ends[i] ?? 0;
    distinct.add(xxHash64(view, from + lengthBytes, end));
    from = end;
  }
  if (distinct.size === 0) return undefined;
  const size = Math.min(optimalNumBytes(distinct.size, falsePositives), bytesMax);
  const words = new Uint32Array(size / 4);
  const blocks = words.length / 8;
  for (const hash of distinct) {
    const high = Number(hash >> 32n);
    const low = Number(BigInt.asUintN(32, hash));
    const block = Math.floor((high * blocks) / 2 ** 32) * 8;
    for (let i = 0; i < 8; i++) {
      words[block + i] = (words[block + i] ?? 0) | (1 << (Math.imul(low, salts[i] ?? 0) >>> 27));
    }
  }
  return words;
}

const prime1 = 0x9e3779b185ebca87n;
const prime2 = 0xc2b2ae3d27d4eb4fn;
const prime3 = 0x165667b19e3779f9n;
const prime4 = 0x85ebca77c2b2ae63n;
const prime5 = 0x27d4eb2f165667c5n;

/** xxHash64 with seed 0 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md). */
function xxHash64(of: DataView, from: number, end: number): bigint {
  let at = from;
  let hash = prime5;
  if (end - from >= 32) {
    let one = BigInt.asUintN(64, prime1 + prime2);
    let two = prime2;
    let three = 0n;
    let four = BigInt.asUintN(64, 0n - prime1);
    for (; at + 32 <= end; at += 32) {
      one = round(one, of.getBigUint64(at, true));
      two = round(two, of.getBigUint64(at + 8, true));
      three = round(three, of.getBigUint64(at + 16, true));
      four = round(four, of.getBigUint64(at + 24, true));
    }
    hash = BigInt.asUintN(64, rotated(one, 1n) + rotated(two, 7n));
    hash = BigInt.asUintN(64, hash + rotated(three, 12n));
    hash = BigInt.asUintN(64, hash + rotated(four, 18n));
    hash = merged(merged(merged(merged(hash, one), two), three), four);
  }
  hash = BigInt.asUintN(64, hash + BigInt(end - from));
  for (; at + 8 <= end; at += 8) {
    const mixed = rotated(hash ^ round(0n, of.getBigUint64(at, true)), 27n);
    hash = BigInt.asUintN(64, BigInt.asUintN(64, mixed * prime1) + prime4);
  }
  if (at + 4 <= end) {
    const word = BigInt.asUintN(64, BigInt(of.getUint32(at, true)) * prime1);
    hash = BigInt.asUintN(64, BigInt.asUintN(64, rotated(hash ^ word, 23n) * prime2) + prime3);
    at += 4;
  }
  for (; at < end; at++) {
    const byte = BigInt.asUintN(64, BigInt(of.getUint8(at)) * prime5);
    hash = BigInt.asUintN(64, rotated(hash ^ byte, 11n) * prime1);
  }
  hash = BigInt.asUintN(64, (hash ^ (hash >> 33n)) * prime2);
  hash = BigInt.asUintN(64, (hash ^ (hash >> 29n)) * prime3);
  return hash ^ (hash >> 32n);
}

function rotated(word: bigint, bits: bigint): bigint {
  return BigInt.asUintN(64, BigInt.asUintN(64, word << bits) | (word >> (64n - bits)));
}

function round(lane: bigint, word: bigint): bigint {
  const sum = BigInt.asUintN(64, lane + BigInt.asUintN(64, word * prime2));
  return BigInt.asUintN(64, rotated(sum, 31n) * prime1);
}

function merged(hash: bigint, lane: bigint): bigint {
  return BigInt.asUintN(64, BigInt.asUintN(64, (hash ^ round(0n, lane)) * prime1) + prime4);
}

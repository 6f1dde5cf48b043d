// Bloom filters of text columns (https://parquet.apache.org/docs/file-format/bloomfilter/): split
// blocks of eight 32-bit words, filled with the xxHash64 of each value's bytes. hyparquet-writer
// has an implementation whose hash allocates at each step: with it the filter of `metadata.uid`
// alone took a third of the time of all columns. Here each step is cut to 64 bits where it is
// computed, which V8 compiles to machine arithmetic.

import { optimalNumBytes } from 'hyparquet-writer/src/bloom.js';

const falsePositives = 0.01;
const bytesMax = 1024 * 1024;

const salts = Int32Array.of(
  ...[0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947],
  0x5c6bfb31,
);

/** Strings, or all of them as UTF-8. */
export type Texts = readonly string[] | readonly Uint8Array[];

/** The filter's words for these values; undefined without values. */
export function bloomFilterOf(values: Texts): Uint32Array | undefined {
  const distinct = new Set<bigint>();
  for (const value of isText(values) ? new Set(values) : values) distinct.add(hashOf(value));
  if (distinct.size === 0) return undefined;
  const bytes = Math.min(optimalNumBytes(distinct.size, falsePositives), bytesMax);
  const words = new Uint32Array(bytes / 4);
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

const encoder = new TextEncoder();
let bytes = new Uint8Array(4096);
let view = new DataView(bytes.buffer);

function isText(values: Texts): values is readonly string[] {
  return typeof values[0] === 'string';
}

function hashOf(value: string | Uint8Array): bigint {
  const most = typeof value === 'string' ? value.length * 3 : value.length;
  if (most > bytes.length) {
    bytes = new Uint8Array(most);
    view = new DataView(bytes.buffer);
  }
  if (typeof value === 'string') {
    return xxHash64(view, encoder.encodeInto(value, bytes).written);
  }
  bytes.set(value);
  return xxHash64(view, value.length);
}

const prime1 = 0x9e3779b185ebca87n;
const prime2 = 0xc2b2ae3d27d4eb4fn;
const prime3 = 0x165667b19e3779f9n;
const prime4 = 0x85ebca77c2b2ae63n;
const prime5 = 0x27d4eb2f165667c5n;

/** xxHash64 with seed 0 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md). */
function xxHash64(of: DataView, length: number): bigint {
  let at = 0;
  let hash = prime5;
  if (length >= 32) {
    let one = BigInt.asUintN(64, prime1 + prime2);
    let two = prime2;
    let three = 0n;
    let four = BigInt.asUintN(64, 0n - prime1);
    for (; at + 32 <= length; at += 32) {
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
  hash = BigInt.asUintN(64, hash + BigInt(length));
  for (; at + 8 <= length; at += 8) {
    const mixed = rotated(hash ^ round(0n, of.getBigUint64(at, true)), 27n);
    hash = BigInt.asUintN(64, BigInt.asUintN(64, mixed * prime1) + prime4);
  }
  if (at + 4 <= length) {
    const word = BigInt.asUintN(64, BigInt(of.getUint32(at, true)) * prime1);
    hash = BigInt.asUintN(64, BigInt.asUintN(64, rotated(hash ^ word, 23n) * prime2) + prime3);
    at += 4;
  }
  for (; at < length; at++) {
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

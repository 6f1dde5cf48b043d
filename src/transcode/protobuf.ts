// Lengths and numbers of Protocol Buffers, written in place. Invariant: the bytes equal those of
// the formats (formats/protobuf.ts).

import type { NumberTags } from '../contracts/index.ts';

const varintBytesMax = 10;
const doubleBytes = 8;
/** The largest value of a one-byte varint. */
export const oneByteMax = 0x7f;
/** Bytes of nanoseconds, and the last millisecond that they can hold. */
export const nanosBytes = 8;
export const nanosMaxMs = 18_446_744_073_709;
/** Below this, 32-bit shifts suffice. */
const smallMax = 2 ** 28;

/** Bytes of the varint of a whole number that is not below zero. */
export function varintLength(value: number): number {
  let bytes = 1;
  for (let over = 128; value >= over; over *= 128) bytes += 1;
  return bytes;
}

/** Bytes of a number with its tag. */
export function numberBytes(value: number): number {
  if (!Number.isInteger(value)) return 1 + doubleBytes;
  return 1 + (value < 0 ? varintBytesMax : varintLength(value));
}

/** A varint by itself. */
export function varintOf(value: number): Uint8Array {
  const bytes = new Uint8Array(varintBytesMax);
  return bytes.subarray(0, writeVarint(value, new DataView(bytes.buffer), 0));
}

/** Writes an int64 that a number holds exactly, and returns its end. */
export function writeVarint(value: number, out: DataView, at: number): number {
  let rest = value < 0 ? 0 : value;
  let to = at;
  if (value < 0) {
    let more = BigInt.asUintN(64, BigInt(value));
    for (; more > 0x7fn; more >>= 7n) {
      out.setUint8(to, Number(more & 0x7fn) | 0x80);
      to += 1;
    }
    rest = Number(more);
  }
  for (; rest >= smallMax; rest = Math.floor(rest / 128)) {
    out.setUint8(to, (rest % 128) | 0x80);
    to += 1;
  }
  for (; rest > oneByteMax; rest >>>= 7) {
    out.setUint8(to, (rest & 0x7f) | 0x80);
    to += 1;
  }
  out.setUint8(to, rest);
  return to + 1;
}

/** Writes a number under its tag, and returns its end. */
export function writeNumber(
  value: number,
  { int, double }: NumberTags,
  out: DataView,
  at: number,
): number {
  if (Number.isInteger(value)) {
    out.setUint8(at, int);
    return writeVarint(value, out, at + 1);
  }
  out.setUint8(at, double);
  out.setFloat64(at + 1, value, true);
  return at + 1 + doubleBytes;
}

/** Writes epoch milliseconds as nanoseconds, and returns their end. */
export function writeNanos(ms: number, out: DataView, at: number): number {
  const low = (ms % 2 ** 32) * 1e6;
  const high = Math.floor(ms / 2 ** 32) * 1e6 + Math.floor(low / 2 ** 32);
  out.setUint32(at, low % 2 ** 32, true);
  out.setUint32(at + 4, high, true);
  return at + nanosBytes;
}

// The values that all formats write alike: verbatim bytes, times and the uid. Invariants: bytes are
// moved four at a time, so the bytes after a value are overwritten; only the texts of times are
// allocated.

import type { FoundValues } from './guards.ts';
import { care } from './shape-tree.ts';

/** Length of a uid's and a time's text. */
export const uidDigits = 64;
export const stampBytes = 24;
export const clockBytes = 15;
/** Bytes are moved in fours: those after a line are overwritten. */
export const spill = 8;

/** Input and output of all lines of a page. */
export interface Work extends FoundValues {
  readonly view: DataView;
  readonly fetchedAt: number;
  readonly uids: Uint8Array;
  /** The last found record: start, end, and the care that any of its values needs. */
  from: number;
  to: number;
  allCares: number;
}

/** Epoch milliseconds of a leaf, or of the page. */
export function leafTime({ fetchedAt, times }: Work, leaf: number): number {
  return leaf < 0 ? fetchedAt : (times[leaf] as number);
}

/** The number in a leaf: digits with an optional minus and fraction. */
export function numberOf({ bytes, starts, ends, cares }: Work, leaf: number): number {
  const start = starts[leaf] as number;
  const end = ends[leaf] as number;
  if (bytes[start] === 0x2d || ((cares[leaf] as number) & care.fraction) !== 0) {
    return Number(bytes.toString('latin1', start, end));
  }
  let value = 0;
  for (let at = start; at < end; at += 1) value = value * 10 + (bytes[at] as number) - 0x30;
  return value;
}

/** Copies bytes of the page verbatim; returns their end. */
export function copy(
  { view, bytes }: Work,
  start: number,
  end: number,
  out: DataView,
  at: number,
): number {
  let from = start;
  let to = at;
  for (; from + 4 <= end; from += 4) {
    out.setInt32(to, view.getInt32(from, true), true);
    to += 4;
  }
  for (; from < end; from += 1) {
    out.setUint8(to, bytes[from] as number);
    to += 1;
  }
  return to;
}

/** Two hexadecimal digits of each byte, the first in the lower byte. */
const hex = Uint16Array.from({ length: 256 }, (_, byte) =>
  Buffer.from(byte.toString(16).padStart(2, '0')).readUInt16LE(0),
);

/** Writes a uid; returns its end. */
export function writeHex(bytes: Uint8Array, from: number, out: DataView, at: number): number {
  for (let i = 0; i < uidDigits / 2; i += 1) {
    out.setUint16(at + i * 2, hex[bytes[from + i] as number] as number, true);
  }
  return at + uidDigits;
}

/** Number of digits of milliseconds: 13 to 15. */
export function digitsOf(value: number): number {
  let length = 13;
  for (let over = 1e13; value >= over; over *= 10) length += 1;
  return length;
}

/** Writes 13 to 15 digits; returns their end. */
export function writeDigits(value: number, out: DataView, at: number): number {
  let left = value;
  const length = digitsOf(value);
  for (let place = at + length - 1; place >= at; place -= 1) {
    const next = Math.floor(left / 10);
    out.setUint8(place, 0x30 + (left - next * 10));
    left = next;
  }
  return at + length;
}

/**
 * Writes `2026-11-23T12:34:56.789Z`: the source's own text if it has this form without a leap
 * second.
 */
export function writeStamp(work: Work, leaf: number, out: DataView, at: number): number {
  if (leaf >= 0) {
    const { bytes } = work;
    const start = work.starts[leaf] as number;
    const isStamp =
      (work.ends[leaf] as number) - start === stampBytes &&
      bytes[start + 10] === 0x54 &&
      bytes[start + 17] !== 0x36 &&
      bytes[start + 19] === 0x2e &&
      bytes[start + 23] === 0x5a;
    if (isStamp) return copy(work, start, start + stampBytes, out, at);
  }
  return writeAscii(new Date(leafTime(work, leaf)).toISOString(), out, at);
}

/** Writes an ASCII text; returns its end. */
export function writeAscii(text: string, out: DataView, at: number): number {
  for (let i = 0; i < text.length; i += 1) out.setUint8(at + i, text.charCodeAt(i));
  return at + text.length;
}

/** Milliseconds as seconds; exact within 15 digits. */
export function secondsText(time: number): string {
  return String(time / 1000);
}

/** `Nov 3 12:34:56`: a time as in RFC 3164, in UTC. */
export function clockText(time: number): string {
  // `Tue, 03 Nov 2026 12:34:56 GMT`; years have at most four digits here.
  const text = new Date(time).toUTCString();
  const day = text[5] === '0' ? ` ${text[6]}` : text.slice(5, 7);
  return `${text.slice(8, 11)} ${day} ${text.slice(17, 25)}`;
}

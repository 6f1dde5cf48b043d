// A line with gaps: bytes that stand still, and what of a record goes between them. Writing one is
// the hottest loop of transcoding: bytes are moved four at a time, nothing is made. What must stay
// true: what is written is what the ordinary path would write, or nothing is.

import type { Copying } from '../contracts/copying.ts';
import { escapedCef, escapedJson, isPlain, plainText } from './escaping.ts';
import type { Found } from './guards.ts';
import { care } from './shape-tree.ts';

/** What stands in a gap. A leaf of -1 is the page: when it was read. */
export type Gap =
  | { readonly kind: 'value' | 'milliseconds' | 'stamp' | 'clock'; readonly leaf: number }
  | { readonly kind: 'uid' | 'record' };

/** A gap and the text before it. */
export interface Step {
  readonly before: string;
  readonly gap: Gap;
}

/** A line as it was learned. */
export interface LearnedLine {
  readonly steps: readonly Step[];
  readonly after: string;
}

const kinds = { value: 0, milliseconds: 1, stamp: 2, clock: 3, uid: 4, record: 5 } as const;
const uidDigits = 64;
const stampBytes = 24;
/** LEEF tells times by their 13 digits. */
const leefTimeMax = 1e13;
/** The most bytes that a byte of a text becomes, and those of all else in a gap. */
const growthMax = 2;
const gapBytesMax = 64;
/** Bytes are moved by fours: what is behind a line is written over. */
const spill = 8;

/** What all lines of a page are written from and into. */
export interface Work extends Found {
  readonly view: DataView;
  readonly fetchedAt: number;
  readonly uids: Uint8Array;
  /** The record found last: where it begins and ends, and what any of its values needs care for. */
  from: number;
  to: number;
  allCares: number;
}

/** Writes lines of one kind. */
export class Template {
  readonly #form: Copying['form'];
  /** The still bytes before each gap, then those behind the last: each from a multiple of four on. */
  readonly #words: Int32Array;
  readonly #lengths: Uint16Array;
  readonly #kinds: Uint8Array;
  readonly #leaves: Int16Array;
  readonly #stillBytes: number;

  constructor({ steps, after }: LearnedLine, form: Copying['form']) {
    this.#form = form;
    const still = [...steps.map(({ before }) => before), after].map((text) => Buffer.from(text));
    this.#lengths = Uint16Array.from(still, ({ length }) => length);
    const padded = still.map((bytes) => Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)]));
    const all = Buffer.concat(padded);
    this.#words = Int32Array.from({ length: all.length / 4 }, (_, i) => all.readInt32LE(i * 4));
    this.#kinds = Uint8Array.from(steps, ({ gap }) => kinds[gap.kind]);
    this.#leaves = Int16Array.from(steps, ({ gap }) => ('leaf' in gap ? gap.leaf : 0));
    this.#stillBytes = all.length + steps.length * gapBytesMax + spill;
  }

  /** The longest still text that a template can hold. */
  static readonly stillMax = 0xffff;

  /** Room for the line of the record found last. */
  roomFor({ starts, ends, from, to }: Work): number {
    let bytes = this.#stillBytes + (this.#form === 'record' ? to - from : 0);
    for (let i = 0; i < this.#kinds.length; i += 1) {
      const leaf = this.#leaves[i] as number;
      if (this.#kinds[i] === kinds.value) {
        bytes += ((ends[leaf] as number) - (starts[leaf] as number)) * growthMax;
      }
    }
    return bytes;
  }

  /** Writes the line of the record found last and returns its end; -1 where it cannot. */
  write(work: Work, uidAt: number, out: DataView, from: number): number {
    const words = this.#words;
    const lengths = this.#lengths;
    const gaps = this.#kinds.length;
    let at = from;
    let word = 0;
    for (let i = 0; ; i += 1) {
      const length = lengths[i] as number;
      for (let done = 0; done < length; done += 4) {
        out.setInt32(at + done, words[word] as number, true);
        word += 1;
      }
      at += length;
      if (i === gaps) return at;
      at = this.#gap(i, work, uidAt, out, at);
      if (at < 0) return -1;
    }
  }

  #gap(i: number, work: Work, uidAt: number, out: DataView, at: number): number {
    const leaf = this.#leaves[i] as number;
    switch (this.#kinds[i]) {
      case kinds.value:
        return this.#value(leaf, work, out, at);
      case kinds.uid:
        return writeHex(work.uids, uidAt, out, at);
      case kinds.record:
        return this.#record(work, out, at);
      case kinds.milliseconds: {
        const time = timeOf(work, leaf);
        return this.#form === 'leef' && time >= leefTimeMax ? -1 : writeDigits(time, out, at);
      }
      case kinds.clock:
        return writeAscii(clockText(timeOf(work, leaf)), out, at);
      default:
        return writeStamp(work, leaf, out, at);
    }
  }

  #record(work: Work, out: DataView, at: number): number {
    const { bytes, from, to, allCares } = work;
    const isSeen = (allCares & (care.high | care.mark)) === 0 || isPlain(bytes, from, to);
    return isSeen ? copy(work, from, to, out, at) : -1;
  }

  #value(leaf: number, work: Work, out: DataView, at: number): number {
    const start = work.starts[leaf] as number;
    const end = work.ends[leaf] as number;
    const cares = (work.cares[leaf] as number) & ~(care.at | care.fraction);
    const form = this.#form;
    const { bytes } = work;
    // Pairs of keys and values are written without the blanks at their ends.
    const isPair = form === 'cef' || form === 'leef';
    if (isPair && (bytes[start] === 0x20 || bytes[end - 1] === 0x20)) return -1;
    if (cares === 0) return copy(work, start, end, out, at);
    switch (form) {
      case 'cef':
        return escapedCef(bytes, start, end, out, at);
      case 'leef':
        return plainText(bytes, start, end, out, at, 'look-alikes');
      case 'text':
        return plainText(bytes, start, end, out, at, 'as it is');
      default:
        return escapedJson(bytes, start, end, out, at, form === 'visible json');
    }
  }
}

function timeOf({ fetchedAt, times }: Work, leaf: number): number {
  return leaf < 0 ? fetchedAt : (times[leaf] as number);
}

function copy(
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

function writeHex(bytes: Uint8Array, from: number, out: DataView, at: number): number {
  for (let i = 0; i < uidDigits / 2; i += 1) {
    out.setUint16(at + i * 2, hex[bytes[from + i] as number] as number, true);
  }
  return at + uidDigits;
}

/** 13 to 15 digits. */
function writeDigits(value: number, out: DataView, at: number): number {
  let left = value;
  let length = 13;
  for (let over = 1e13; value >= over; over *= 10) length += 1;
  for (let place = at + length - 1; place >= at; place -= 1) {
    const next = Math.floor(left / 10);
    out.setUint8(place, 0x30 + (left - next * 10));
    left = next;
  }
  return at + length;
}

/** `2026-11-23T12:34:56.789Z`: the source's own text where it is that, with no leap second. */
function writeStamp(work: Work, leaf: number, out: DataView, at: number): number {
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
  return writeAscii(new Date(timeOf(work, leaf)).toISOString(), out, at);
}

function writeAscii(text: string, out: DataView, at: number): number {
  for (let i = 0; i < text.length; i += 1) out.setUint8(at + i, text.charCodeAt(i));
  return at + text.length;
}

/** `Nov  3 12:34:56`: a time as RFC 3164 has it, in UTC. */
export function clockText(time: number): string {
  // `Tue, 03 Nov 2026 12:34:56 GMT`; of a year with more than four digits there are no times.
  const text = new Date(time).toUTCString();
  const day = text[5] === '0' ? ` ${text[6]}` : text.slice(5, 7);
  return `${text.slice(8, 11)} ${day} ${text.slice(17, 25)}`;
}

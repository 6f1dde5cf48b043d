// Encoded lines, many events in one buffer. The lines follow each other with an LF between, so that
// a sink that frames by LF sends the buffer unchanged, and one that counts octets copies ranges. A
// page is encoded once per distinct selection and format. A format whose line is the record verbatim
// is copied here; the memory of the lines is freed with their last reader.

import type { EncodedLines, Event, Format, Offset, Slices } from '../contracts/index.ts';

const lf = 0x0a;
/** A UTF-16 unit needs at most this many bytes in UTF-8. */
const utf8BytesPerUnitMax = 3;

/** Space for a line or two more than expected, before the buffer grows. */
const spareBytes = 16 * 1024;

/** The encoder of an event: a format, or the records of its documents. */
type Encoding = Pick<Format, 'encode'>;

/** Lines whose memory belongs to them alone. */
export interface OwnLines extends EncodedLines {
  readonly bytes: Buffer<ArrayBuffer>;
}

/** Writes the lines of one page. */
export class LineWriter {
  readonly #encoding: Encoding;
  readonly #starts: Uint32Array;
  readonly #ends: Uint32Array;
  #bytes: Buffer<ArrayBuffer>;
  #view: DataView;
  #length = 0;
  #at = 0;

  /** Expects at most `count` lines, of about `bytes` bytes together. */
  constructor(encoding: Encoding, count: number, bytes: number) {
    this.#encoding = encoding;
    this.#starts = new Uint32Array(count);
    this.#ends = new Uint32Array(count);
    this.#bytes = Buffer.allocUnsafeSlow(bytes + spareBytes);
    this.#view = viewOf(this.#bytes);
  }

  add(event: Event): void {
    const line = this.#encoding.encode(event);
    if (typeof line === 'string') {
      this.#reserve(line.length * utf8BytesPerUnitMax + 1);
      this.wrote(this.#at + this.#bytes.write(line, this.#at, 'utf8'));
    } else {
      this.#reserve(line.length + 1);
      this.#bytes.set(line, this.#at);
      this.wrote(this.#at + line.length);
    }
  }

  /**
   * The position of the next line, with space for `bytes` and an LF, for a caller that writes the
   * line itself.
   */
  room(bytes: number): { readonly view: DataView; readonly at: number } {
    this.#reserve(bytes + 1);
    return { view: this.#view, at: this.#at };
  }

  /** Ends the line that the caller has written. */
  wrote(end: number): void {
    this.#starts[this.#length] = this.#at;
    this.#ends[this.#length] = end;
    this.#bytes[end] = lf;
    this.#at = end + 1;
    this.#length += 1;
  }

  /** Copies lines from `bytes` at `start`, with an LF at each end; an end of 0 is no line. */
  take(bytes: Buffer, start: number, ends: Uint32Array): void {
    const stop = ends.reduce((last, end) => Math.max(last, end + 1), start);
    this.#reserve(stop - start);
    const shift = this.#at - start;
    bytes.copy(this.#bytes, this.#at, start, stop);
    for (const end of ends) {
      if (end === 0) continue;
      this.#starts[this.#length] = this.#at;
      this.#ends[this.#length] = end + shift;
      this.#at = end + shift + 1;
      this.#length += 1;
    }
  }

  /** The lines so far; nothing may be added afterwards. */
  lines(): OwnLines {
    return {
      bytes: this.#bytes.subarray(0, this.#at),
      starts: this.#starts.subarray(0, this.#length),
      ends: this.#ends.subarray(0, this.#length),
      length: this.#length,
    };
  }

  #reserve(bytes: number): void {
    const needed = this.#at + bytes;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2));
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
    this.#view = viewOf(larger);
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

/** Encodes events in order. */
export function encodeLines(events: readonly Event[], encoding: Encoding): OwnLines {
  const writer = new LineWriter(encoding, events.length, 0);
  for (const event of events) writer.add(event);
  return writer.lines();
}

/** Lines from `from` up to `to` of the same buffer; nothing is copied. */
export function subLines(lines: EncodedLines, from: number, to: number): EncodedLines {
  return {
    bytes: lines.bytes,
    starts: lines.starts.subarray(from, to),
    ends: lines.ends.subarray(from, to),
    length: to - from,
  };
}

/** Only the lines at these indices; nothing is copied. */
export function pickLines(lines: EncodedLines, indices: readonly number[]): EncodedLines {
  return {
    bytes: lines.bytes,
    starts: Uint32Array.from(indices, (index) => lines.starts[index] ?? 0),
    ends: Uint32Array.from(indices, (index) => lines.ends[index] ?? 0),
    length: indices.length,
  };
}

/** Lines of several buffers, copied to one. */
export function joinLines(parts: readonly EncodedLines[]): OwnLines {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const starts = new Uint32Array(length);
  const ends = new Uint32Array(length);
  const size = parts.reduce((sum, part) => sum + spanOf(part).length, 0);
  const bytes = Buffer.allocUnsafeSlow(size);
  let at = 0;
  let index = 0;
  for (const part of parts) {
    const from = part.starts[0] ?? 0;
    const span = spanOf(part);
    bytes.set(span, at);
    for (let i = 0; i < part.length; i += 1) {
      starts[index] = (part.starts[i] ?? 0) - from + at;
      ends[index] = (part.ends[i] ?? 0) - from + at;
      index += 1;
    }
    at += span.length;
  }
  return { bytes, starts, ends, length };
}

/** The bytes from the first line to the LF of the last one. */
function spanOf({ bytes, starts, ends, length }: EncodedLines): Uint8Array {
  return length === 0 ? noLines.bytes : bytes.subarray(starts[0], (ends[length - 1] ?? 0) + 1);
}

/** No lines. */
export const noLines: EncodedLines = {
  bytes: new Uint8Array(0),
  starts: new Uint32Array(0),
  ends: new Uint32Array(0),
  length: 0,
};

/** Index of the first event at or after an offset. */
export function indexAt(events: readonly Event[], offset: Offset): number {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((events[middle]?.offset ?? 0) < offset) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Records of a page as lines of their own bytes, for formats whose line is the record verbatim
// (`Format.verbatim`). They are copied together instead of one by one: in the page they are
// adjacent, with a comma at the position of the line end. Invariants: a line equals the result of
// the format's `encode` byte for byte; the page's own bytes are not changed.

const carriageReturn = 0x0d;
const blank = 0x20;

/** The lines of a body's records, or of those with an index in `kept`. */
export function recordLines(body: Buffer, slices: Slices, kept: Uint32Array | null): OwnLines {
  const { starts, ends } = kept === null ? slices : picked(slices, kept);
  const lines = sideBySide(starts, ends)
    ? copiedWhole(body, starts, ends)
    : copiedEach(body, starts, ends);
  const { bytes } = lines;
  blankOut(bytes, lf);
  blankOut(bytes, carriageReturn);
  for (const end of lines.ends) bytes[end] = lf;
  return { ...lines, length: starts.length };
}

type Places = Pick<Slices, 'starts' | 'ends'>;
type Copied = Places & { readonly bytes: Buffer<ArrayBuffer> };

function picked({ starts, ends }: Slices, kept: Uint32Array): Places {
  return { starts: kept.map((at) => starts[at] ?? 0), ends: kept.map((at) => ends[at] ?? 0) };
}

/** True if exactly one byte separates the records. */
function sideBySide(starts: Uint32Array, ends: Uint32Array): boolean {
  for (let i = 1; i < starts.length; i += 1) {
    if ((starts[i] ?? 0) - (ends[i - 1] ?? 0) !== 1) return false;
  }
  return starts.length > 0;
}

function copiedWhole(body: Buffer, starts: Uint32Array, ends: Uint32Array): Copied {
  const from = starts[0] ?? 0;
  const to = ends.at(-1) ?? from;
  const bytes = Buffer.allocUnsafeSlow(to - from + 1);
  body.copy(bytes, 0, from, to);
  return { bytes, starts: starts.map((at) => at - from), ends: ends.map((at) => at - from) };
}

function copiedEach(body: Buffer, starts: Uint32Array, ends: Uint32Array): Copied {
  const length = starts.reduce((sum, start, i) => sum + (ends[i] ?? 0) - start + 1, 0);
  const copied = {
    bytes: Buffer.allocUnsafeSlow(length),
    starts: starts.slice(),
    ends: ends.slice(),
  };
  let at = 0;
  for (let i = 0; i < starts.length; i += 1) {
    const start = at;
    at += body.copy(copied.bytes, at, starts[i], ends[i]);
    copied.starts[i] = start;
    copied.ends[i] = at;
    at += 1;
  }
  return copied;
}

/** In valid JSON a raw CR or LF is only between tokens, where a blank is equivalent. */
function blankOut(bytes: Buffer, byte: number): void {
  for (let at = bytes.indexOf(byte); at >= 0; at = bytes.indexOf(byte, at + 1)) bytes[at] = blank;
}

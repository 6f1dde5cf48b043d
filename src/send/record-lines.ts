// Records of a page as lines of their own bytes, for formats whose line is the record verbatim
// (`Format.verbatim`). They are copied together instead of one by one: in the page they are
// adjacent, with a comma at the position of the line end. Invariants: a line equals the result of
// the format's `encode` byte for byte; the page's own bytes are not changed.

import type { Slices } from '../contracts/index.ts';
import type { OwnLines } from './encode.ts';

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const blank = 0x20;

/** The lines of a body's records, or of those with an index in `kept`. */
export function recordLines(body: Buffer, slices: Slices, kept: Uint32Array | null): OwnLines {
  const { starts, ends } = kept === null ? slices : picked(slices, kept);
  const lines = sideBySide(starts, ends)
    ? copiedWhole(body, starts, ends)
    : copiedEach(body, starts, ends);
  const { bytes } = lines;
  blankOut(bytes, lineFeed);
  blankOut(bytes, carriageReturn);
  for (const end of lines.ends) bytes[end] = lineFeed;
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

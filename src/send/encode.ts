// Encoded lines, many events in one buffer. Each line is written behind the one before it, with an LF between, so
// that a sink that frames by LF sends the buffer as it is and one that counts octets copies ranges. A page is encoded once per
// distinct selection and format.

import type { Event, Offset } from '../contracts/event.ts';
import type { Format } from '../contracts/format.ts';
import type { EncodedLines } from '../contracts/sink.ts';

const lf = 0x0a;
/** An UTF-16 unit takes at most this many bytes in UTF-8. */
const utf8BytesPerUnitMax = 3;

/** Lines are built here and then copied out at their exact size; grows to the largest page seen. */
let scratch = Buffer.allocUnsafeSlow(256 * 1024);

/** Encodes events one after the other. */
export function encodeLines(events: readonly Event[], format: Format): EncodedLines {
  const starts = new Uint32Array(events.length);
  const ends = new Uint32Array(events.length);
  let at = 0;
  for (let i = 0; i < events.length; i += 1) {
    const event = events[i];
    if (event === undefined) continue;
    const line = format.encode(event);
    starts[i] = at;
    if (typeof line === 'string') {
      reserve(at + line.length * utf8BytesPerUnitMax + 1, at);
      at += scratch.write(line, at, 'utf8');
    } else {
      reserve(at + line.length + 1, at);
      scratch.set(line, at);
      at += line.length;
    }
    ends[i] = at;
    scratch[at] = lf;
    at += 1;
  }
  return { bytes: Buffer.from(scratch.subarray(0, at)), starts, ends, length: events.length };
}

function reserve(bytes: number, used: number): void {
  if (bytes <= scratch.length) return;
  const larger = Buffer.allocUnsafeSlow(Math.max(bytes, scratch.length * 2));
  scratch.copy(larger, 0, 0, used);
  scratch = larger;
}

/** Lines `from` up to `to` of the same buffer; nothing is copied. */
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

/** Lines of several buffers as one. */
export function joinLines(parts: readonly EncodedLines[]): EncodedLines {
  const only = parts[0];
  if (parts.length === 1 && only !== undefined) return only;
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const starts = new Uint32Array(length);
  const ends = new Uint32Array(length);
  const chunks: Uint8Array[] = [];
  let at = 0;
  let index = 0;
  for (const part of parts) {
    if (part.length === 0) continue;
    const from = part.starts[0] ?? 0;
    const to = (part.ends[part.length - 1] ?? 0) + 1;
    chunks.push(part.bytes.subarray(from, to));
    for (let i = 0; i < part.length; i += 1) {
      starts[index] = (part.starts[i] ?? 0) - from + at;
      ends[index] = (part.ends[i] ?? 0) - from + at;
      index += 1;
    }
    at += to - from;
  }
  return { bytes: Buffer.concat(chunks, at), starts, ends, length };
}

/** The events of a page that a sink is to get, and their lines where it carries lines. */
export interface Selected {
  readonly events: readonly Event[];
  readonly lines: EncodedLines;
  /** Mean size of the page's records, which bounds batches where there are no lines to measure. */
  readonly recordBytes: number;
}

/** No lines: for sinks that build documents from the events. */
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

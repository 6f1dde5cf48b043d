// Extracts the bytes of some events from a batch's encoded lines, for sinks that write lines
// unchanged. Lines are usually adjacent, and then nothing is copied; after filtering or a partial
// response there may be gaps between them.

import type { EncodedLines } from '../../src/contracts/index.ts';
import type { Range } from './halves.ts';

/** The lines of the events in `range`, each with its LF. Shares the batch's memory if possible. */
export function linesOf(lines: EncodedLines, range: Range): Uint8Array {
  if (range.to <= range.from) return new Uint8Array(0);
  if (sideBySide(lines, range)) {
    return lines.bytes.subarray(lines.starts[range.from], at(lines.ends, range.to - 1) + 1);
  }
  let length = 0;
  for (let i = range.from; i < range.to; i++) length += lineAt(lines, i).length + 1;
  const joined = new Uint8Array(length);
  let end = 0;
  for (let i = range.from; i < range.to; i++) {
    const line = lineAt(lines, i);
    joined.set(line, end);
    end += line.length + 1;
    joined[end - 1] = 0x0a;
  }
  return joined;
}

/** The events in `range`, each of which is JSON, as one JSON array. */
export function jsonArrayOf(lines: EncodedLines, range: Range): Uint8Array {
  const joined = linesOf(lines, range);
  const array = Buffer.allocUnsafe(Math.max(joined.length + 1, 2));
  array[0] = 0x5b;
  array.set(joined, 1);
  let end = 0;
  for (let i = range.from; i < range.to; i++) {
    end += lineAt(lines, i).length + 1;
    array[end] = 0x2c;
  }
  array[array.length - 1] = 0x5d;
  return array;
}

/** One encoded event, without its LF. */
export function lineAt(lines: EncodedLines, index: number): Uint8Array {
  return lines.bytes.subarray(at(lines.starts, index), at(lines.ends, index));
}

function sideBySide(lines: EncodedLines, range: Range): boolean {
  for (let i = range.from + 1; i < range.to; i++) {
    if (lines.starts[i] !== at(lines.ends, i - 1) + 1) return false;
  }
  return true;
}

function at(places: Uint32Array, index: number): number {
  const place = places[index];
  if (place === undefined) throw new RangeError(`a batch has no line ${index}`);
  return place;
}

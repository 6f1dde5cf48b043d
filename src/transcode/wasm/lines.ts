// AssemblyScript, compiled to ../lines.wasm by `npm run wasm`. One call writes the lines of
// consecutive records, from the tables of ../runs.ts, and returns at the first record that is not
// certain, which is left to ../transcoder.ts. Invariant: a written line equals the transcoder's; if
// the transcoder would write none, none is written.

import { allCares, hashOf, holds, kindOf } from './kinds';
import { copy, ends, highCare, markCare, pageStamp, prepare, starts, times } from './memory';
import { find } from './shapes';
import { clock, hex, isPlain, milliseconds, stamp, value } from './values';

/** Whether `run` stopped for lack of space. */
let isFull: bool = false;

export { hashOf };

/** To be called once, first: returns the start of the memory that is unused here. */
export function begin(): usize {
  prepare();
  return __heap_base;
}

/** Address for the text of the page's time, 24 bytes. */
export function stampPlace(): usize {
  return pageStamp;
}

/** True if the last run ended for lack of space. */
export function wasFull(): bool {
  return isFull;
}

/**
 * Writes the lines of `count` records, with their byte ranges at `records` and their uids at
 * `uids`, to `out`, at most up to `outEnd`, with an LF after each. The address of each LF is stored
 * in `lineEnds`, or 0 for a record without a line. Returns the number of processed records.
 */
export function run(
  root: usize,
  records: usize,
  count: u32,
  uids: usize,
  out: usize,
  outEnd: usize,
  lineEnds: usize,
  form: u32,
  lineBytesMax: u32,
  fetchedAt: f64,
): u32 {
  isFull = false;
  let at = out;
  for (let i: u32 = 0; i < count; i += 1) {
    const from = load<u32>(records + i * 8);
    const to = load<u32>(records + i * 8, 4);
    const shape = find(root, from, to);
    if (shape === 0) return i;
    const kind = kindOf(shape);
    if (kind === 0 || !holds(kind)) return i;
    const template = load<u32>(kind, 16);
    let end: usize = 0;
    if (template !== 0) {
      isFull = at + roomFor(template, from, to) > outEnd;
      if (isFull) return i;
      end = write(template, from, to, uids + i * 32, form, fetchedAt, at);
      if (end === 0 || end - at > lineBytesMax) return i;
      store<u8>(end, 0x0a);
      at = end + 1;
    }
    store<u32>(lineEnds + i * 4, <u32>end);
    store<u32>(shape, load<u32>(shape, 12) + 1, 12);
    store<u32>(kind, load<u32>(kind, 20) + 1, 20);
  }
  return count;
}

/** Required space for the line of the found record. */
function roomFor(template: usize, from: usize, to: usize): usize {
  let bytes: usize = load<u32>(template, 4);
  let step = template + 8;
  for (let left = load<u32>(template); left > 0; left -= 1, step += 16) {
    const kind = load<u32>(step, 8);
    if (kind === 0) {
      const leaf = load<u32>(step, 12) * 4;
      bytes += (load<u32>(ends + leaf) - load<u32>(starts + leaf)) * 2;
    } else if (kind === 5) {
      bytes += to - from;
    }
  }
  return bytes;
}

/** Writes a record's line and returns its end; 0 if not certain. */
function write(
  template: usize,
  from: usize,
  to: usize,
  uid: usize,
  form: u32,
  fetchedAt: f64,
  out: usize,
): usize {
  let at = out;
  let step = template + 8;
  for (let left = load<u32>(template); left > 0; left -= 1, step += 16) {
    at = copy(load<u32>(step), load<u32>(step, 4), at);
    const leaf = load<i32>(step, 12);
    // `gapKinds` of ../template.ts.
    switch (load<u32>(step, 8)) {
      case 0:
        at = value(leaf, form, at);
        break;
      case 1:
        at = milliseconds(leaf < 0 ? fetchedAt : load<f64>(times + leaf * 8), at);
        break;
      case 2:
        at = stamp(leaf, at);
        break;
      case 3:
        at = clock(leaf, at);
        break;
      case 4:
        at = hex(uid, at);
        break;
      case 5:
        if ((allCares & (highCare | markCare)) !== 0 && !isPlain(from, to)) return 0;
        at = copy(from, to - from, at);
        break;
      default:
        at = 0;
    }
    if (at === 0) return 0;
  }
  return copy(load<u32>(step), load<u32>(step, 4), at);
}

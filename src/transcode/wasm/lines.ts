// AssemblyScript, compiled to ../lines.wasm by `npm run wasm`. One call writes the lines of records,
// one after the other, from tables that ../tables.ts has made of what was learned, and returns at the
// first record of which it is not certain, which is for ../transcoder.ts. What must stay true: a line
// that is written is the one that the transcoder would write; where it would write none, none is.

import { allCares, hashOf, holds, kindOf } from './kinds';
import { copy, ends, highCare, markCare, pageStamp, prepare, starts, times } from './memory';
import { find } from './shapes';
import { clock, hex, isPlain, milliseconds, stamp, value } from './values';

/** What `run` says of the record that it stopped at. */
let isFull: bool = false;

export { hashOf };

/** To be called once, first: returns where memory begins that nothing here uses. */
export function begin(): usize {
  prepare();
  return __heap_base;
}

/** Where the text of the page's time is to be written, 24 bytes. */
export function stampPlace(): usize {
  return pageStamp;
}

/** True where the last run ended since there was no room. */
export function wasFull(): bool {
  return isFull;
}

/**
 * Writes the lines of `count` records, whose starts and ends stand at `records` and whose uids at
 * `uids`, to `out` and not beyond `outEnd`, an LF behind each. The place of each LF goes to
 * `lineEnds`, or 0 for a record that has no line. Returns how many records were done.
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

/** Room for the line of the record that was found last. */
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

/** Writes a record's line and returns where it ends; 0 where that is not certain. */
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

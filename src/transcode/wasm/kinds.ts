// The kind of a record: its deciding values, and the conditions on the others, as in
// ../transcoder.ts.

import { answerOf } from './guards';
import { cares, copy, ends, highCare, same, starts } from './memory';
import { isLine } from './values';

/** The deciding values and guard answers of the last found record, as bytes. */
const keyBytesMax: usize = 4096;
const key: usize = memory.data(4096 + 16);
const buckets: u32 = 64;

/** The care that any value of the record needs. */
export let allCares: u32 = 0;

/** The kind of the found record, by its deciding values and guard answers; 0: unknown. */
export function kindOf(shape: usize): usize {
  const count = load<u32>(shape);
  let place = load<u32>(shape, 4);
  let to = key;
  allCares = 0;
  for (let i: usize = 0; i < count; i += 1, place += 8) {
    allCares |= load<u32>(cares + i * 4);
    const start = load<u32>(starts + i * 4);
    const end = load<u32>(ends + i * 4);
    if (load<u8>(place) !== 0) {
      if (to + (end - start) + (<usize>count - i) * 2 > key + keyBytesMax) return 0;
      to = copy(start, end - start, to);
      store<u8>(to, 0xff);
    } else {
      if (end - start > load<u32>(place, 4)) return 0;
      const answer = answerOf(load<u8>(place, 1), load<u8>(place, 2) !== 0, i, start, end);
      if (answer < 0) return 0;
      store<u8>(to, <u8>answer);
    }
    to += 1;
  }
  const length = to - key;
  const hash = hashOf(key, length);
  let kind: usize = load<u32>(load<u32>(shape, 8) + (hash & (buckets - 1)) * 4);
  for (; kind !== 0; kind = load<u32>(kind)) {
    const isSame = load<u32>(kind, 4) === hash && load<u32>(kind, 12) === <u32>length;
    if (isSame && same(key, load<u32>(kind, 8), length)) return kind;
  }
  return 0;
}

/** Distinguishes keys, in most cases. */
export function hashOf(from: usize, length: usize): u32 {
  let hash: u64 = 0x9e3779b97f4a7 ^ length;
  let done: usize = 0;
  for (; done + 8 <= length; done += 8) {
    hash = (hash ^ load<u64>(from + done)) * 0x51afd7ed558cd;
    hash ^= hash >> 32;
  }
  for (; done < length; done += 1) hash = (hash ^ load<u8>(from + done)) * 0x51afd7ed558cd;
  return <u32>(hash >> 32);
}

/** The conditions of the format beyond the guards. */
export function holds(kind: usize): bool {
  let at: usize = load<u32>(kind, 24);
  for (let left = load<u32>(kind, 28); left > 0; left -= 1, at += 8) {
    const leaf = load<u32>(at) * 4;
    const length = load<u32>(ends + leaf) - load<u32>(starts + leaf);
    if (length * (load<u32>(cares + leaf) === 0 ? 1 : 2) > load<u32>(at, 4)) return false;
  }
  for (let left = load<u32>(kind, 32); left > 0; left -= 1, at += 8) {
    const one = load<u32>(at) * 4;
    const two = load<u32>(at, 4) * 4;
    const start1 = load<u32>(starts + one);
    const start2 = load<u32>(starts + two);
    const length = load<u32>(ends + one) - start1;
    if (length === load<u32>(ends + two) - start2 && same(start1, start2, length)) return false;
  }
  for (let left = load<u32>(kind, 36); left > 0; left -= 1, at += 8) {
    const leaf = load<u32>(at) * 4;
    if ((load<u32>(cares + leaf) & load<u32>(at, 4)) === 0) continue;
    // Values of a `line` are checked closely; values that must be written verbatim are not.
    const isOfLine = (load<u32>(at, 4) & highCare) !== 0;
    if (!isOfLine || !isLine(load<u32>(starts + leaf), load<u32>(ends + leaf))) return false;
  }
  return true;
}

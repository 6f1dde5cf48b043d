// The keys of rows, as a checkpoint keeps them, and where rows that were read before are met again
// on a page.

import { identityBytes } from '../../contracts/spool.ts';
import type { Identified } from './identity.ts';
import { asWords, identityWords, keyBytes } from './repeats.ts';

/** The keys of a page's records, or of some. */
export function keysOf({ words, count }: Identified, from = 0, to = count): Buffer {
  const all = Buffer.from(words.buffer, words.byteOffset, words.byteLength);
  const end = Math.min(to, count);
  const keys = Buffer.allocUnsafe(Math.max(0, end - from) * keyBytes);
  for (let i = from; i < end; i += 1) {
    const at = i * identityBytes;
    all.copy(keys, (i - from) * keyBytes, at, at + keyBytes);
  }
  return keys;
}

/**
 * Index after the rows `expected` within a page, or -1 where they are not on it. They are at its
 * start, further down where rows came in before them, or only the last of them at its start where
 * rows went. Rows whose content has changed are known by their ids. `at`: where they are looked for
 * before anywhere else.
 */
export function overlapEnd(
  identified: Identified,
  expected: Uint8Array,
  at: number = expected.length / keyBytes,
): number {
  const end = sameEnd(identified, expected, keyBytes, at);
  return end < 0 ? sameEnd(identified, expected, keyBytes / 2, at) : end;
}

/** As `overlapEnd`, where what has changed is another row; `bytes`: what of a key counts. */
export function sameEnd(
  { words, count }: Identified,
  expected: Uint8Array,
  bytes = keyBytes,
  at: number = expected.length / keyBytes,
): number {
  const rows = asWords(expected);
  const length = expected.length / keyBytes;
  const isSame = (index: number, row: number) => {
    for (let word = 0; word < bytes / 4; word += 1) {
      const given = words[index * identityWords + word];
      if (given !== rows[(row * keyBytes) / 4 + word]) return false;
    }
    return true;
  };
  const endsAt = (end: number) => {
    for (let back = 1; back <= Math.min(end, length); back += 1) {
      if (!isSame(end - back, length - back)) return false;
    }
    return true;
  };
  if (at <= count && at > 0 && endsAt(at)) return at;
  for (let end = 1; end <= count; end += 1) if (endsAt(end)) return end;
  return -1;
}

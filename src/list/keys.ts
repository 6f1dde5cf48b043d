// The keys of rows as a checkpoint stores them, and the search for rows of an earlier reading on a page.

import { identityBytes } from '../contracts/index.ts';
import type { Identified } from './identity.ts';
import { asWords, identityWords, keyBytes } from './repeats.ts';

/** The keys of a page's records, or of a range of them. */
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
 * Index after the rows `expected` within a page, or -1 if they are not on it. They are at the start of the page,
 * further down if rows were inserted before them, or reduced to the last of them at the start if rows were removed.
 * Rows with changed content are matched by id. `at`: the index to try first.
 */
export function overlapEnd(
  identified: Identified,
  expected: Uint8Array,
  at: number = expected.length / keyBytes,
): number {
  const end = sameEnd(identified, expected, keyBytes, at);
  return end < 0 ? sameEnd(identified, expected, keyBytes / 2, at) : end;
}

/** As `overlapEnd`, but a changed row counts as another row. `bytes`: the part of a key that is compared. */
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

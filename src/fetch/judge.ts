// Which records of a page are new. A record with an id is new when its key is not known. Records without ids are
// counted: the n-th record with the same bytes is new when fewer than n were held, so that true twins stay two while
// a page that is read again gives nothing. How they are counted depends on what the page is to its walk:
//
//   resume   the page a tail walk starts at: what was on it when it was last read is known, the rest is new
//   onward   pages after it, which nobody has read: all new
//   known    a walk through what may have been read before: the n-th since the walk began is compared with n held
//
// Judging adds to the stream's memory at once; when the commit that should follow fails, the memory is loaded anew.

import type { Page } from '../contracts/source.ts';
import { uidBytes } from '../contracts/spool.ts';
import type { Identified, Identifier } from './identity.ts';
import { timeOf } from './record-time.ts';
import { asWords, identityWords, type Repeats } from './repeats.ts';

/** What a page is to the walk that reads it. */
export type Reading = 'resume' | 'onward' | 'known';

/** Bytes of a key within `resumePage` and `overlap`. */
export const keyBytes = 16;

/** What one walk has counted of records without ids. */
export type WalkCounts = Map<string, number>;

/** What is asked about a page. */
export interface Question {
  readonly page: Page;
  readonly identified: Identified;
  readonly reading: Reading;
  readonly counts: WalkCounts;
  /** Leading records that overlap with the page before, and so are known. */
  readonly overlap: number;
  /** Keys that were on the resume page when it was last read. */
  readonly resumePage: Uint8Array | null;
  /** Records before this time are not wanted. */
  readonly since: number | null;
  /** Those from then on and before this time are known by being met: they stood there at the start. */
  readonly standingBefore: number | null;
  readonly time: readonly string[];
  /** False while the walk has not joined up with what was known. */
  readonly anchored: boolean;
}

/** The answer: what is new, and how the rest looks. */
export interface Judged {
  readonly identified: Identified;
  /** Indices of the new records, and their uids. */
  readonly fresh: readonly number[];
  readonly uids: Buffer;
  /** How many stood there at the start. */
  readonly standing: number;
  /** Identities of both, `identityWords` each. */
  readonly identities: Uint32Array;
  /** Indices of records that were known under their id with other content. */
  readonly changed: readonly number[];
  /** True where each record was known and anchored, or not wanted; also for an empty page. */
  readonly joined: boolean;
}

/** Tells new records from repeats. */
export function judge(question: Question, identifier: Identifier, repeats: Repeats): Judged {
  const { page, identified, since, standingBefore, time } = question;
  const { words, digests, named } = identified;
  const count = counter(question);
  const fresh: number[] = [];
  const changed: number[] = [];
  const uids = Buffer.allocUnsafeSlow(identified.count * uidBytes);
  const identities = new Uint32Array(identified.count * identityWords);
  let standing = 0;
  let joined = true;
  for (let i = 0; i < identified.count; i += 1) {
    const at = i * identityWords;
    const check = words[at + identityWords - 1] ?? 0;
    const known = repeats.value(words, at);
    const isNamed = named[i] === 1;
    const isChanged = isNamed && known > 0 && check !== 0 && known !== check;
    // A record with an id keeps its content check as value, one without its number among its twins.
    const n = isNamed ? 0 : count(i, identified, Math.max(0, known));
    if (isNamed ? known >= 0 && !isChanged : n === 0) {
      joined &&= repeats.isAnchored(words, at);
      continue;
    }
    const happenedAt = since === null ? null : timeOf(page.records.at(i) ?? null, time);
    if (since !== null && happenedAt !== null && happenedAt < since) continue;
    joined = false;
    const value = isNamed ? check : n;
    const to = (fresh.length + standing) * identityWords;
    for (let word = 0; word < identityWords - 1; word += 1)
      identities[to + word] = words[at + word] ?? 0;
    identities[to + identityWords - 1] = value;
    repeats.add(identities, to, question.anchored);
    if (standingBefore !== null && happenedAt !== null && happenedAt < standingBefore) {
      standing += 1;
      continue;
    }
    if (isChanged) changed.push(i);
    const digest = i * uidBytes;
    const uid = fresh.length * uidBytes;
    if (isNamed && !isChanged) digests.copy(uids, uid, digest, digest + uidBytes);
    else {
      const own = digests.subarray(digest, digest + uidBytes);
      (isChanged ? identifier.changedUid(own, check) : identifier.twinUid(own, n)).copy(uids, uid);
    }
    fresh.push(i);
  }
  return {
    identified,
    fresh,
    standing,
    identities: identities.slice(0, (fresh.length + standing) * identityWords),
    uids: uids.subarray(0, fresh.length * uidBytes),
    changed,
    joined,
  };
}

/** Gives, for a record without id, its number among its twins if it is new, else 0. */
function counter({
  reading,
  counts,
  overlap,
  resumePage,
}: Question): (index: number, identified: Identified, held: number) => number {
  const before = reading === 'resume' && resumePage !== null ? tally(resumePage) : new Map();
  return (index, identified, held) => {
    if (index < overlap) return 0;
    if (reading === 'onward') return held + 1;
    const key = keyText(identified.words, index * identityWords);
    if (reading === 'known') {
      const n = (counts.get(key) ?? 0) + 1;
      counts.set(key, n);
      return n > held ? n : 0;
    }
    const left = before.get(key) ?? 0;
    if (left === 0) return held + 1;
    before.set(key, left - 1);
    return 0;
  };
}

function tally(keys: Uint8Array): Map<string, number> {
  const words = asWords(keys);
  const counts = new Map<string, number>();
  for (let at = 0; at < words.length; at += keyBytes / 4) {
    const key = keyText(words, at);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

function keyText(words: Uint32Array, at: number): string {
  return `${words[at]}.${words[at + 1]}.${words[at + 2]}.${words[at + 3]}`;
}

/** The keys of some of a page's records, for `resumePage` and `overlap`. */
export function keysOf(identified: Identified, from: number, to: number): string {
  const keys = Buffer.allocUnsafe(Math.max(0, to - from) * keyBytes);
  for (let i = from; i < to; i += 1) {
    identified.digests.copy(keys, (i - from) * keyBytes, i * uidBytes, i * uidBytes + keyBytes);
  }
  return keys.toString('base64');
}

/** Keys of up to `count` of a page's first records. */
export function headOf(identified: Identified, count: number): string {
  return keysOf(identified, 0, Math.min(count, identified.count));
}

/**
 * Index after the rows `expected` within a page, or -1 where they are not on it. They are at its start, further down
 * where rows came in before them, or only the last of them at its start where rows went.
 */
export function overlapEnd(identified: Identified, expected: Uint8Array): number {
  const length = expected.length / keyBytes;
  const keys = Buffer.from(keysOf(identified, 0, identified.count), 'base64');
  const endsAt = (end: number) => {
    const rows = Math.min(end, length);
    const found = keys.subarray((end - rows) * keyBytes, end * keyBytes);
    return Buffer.compare(found, expected.subarray((length - rows) * keyBytes)) === 0;
  };
  if (length <= identified.count && endsAt(length)) return length;
  for (let end = 1; end <= identified.count; end += 1) if (endsAt(end)) return end;
  return -1;
}

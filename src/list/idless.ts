// Records without ids are counted: the n-th equal record is new if fewer than n are stored. So true twins stay two, and a
// page that is read again yields nothing. The counting depends on the page's role in its walk (judge.ts).
//
// After a change of `ignore` a record has another key. One that is found by its earlier key is adopted: from then on it
// counts under its present key. If the earlier key compares less, two records may share it, so only a record from more
// than `lookback` before the change is adopted: any other one may be new. Invariants: a stored record counts under one
// key; a key gives no number twice, also if an earlier `ignore` returns.

import type { Identified, Identifier, OlderKey } from './identity.ts';
import type { Page } from './page.ts';
import { recordTime } from './record-time.ts';
import { asWords, identityWords, keyBytes, type Repeats } from './repeats.ts';

/** A page's role in the walk that reads it (judge.ts). */
export type PageRole = 'resume' | 'onward' | 'known';

/** A walk's counts of records without ids. */
export type WalkCounts = Map<string, number>;

/** A page whose records are counted. */
export interface CountedPage {
  readonly page: Page;
  readonly identified: Identified;
  readonly reading: PageRole;
  readonly counts: WalkCounts;
  /** Leading records that overlap with the previous page and so are known. */
  readonly overlap: number;
  /** Keys on the resume page at its last reading. */
  readonly resumePage: Uint8Array | null;
  /** Paths of a record's time. */
  readonly time: readonly string[];
}

/** How a record without id was counted. */
export interface Counted {
  /** Its number among its twins if it is new or adopted; 0: it is known. */
  readonly n: number;
  /** If it is known or adopted: a finished walk has seen it. */
  readonly isAnchored: boolean;
  /** The earlier key by which it was found, and how many records count no longer under that key; null: none. */
  readonly adopted: { readonly key: Uint32Array; readonly passedOn: number } | null;
}

interface CountDeps {
  readonly identifier: Identifier;
  readonly repeats: Repeats;
}

/** Counts a page's records without ids, by their index on the page. */
export function idlessCounter(
  question: CountedPage,
  { identifier, repeats }: CountDeps,
): (index: number) => Counted {
  const { identified, reading, counts, overlap, resumePage } = question;
  const { words } = identified;
  const before = reading === 'resume' && resumePage !== null ? tally(resumePage) : new Map();
  const known = (at: number): Counted => {
    return { n: 0, isAnchored: repeats.isAnchored(words, at), adopted: null };
  };
  const fresh = (n: number): Counted => ({ n, isAnchored: false, adopted: null });
  const adopt = (n: number, { key, passedOn }: Left & { readonly passedOn: number }): Counted => {
    return { n, isAnchored: repeats.isAnchored(key, 0), adopted: { key, passedOn } };
  };
  return (index) => {
    const at = index * identityWords;
    if (index < overlap) return known(at);
    const given = Math.max(0, repeats.value(words, at));
    if (reading === 'onward') return fresh(given + 1);
    const key = keyText(words, at);
    if (reading === 'resume') {
      const left = before.get(key) ?? 0;
      if (left === 0) return fresh(given + 1);
      before.set(key, left - 1);
      return known(at);
    }
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    if (!repeats.hasOlder) return count <= given ? known(at) : fresh(count);
    const passedOn = repeats.passedOn(words, at);
    if (count <= given - passedOn) return known(at);
    const left = olderLeft(identified, index, { identifier, repeats });
    // All records of a finer key have the present one.
    const finer = given > passedOn ? undefined : left.find(({ isFiner }) => isFiner);
    if (finer !== undefined) return adopt(given + finer.count, { ...finer, passedOn: finer.given });
    const happenedAt = left.length === 0 ? null : timeOf(question, index);
    const coarser = left.find(
      ({ isFiner, upTo }) => !isFiner && happenedAt !== null && upTo !== null && happenedAt < upTo,
    );
    const n = count + passedOn;
    if (coarser === undefined) return fresh(n);
    return adopt(n, { ...coarser, passedOn: coarser.given - coarser.count + 1 });
  };
}

/** An earlier key of a record: its last number, and how many stored records count under it. */
type Left = OlderKey & { readonly given: number; readonly count: number };

/** The earlier keys of a record under which stored records count. */
function olderLeft(
  identified: Identified,
  index: number,
  { identifier, repeats }: CountDeps,
): readonly Left[] {
  return identifier
    .olderKeys(identified, index)
    .map((older) => {
      const given = Math.max(0, repeats.value(older.key, 0));
      return { ...older, given, count: given - repeats.passedOn(older.key, 0) };
    })
    .filter(({ count }) => count > 0);
}

function timeOf({ page, time }: CountedPage, index: number): number | null {
  return recordTime(page.records.at(index) ?? null, time);
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

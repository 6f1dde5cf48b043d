// Which records of a page are new. A record with an id is new when its content is not known under
// that id. Where the id is, it is another version: told as one, or held back where most of what is
// read again differs (drift.ts). Records without ids are counted: the n-th record with the same
// bytes is new when fewer than n were held, so that true twins stay two while a page that is read
// again gives nothing. How they are counted depends on what the page is to its walk:
//
//   resume   the page a tail walk starts at: what was on it when it was last read is known, the rest is new
//   onward   pages after it, which nobody has read: all new
//   known    a walk through what may have been read before: the n-th since the walk began is compared with n held
//
// Identities may be held that were made otherwise: by version 0.1.0, which went by the id alone, or
// when another `ignore` said what is content. The first content that is met under such an id is
// taken for the one that was held then: an upgrade or a change of `ignore` delivers nothing twice,
// and a change just then is not told.
//
// Judging adds to the stream's memory at once; when the commit that should follow fails, the memory
// is loaded anew.

import { uidBytes } from '../../contracts/spool.ts';
import { movedIn, type ReReadDrift } from './drift.ts';
import type { Identified, Identifier } from './identity.ts';
import type { KeyTable } from './key-table.ts';
import { olderCheck } from './older-check.ts';
import type { Page } from './page.ts';
import { recordTime } from './record-time.ts';
import { asWords, identityWords, keyBytes, type Repeats } from './repeats.ts';

/** What a page is to the walk that reads it. */
export type PageRole = 'resume' | 'onward' | 'known';

/** What one walk has counted of records without ids. */
export type WalkCounts = Map<string, number>;

/** What a walk goes by in pages of which some was read before. */
export interface WalkSoFar {
  /** The latest event time that was read before the walk. */
  readonly readUpTo: number;
  /** Keys of what it has taken for new. */
  readonly met: KeyTable;
  /** The ids that seem to have moved; with 0 those whose content of before has come after all. */
  readonly moved: KeyTable;
}

/** What is asked about a page. */
export interface PageContext {
  readonly page: Page;
  readonly identified: Identified;
  readonly reading: PageRole;
  readonly counts: WalkCounts;
  /** Leading records that overlap with the page before, and so are known. */
  readonly overlap: number;
  /** Keys that were on the resume page when it was last read. */
  readonly resumePage: Uint8Array | null;
  /** Records before this time are not wanted. */
  readonly since: number | null;
  /** Those up to this time are known, unless they are another version of one that is. */
  readonly horizon: number | null;
  /** Those from then on and before this time are known: they stood there at the start. */
  readonly standingBefore: number | null;
  readonly time: readonly string[];
  /** False while the walk has not joined up with what was known. */
  readonly anchored: boolean;
  /**
   * Null where nothing of the page was read before. What looks like another version is a record of
   * its own there, and elsewhere where it happened after `readUpTo`, or where the walk itself has
   * met its id first.
   */
  readonly readBefore: WalkSoFar | null;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** The answer: what is new, and how the rest looks. */
export interface Judged {
  readonly identified: Identified;
  /** Indices of the new records, and their uids. */
  readonly fresh: readonly number[];
  readonly uids: Buffer;
  /** How many are known from now on without being told. */
  readonly alreadyKnown: number;
  /** Identities of both, `identityWords` each. */
  readonly identities: Uint32Array;
  /** Places within `fresh` of those whose id was known with other content. */
  readonly changed: readonly number[];
  /** True where each record was known and anchored, or not wanted; also for an empty page. */
  readonly joined: boolean;
}

/** What a stream goes by. */
export interface JudgeDeps {
  readonly identifier: Identifier;
  readonly repeats: Repeats;
  readonly drift: ReReadDrift;
}

/** Tells new records from repeats. */
export function judgePage(question: PageContext, memory: JudgeDeps): Judged {
  const { identified, since, horizon, standingBefore } = question;
  const { identifier, repeats, drift } = memory;
  const { words, named } = identified;
  weigh(question, memory);
  const count = counter(question);
  const fresh: number[] = [];
  const changed: number[] = [];
  const uids = Buffer.allocUnsafeSlow(identified.count * uidBytes);
  const identities = new Uint32Array(identified.count * identityWords);
  let alreadyKnown = 0;
  let joined = true;
  const note = (i: number, value: number, anchored: boolean) => {
    const to = (fresh.length + alreadyKnown) * identityWords;
    for (let word = 0; word < identityWords - 1; word += 1)
      identities[to + word] = words[i * identityWords + word] ?? 0;
    identities[to + identityWords - 1] = value;
    repeats.add(identities, to, anchored);
    if (named[i] === 1) question.readBefore?.met.set(identities, to, 0);
  };
  for (let i = 0; i < identified.count; i += 1) {
    const at = i * identityWords;
    const isNamed = named[i] === 1;
    const met = isNamed ? meet(identified, i, memory) : 'new';
    // A record without id keeps its number among its twins as value, one with an id nothing.
    const n = isNamed ? 0 : count(i, identified, heldLike(identified, i, memory));
    if (isNamed ? met === 'known' : n === 0) {
      joined &&= repeats.isAnchored(words, at);
      continue;
    }
    const isVersion = met === 'version';
    if (isVersion && drift.isHeld && isReadAgain(question, i)) {
      drift.see(words, at);
      joined &&= repeats.isIdAnchored(words, at);
      // From here on it is what its id says, on whatever page it comes again.
      words[at + 2] = 0;
      words[at + 3] = 0;
      continue;
    }
    if (met === 'adopted') {
      const anchored = repeats.isIdAnchored(words, at);
      note(i, 0, anchored);
      alreadyKnown += 1;
      joined &&= anchored;
      continue;
    }
    const isTimed = since !== null || horizon !== null || standingBefore !== null;
    const happenedAt = isTimed ? timeIn(question, i) : null;
    if (happenedAt !== null && since !== null && happenedAt < since) continue;
    if (happenedAt !== null && horizon !== null && happenedAt <= horizon && !isVersion) continue;
    joined = false;
    note(i, n, question.anchored);
    if (standingBefore !== null && happenedAt !== null && happenedAt < standingBefore) {
      alreadyKnown += 1;
      continue;
    }
    if (isVersion) changed.push(fresh.length);
    const uid = isNamed ? identifier.uid(identified, i) : identifier.twinUid(identified, i, n);
    uids.write(uid, fresh.length * uidBytes, 'latin1');
    fresh.push(i);
  }
  return {
    identified,
    fresh,
    alreadyKnown,
    identities: identities.slice(0, (fresh.length + alreadyKnown) * identityWords),
    uids: uids.subarray(0, fresh.length * uidBytes),
    changed,
    joined,
  };
}

/**
 * What is known of a record with an id: this content, its id only, or neither. `adopted`: its id,
 * from an identity that was made otherwise, and so it is taken for the one that was held.
 */
function meet(
  identified: Identified,
  index: number,
  { identifier, repeats }: JudgeDeps,
): 'known' | 'adopted' | 'version' | 'new' {
  const { words, records } = identified;
  const at = index * identityWords;
  if (repeats.value(words, at) >= 0) return 'known';
  const isMet = repeats.knowsId(words, at);
  if (repeats.hasOlder) {
    if (isMet && !repeats.metSince(words, at)) return 'adopted';
    const key = identifier.older(identified, index);
    const value = key === null ? -1 : repeats.value(key, 0);
    if (key !== null && value > 0) {
      const is = repeats.hasChecked(key, value, olderCheck(records.raw(index)));
      return is ? 'adopted' : 'version';
    }
    if (value === 0 && !isMet) return 'adopted';
  }
  return isMet ? 'version' : 'new';
}

/** How many records like this one, which has no id, are held. */
function heldLike(
  identified: Identified,
  index: number,
  { identifier, repeats }: JudgeDeps,
): number {
  const held = repeats.value(identified.words, index * identityWords);
  if (held >= 0 || !repeats.hasOlder) return Math.max(0, held);
  const older = identifier.older(identified, index);
  return older === null ? 0 : Math.max(0, repeats.value(older, 0));
}

/**
 * Has the drift weigh what of the page is read again, before any of it is judged. An id whose
 * content of before stands there as well is one that records share: what else it says is no drift,
 * and no id counts more than once in a walk.
 */
function weigh(question: PageContext, memory: JudgeDeps): void {
  const { identified, readBefore, now } = question;
  const { drift } = memory;
  const { words, named } = identified;
  const last = named.lastIndexOf(1);
  const alreadyKnown: number[] = [];
  const versions: number[] = [];
  let same = 0;
  let isLastNew = last >= 0;
  for (let i = 0; i <= last && readBefore !== null; i += 1) {
    if (named[i] !== 1) continue;
    const met = meet(identified, i, memory);
    isLastNew = met === 'new';
    if (met === 'known') alreadyKnown.push(i);
    if (met !== 'version' || !isReadAgain(question, i)) continue;
    drift.compare(identified, i);
    if (drift.isHeld && drift.isAsSeen(words, i * identityWords)) same += 1;
    else versions.push(i);
  }
  if (last >= 0 && (isLastNew || !drift.hasSample)) drift.keep(identified, last);
  const moved =
    readBefore === null ? 0 : movedIn(words, { alreadyKnown, versions }, readBefore.moved);
  drift.weigh(same + alreadyKnown.length, moved, now);
}

/** False for what looks like another version of a record and yet was never read before. */
function isReadAgain(question: PageContext, index: number): boolean {
  const { readBefore, identified } = question;
  if (readBefore === null) return false;
  const { readUpTo, met } = readBefore;
  if (met.hasFirstHalf(identified.words, index * identityWords)) return false;
  const happenedAt = readUpTo === Number.POSITIVE_INFINITY ? null : timeIn(question, index);
  return happenedAt === null || happenedAt <= readUpTo;
}

function timeIn({ page, time }: PageContext, index: number): number | null {
  return recordTime(page.records.at(index) ?? null, time);
}

/** Gives, for a record without id, its number among its twins if it is new, else 0. */
function counter({
  reading,
  counts,
  overlap,
  resumePage,
}: PageContext): (index: number, identified: Identified, held: number) => number {
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

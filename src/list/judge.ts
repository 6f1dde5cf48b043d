// Decides which records of a page are new. A record with an id is new if its content is not known under that id. If the
// id is known, the record is another version: reported as one, or held back while most re-read records differ
// (drift.ts). Records without ids are counted (idless.ts). What counts as new depends on the page's role in its walk:
//
// - resume: the page where a tail walk starts; its records of the last reading are known, the rest is new
// - onward: pages after it, never read before; all records are new
// - known: a walk through pages that may have been read; the n-th equal record is compared with n stored ones
//
// Stored identities may follow older rules: version 0.1.0 used the id alone, and another `ignore` changes the content.
// The first content seen under an older id counts as the stored one. So an upgrade or a change of `ignore` delivers
// nothing twice, and a change at that very moment is not reported.
//
// Judging updates the stream's memory at once. If the following commit fails, the caller reloads the memory.

import { uidBytes } from '../contracts/index.ts';
import { movedIn, type ReReadDrift } from './drift.ts';
import { type Identified, type Identifier, olderCheck } from './identity.ts';
import { type Counted, type CountedPage, idlessCounter } from './idless.ts';
import { recordTime } from './record-time.ts';
import { identityWords, type KeyTable, passedOnKey, type Repeats } from './repeats.ts';

/** State of a walk over pages that were read in part before. */
export interface WalkSoFar {
  /** The stream's memory then: once it is loaded again, this state is void. */
  readonly repeats: Repeats;
  /** Latest event time read before the walk. */
  readonly readUpTo: number;
  /** Keys that the walk has counted as new. */
  readonly seen: KeyTable;
  /** Ids whose content seems to have changed; value 0: the earlier content was seen after all. */
  readonly moved: KeyTable;
}

/** The input: a page and its context. */
export interface JudgedPage extends CountedPage {
  /** Records before this time are not requested. */
  readonly since: number | null;
  /** Records up to this time are known, unless they are another version of a known one. */
  readonly horizon: number | null;
  /** Records from `since` to this time are known: they were in the list at the start. */
  readonly standingBefore: number | null;
  /** False until the walk has reached known records. */
  readonly anchored: boolean;
  /**
   * Null if nothing on the page was read before. A record that looks like another version counts as a record of its own
   * if this is null, if it happened after `readUpTo`, or if the walk itself saw its id first.
   */
  readonly readBefore: WalkSoFar | null;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** The result: the new records, and facts on the rest. */
export interface Judged {
  readonly identified: Identified;
  /** Indices of the new records, and their uids. */
  readonly fresh: readonly number[];
  readonly uids: Buffer;
  /** Number of records that become known without being reported. */
  readonly alreadyKnown: number;
  /** Identities of both, `identityWords` words each. */
  readonly identities: Uint32Array;
  /** Indices in `fresh` of records whose id was known with other content. */
  readonly changed: readonly number[];
  /** True if each record was known and anchored, or not requested; also for an empty page. */
  readonly joined: boolean;
}

/** The stream's memory. */
export interface JudgeDeps {
  readonly identifier: Identifier;
  readonly repeats: Repeats;
  readonly drift: ReReadDrift;
}

/** Separates new records from repeats. */
export function judgePage(question: JudgedPage, memory: JudgeDeps): Judged {
  const { identified, since, horizon, standingBefore } = question;
  const { identifier, repeats, drift } = memory;
  const { words, named } = identified;
  weigh(question, memory);
  const count = idlessCounter(question, memory);
  const fresh: number[] = [];
  const changed: number[] = [];
  const uids = Buffer.allocUnsafeSlow(identified.count * uidBytes);
  // An adopted record without id has two.
  const rows = repeats.hasOlder ? 2 * identified.count : identified.count;
  const identities = new Uint32Array(rows * identityWords);
  let alreadyKnown = 0;
  let joined = true;
  const note = (i: number, value: number, anchored: boolean) => {
    const to = (fresh.length + alreadyKnown) * identityWords;
    for (let word = 0; word < identityWords - 1; word += 1)
      identities[to + word] = words[i * identityWords + word] ?? 0;
    identities[to + identityWords - 1] = value;
    repeats.add(identities, to, anchored);
    if (named[i] === 1) question.readBefore?.seen.set(identities, to, 0);
  };
  const notePassedOn = ({ key, passedOn }: NonNullable<Counted['adopted']>) => {
    const to = (fresh.length + alreadyKnown) * identityWords;
    identities.set(passedOnKey(key, 0), to);
    identities[to + identityWords - 1] = passedOn;
    repeats.add(identities, to, true);
  };
  for (let i = 0; i < identified.count; i += 1) {
    const at = i * identityWords;
    const isNamed = named[i] === 1;
    const match = isNamed ? matchOf(identified, i, memory) : 'new';
    const counted = isNamed ? null : count(i);
    // The value of a record without id is its number among its twins; with an id there is none.
    const n = counted?.n ?? 0;
    if (counted === null ? match === 'known' : n === 0) {
      joined &&= counted?.isAnchored ?? repeats.isAnchored(words, at);
      continue;
    }
    if (counted?.adopted) {
      note(i, n, counted.isAnchored);
      alreadyKnown += 1;
      notePassedOn(counted.adopted);
      alreadyKnown += 1;
      joined &&= counted.isAnchored;
      continue;
    }
    const isVersion = match === 'version';
    if (isVersion && drift.isHeld && isReadAgain(question, i)) {
      drift.see(words, at);
      joined &&= repeats.isIdAnchored(words, at);
      // From here the older content half is dropped: the record is known by its id on every page.
      words[at + 2] = 0;
      words[at + 3] = 0;
      continue;
    }
    if (match === 'adopted') {
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
 * Whether a record with an id is known by content, by id only, or not. `adopted`: the id's stored identity follows
 * older rules, so this content counts as the stored one.
 */
function matchOf(
  identified: Identified,
  index: number,
  { identifier, repeats }: JudgeDeps,
): 'known' | 'adopted' | 'version' | 'new' {
  const { words, records } = identified;
  const at = index * identityWords;
  if (repeats.value(words, at) >= 0) return 'known';
  const isKnownId = repeats.knowsId(words, at);
  if (repeats.hasOlder) {
    if (isKnownId && !repeats.seenSince(words, at)) return 'adopted';
    const key = identifier.older(identified, index);
    const value = repeats.value(key, 0);
    if (value > 0) {
      const is = repeats.hasChecked(key, value, olderCheck(records.raw(index)));
      return is ? 'adopted' : 'version';
    }
    if (value === 0 && !isKnownId) return 'adopted';
  }
  return isKnownId ? 'version' : 'new';
}

/**
 * Adds the page's re-read records to the drift before any record is judged. An id whose earlier content is also on the
 * page is shared by several records; its other contents are no drift. An id counts once per walk.
 */
function weigh(question: JudgedPage, memory: JudgeDeps): void {
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
    const match = matchOf(identified, i, memory);
    isLastNew = match === 'new';
    if (match === 'known') alreadyKnown.push(i);
    if (match !== 'version' || !isReadAgain(question, i)) continue;
    drift.compare(identified, i);
    if (drift.isHeld && drift.isAsSeen(words, i * identityWords)) same += 1;
    else versions.push(i);
  }
  if (last >= 0 && (isLastNew || !drift.hasSample)) drift.keep(identified, last);
  const moved =
    readBefore === null ? 0 : movedIn(words, { alreadyKnown, versions }, readBefore.moved);
  drift.weigh(same + alreadyKnown.length, moved, now);
}

/** False for an apparent version of a record that was never read before. */
function isReadAgain(question: JudgedPage, index: number): boolean {
  const { readBefore, identified } = question;
  if (readBefore === null) return false;
  const { readUpTo, seen } = readBefore;
  if (seen.hasFirstHalf(identified.words, index * identityWords)) return false;
  const happenedAt = readUpTo === Number.POSITIVE_INFINITY ? null : timeIn(question, index);
  return happenedAt === null || happenedAt <= readUpTo;
}

function timeIn({ page, time }: JudgedPage, index: number): number | null {
  return recordTime(page.records.at(index) ?? null, time);
}

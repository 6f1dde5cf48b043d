// A field that differs at each reading, such as an age or a counter, makes each record that is read
// again look like another version of itself. Where that is so of most, they are no news but a
// flood: they are held back, neither delivered nor known as delivered, and the sinks are told once,
// with the paths that differ, until `ignore` names them. Records that were never read before go on
// meanwhile. What must stay true: nothing is held back for good that stands still. Where most have
// stayed as they were last seen for a while, the brake is off, and a round tells what they are now;
// a field that changes now and then makes that while longer each time, up to a day.

import { changedPaths } from '../collection/diff.ts';
import type { Finding } from '../own-pages.ts';
import type { Identified } from './identity.ts';
import { KeyTable } from './key-table.ts';
import { identityWords } from './repeats.ts';

/** Records read again below which nothing is said of most of them. */
const recordsMin = 10;
/** Records read again that are weighed together: what was before them counts ever less. */
const recordsMax = 100;
const dayMs = 24 * 3_600_000;
/** Contents last seen of records that are held back. */
const seenMax = 500_000;
/** A larger record is not kept to see what differs. */
const sampleBytesMax = 16 * 1024;
const pathsMax = 10;

/** What the checkpoint keeps of it; times in epoch milliseconds. */
export interface DriftState {
  readonly isHeld: boolean;
  /** When most records were last seen to differ. */
  readonly at: number;
  /** How long most have to stay as they are. */
  readonly patienceMs: number;
  /** When the sinks were told; null: they have still to be. */
  readonly toldAt: number | null;
}

/** Watches what is read again of one stream. */
export class ReReadDrift {
  #state: DriftState | null;
  readonly #patienceMs: number;
  readonly #ignore: readonly string[];
  #same = 0;
  #moved = 0;
  #seen = new KeyTable();
  #sample: { readonly w0: number; readonly w1: number; readonly text: string } | null = null;
  readonly #paths = new Set<string>();

  constructor(state: DriftState | null, patienceMs: number, ignore: readonly string[]) {
    this.#state = state;
    this.#patienceMs = patienceMs;
    this.#ignore = ignore;
  }

  get state(): DriftState | null {
    return this.#state;
  }

  /** Other versions of records that are read again are held back. */
  get isHeld(): boolean {
    return this.#state?.isHeld ?? false;
  }

  /**
   * Weighs how many of a page's records that are read again are as they were seen last, and how
   * many are not; below zero where more of what was weighed before is as it was.
   */
  weigh(same: number, moved: number, now: number): void {
    if (same === 0 && moved === 0) return;
    this.#moved = Math.max(0, this.#moved + moved);
    this.#same += same;
    const total = this.#same + this.#moved;
    const share = Math.min(1, recordsMax / total);
    this.#same *= share;
    this.#moved *= share;
    const state = this.#state;
    if (total >= recordsMin && this.#moved > this.#same) this.#hold(now);
    // Ids that stay as they were are shared: what else they said goes with the next reading.
    else if (state?.isHeld === true && (moved < 0 || now - state.at >= state.patienceMs)) {
      this.#state = { ...state, isHeld: false };
      this.#seen = new KeyTable();
    }
  }

  #hold(now: number): void {
    const state = this.#state;
    const { patienceMs, toldAt: reportedAt } = state ?? {
      patienceMs: this.#patienceMs / 2,
      toldAt: null,
    };
    if (state?.isHeld === true) {
      // Not at each page: each is a commit.
      if (now - state.at >= patienceMs / 8) this.#state = { ...state, at: now };
      return;
    }
    this.#state = {
      isHeld: true,
      at: now,
      patienceMs: Math.min(dayMs, patienceMs * 2),
      toldAt: reportedAt !== null && now - reportedAt < dayMs ? reportedAt : null,
    };
  }

  /** True where a record that is held back is as it was seen last. */
  isAsSeen(words: Uint32Array, at: number): boolean {
    const slot = this.#seen.find(idKey(words, at), 0);
    return slot >= 0 && this.#seen.value(slot) === contentOf(words, at);
  }

  /** Takes note of a record that is held back. */
  see(words: Uint32Array, at: number): void {
    if (this.#seen.size >= seenMax) this.#seen = new KeyTable();
    this.#seen.set(idKey(words, at), 0, contentOf(words, at));
  }

  /** Keeps a record as it was sent, to see what differs when it comes again. */
  keep({ words, records }: Identified, index: number): void {
    const raw = records.raw(index);
    if (raw.length > sampleBytesMax) return;
    const at = index * identityWords;
    this.#sample = {
      w0: words[at] ?? 0,
      w1: words[at + 1] ?? 0,
      text: Buffer.from(raw).toString(),
    };
  }

  get hasSample(): boolean {
    return this.#sample !== null;
  }

  /** Sees what differs, where this is another version of the record that was kept. */
  compare(identified: Identified, index: number): void {
    const before = this.#sample;
    const { words, records } = identified;
    const at = index * identityWords;
    if (before === null || before.w0 !== words[at] || before.w1 !== words[at + 1]) return;
    const now = Buffer.from(records.raw(index)).toString();
    const comparison = { ignore: this.#ignore, unordered: [] };
    for (const path of changedPaths(before.text, now, comparison)) {
      if (this.#paths.size < pathsMax) this.#paths.add(path);
    }
    this.keep(identified, index);
  }

  /** The sinks are to be told. */
  get isUnreported(): boolean {
    return this.isHeld && this.#state?.toldAt === null;
  }

  /** They are, and it is known what differs. */
  get isClear(): boolean {
    return this.isUnreported && this.#paths.size > 0;
  }

  /** What the sinks are told, once. */
  tell(stream: string, now: number): Finding {
    if (this.#state !== null) this.#state = { ...this.#state, toldAt: now };
    const paths = [...this.#paths];
    const what =
      paths.length === 0
        ? 'ignore names the fields that differ'
        : `the fields that differ can be ignored: ${paths.join(', ')}`;
    return {
      condition: 'schema_drift',
      message: `most records of ${stream} that are read again have changed; their new versions are held back until ${what}, or they stay as they are`,
      details: { paths },
    };
  }
}

/**
 * How many ids more seem to have moved in a walk, by the rows of a page whose content stands and
 * those with another one; below zero where ids of pages before had not moved after all. `moved` is
 * the walk's: the ids that were counted, with 0 those that were taken back.
 */
export function movedIn(
  words: Uint32Array,
  { alreadyKnown, versions }: { readonly alreadyKnown: number[]; readonly versions: number[] },
  moved: KeyTable,
): number {
  if (versions.length === 0 && moved.size === 0) return 0;
  const before = moved.size;
  const stands = new KeyTable();
  let stayed = 0;
  for (const i of alreadyKnown) {
    const id = idKey(words, i * identityWords);
    stands.set(id, 0, 1);
    const slot = moved.find(id, 0);
    if (slot < 0 || moved.value(slot) === 0) continue;
    moved.set(id, 0, 0);
    stayed += 1;
  }
  for (const i of versions) {
    const id = idKey(words, i * identityWords);
    if (!stands.has(id, 0) && !moved.has(id, 0)) moved.set(id, 0, 1);
  }
  return moved.size - before - stayed;
}

/** The key of an id by itself, whatever its content. */
function idKey(words: Uint32Array, at: number): Uint32Array {
  return Uint32Array.of(words[at] ?? 0, words[at + 1] ?? 0, 0, 0);
}

function contentOf(words: Uint32Array, at: number): number {
  return ((words[at + 2] ?? 0) ^ (words[at + 3] ?? 0)) >>> 0;
}

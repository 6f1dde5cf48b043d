// Drift: a field that differs at each reading, such as an age or a counter, makes each re-read record look like a new
// version. If most re-read records differ, the changes are a flood and no news. They are held back (neither delivered
// nor known as delivered), and the sinks receive one condition with the differing paths until `ignore` names the paths.
// Records that were never read before are delivered as usual. Invariant: a stable record is not held back for good.
// Once most records have kept their last seen content for a while, the hold ends and a full scan reports their present
// content. A field that changes now and then doubles that while each time, up to a day.

import { changedPaths, type Finding } from '../poll/index.ts';

import type { Identified } from './identity.ts';
import { identityWords, KeyTable } from './repeats.ts';

/** Below this number of re-read records no verdict is made. */
const recordsMin = 10;
/** Size of the sample of re-read records; older ones count less and less. */
const recordsMax = 100;
const dayMs = 24 * 3_600_000;
/** Limit for remembered contents of held-back records. */
const seenMax = 500_000;
/** A larger record is not kept for comparison. */
const sampleBytesMax = 16 * 1024;
const pathsMax = 10;

/** The part that the checkpoint stores; times in epoch milliseconds. */
export interface DriftState {
  readonly isHeld: boolean;
  /** When most records were last seen to differ. */
  readonly at: number;
  /** How long most records must stay unchanged before the hold ends. */
  readonly patienceMs: number;
  /** When the condition was reported to the sinks; null: not yet. */
  readonly toldAt: number | null;
}

/** Watches re-read records of one stream. */
export class ReReadDrift {
  #state: DriftState | null;
  readonly #patienceMs: number;
  readonly #ignore: readonly string[];
  #same = 0;
  #moved = 0;
  /** Null: empty, as in most of many streams. */
  #seen: KeyTable | null = null;
  #sample: { readonly w0: number; readonly w1: number; readonly text: string } | null = null;
  /** Paths that differ; null: none so far, as in most of many streams. */
  #paths: Set<string> | null = null;

  constructor(state: DriftState | null, patienceMs: number, ignore: readonly string[]) {
    this.#state = state;
    this.#patienceMs = patienceMs;
    this.#ignore = ignore;
  }

  get state(): DriftState | null {
    return this.#state;
  }

  /** Changed versions of re-read records are held back. */
  get isHeld(): boolean {
    return this.#state?.isHeld ?? false;
  }

  /**
   * Adds a page's counts of re-read records: unchanged (`same`) and changed (`moved`). `moved` is negative if records
   * counted earlier turn out to be unchanged.
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
    // Unchanged ids are shared ids: their other contents are delivered at the next reading.
    else if (state?.isHeld === true && (moved < 0 || now - state.at >= state.patienceMs)) {
      this.#state = { ...state, isHeld: false };
      this.#seen = null;
    }
  }

  #hold(now: number): void {
    const state = this.#state;
    const { patienceMs, toldAt: reportedAt } = state ?? {
      patienceMs: this.#patienceMs / 2,
      toldAt: null,
    };
    if (state?.isHeld === true) {
      // Not on each page, because each change is a commit.
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

  /** True if a held-back record has the content that was seen last. */
  isAsSeen(words: Uint32Array, at: number): boolean {
    const seen = this.#seen;
    const slot = seen?.find(idKey(words, at), 0) ?? -1;
    return slot >= 0 && seen?.value(slot) === contentOf(words, at);
  }

  /** Remembers the content of a held-back record. */
  see(words: Uint32Array, at: number): void {
    if (this.#seen === null || this.#seen.size >= seenMax) this.#seen = new KeyTable();
    this.#seen.set(idKey(words, at), 0, contentOf(words, at));
  }

  /** Keeps a record's bytes, to compare with its next version. */
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

  /** Finds the differing paths if this record is another version of the kept one. */
  compare(identified: Identified, index: number): void {
    const before = this.#sample;
    const { words, records } = identified;
    const at = index * identityWords;
    if (before === null || before.w0 !== words[at] || before.w1 !== words[at + 1]) return;
    const now = Buffer.from(records.raw(index)).toString();
    const comparison = { ignore: this.#ignore, unordered: [] };
    for (const path of changedPaths(before.text, now, comparison)) {
      this.#paths ??= new Set();
      if (this.#paths.size < pathsMax) this.#paths.add(path);
    }
    this.keep(identified, index);
  }

  /** The condition is still to be reported to the sinks. */
  get isUnreported(): boolean {
    return this.isHeld && this.#state?.toldAt === null;
  }

  /** The condition is due, and the differing paths are known. */
  get isClear(): boolean {
    return this.isUnreported && this.#paths !== null;
  }

  /** Builds the condition, once. */
  report(stream: string, now: number): Finding {
    if (this.#state !== null) this.#state = { ...this.#state, toldAt: now };
    const paths = [...(this.#paths ?? [])];
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
 * How many more ids of this walk have changed content, from a page's rows with known content (`alreadyKnown`) and with
 * other content (`versions`). Negative if ids of earlier pages turn out unchanged. `moved` belongs to the walk: the
 * counted ids, with value 0 for those taken back.
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

/** The key of an id without its content. */
function idKey(words: Uint32Array, at: number): Uint32Array {
  return Uint32Array.of(words[at] ?? 0, words[at + 1] ?? 0, 0, 0);
}

function contentOf(words: Uint32Array, at: number): number {
  return ((words[at + 2] ?? 0) ^ (words[at + 3] ?? 0)) >>> 0;
}

// The list that upstream serves: records come in bursts, at the end given by the list's order, some later than they
// happened and then at the index of their time, and they expire.

import type { Random } from '../../src/sandbox/random.ts';
import type { Traits } from './traits.ts';

/** One record of the model. */
export interface ModelRecord {
  readonly text: string;
  /** Where it stands among the others. */
  readonly place: number;
  /** Epoch milliseconds. */
  readonly happenedAt: number;
  readonly shownAt: number;
  readonly goneAt: number;
  /** It came in at the end where the list grows, before or behind all others. */
  readonly isOutermost: boolean;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** Indices start here, which leaves them digits to differ in. */
const since = Date.UTC(2026, 0, 1);

/** Enough for many pages, and few enough for a full scan in one poll. */
const recordsMax = 100;

/** The list of one server. */
export class ModelList {
  /** All that ever were, in the list's order. */
  readonly records: ModelRecord[] = [];
  readonly #traits: Traits;
  readonly #random: Random;
  #count = 0;
  #twin: ModelRecord | null = null;

  constructor(traits: Traits, random: Random, now: number) {
    this.#traits = traits;
    this.#random = random;
    for (let n = 0; n < traits.history; n += 1) {
      const at = now - random.below(2 * hourMs);
      this.#add(at, false, at);
    }
  }

  /** A burst of records comes in, as long as the list is short. */
  grow(now: number): void {
    if (this.records.length >= recordsMax) return;
    const count = 1 + this.#random.below(this.#traits.burst);
    for (let n = 0; n < count; n += 1) {
      this.#add(now - this.#random.below(1_000), this.#random.chance(0.3), now);
    }
  }

  /** The rows shown at a moment, as they were known at an earlier one. */
  rows(now: number, asOf: number = now): readonly ModelRecord[] {
    return this.records.filter(({ shownAt, goneAt }) => shownAt <= asOf && now < goneAt);
  }

  #add(at: number, mayBeLate: boolean, now: number): void {
    const { order, late, retentionMs, times, twins } = this.#traits;
    const random = this.#random;
    const n = this.#count;
    this.#count += 1;
    const happenedAt = times === 's' ? Math.floor(at / 1_000) * 1_000 : at;
    const isLate = mayBeLate && late !== 'never';
    const longest = late === 'very' && random.chance(0.5) ? 20 * hourMs : 10 * minuteMs;
    const shownAt = isLate ? Math.max(now, happenedAt + random.below(longest)) : now;
    // Those of one millisecond have some order, and no two the same index.
    const along = happenedAt - since + random.next() * 0.999;
    const side = random.chance(0.5) ? 1 : -1;
    const place = order === 'oldest_first' ? along : order === 'newest_first' ? -along : side * n;
    const twin = twins && !isLate && random.chance(0.2) ? this.#twin : null;
    const before = this.records.findIndex((other) => other.place > place);
    const record: ModelRecord = {
      text: twin?.text ?? this.#textOf(n, happenedAt),
      place,
      happenedAt,
      shownAt,
      goneAt: retentionMs === null ? Number.POSITIVE_INFINITY : happenedAt + retentionMs,
      isOutermost: !isLate && (order === 'newest_first' ? before === 0 : before < 0),
    };
    if (!isLate && !record.text.startsWith('{"id"')) this.#twin = record;
    this.records.splice(before < 0 ? this.records.length : before, 0, record);
  }

  #textOf(n: number, happenedAt: number): string {
    const { ids, times, shared } = this.#traits;
    const named = ids === 'all' || (ids === 'some' && this.#random.chance(0.5));
    return JSON.stringify({
      ...(named ? { id: `r${shared ? n % 7 : n}` } : {}),
      ...(times === 'none' ? {} : { time: new Date(happenedAt).toISOString() }),
      n,
    });
  }
}

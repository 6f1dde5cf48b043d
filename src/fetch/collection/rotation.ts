// Which entities are asked by their ids in a reading. Where they are few, all; else those that are
// new, have changed in the list or wait, and of the others so many that all have had their turn
// within the sweep. An entity's place in the rotation is a hash of its key, so that the rotation
// stands at one number, whatever comes and goes: those are due that it passes. What must stay true:
// no reading asks for more than its bound, and what is left over comes first in a later one.

import type { EntityState } from './state.ts';

/** Entities up to this number are all asked with each reading. */
const fewMax = 1_000;
/** Entities asked in one reading. */
const asksMax = 5_000;

/** Where a rotation stands, from 0 up to 1, and when it came there; epoch milliseconds. */
export interface Rotation {
  readonly at: number;
  readonly time: number;
}

/** What a round goes by. */
export interface RoundDeps {
  readonly now: number;
  readonly sweepMs: number;
  /** How many entities are known. */
  readonly known: number;
}

/** An entity that is to be asked by its id. */
interface Asked {
  readonly key: string;
  /** The listed element's id and lossless text. */
  readonly id: string | null;
  readonly text: string;
  readonly listed: string;
}

interface Candidate extends Asked {
  /** How far ahead of the rotation it stands. */
  readonly ahead: number;
  readonly isUrgent: boolean;
}

/** One reading's share of the rotation. */
export class RotationShare {
  readonly #at: number;
  readonly #step: number;
  readonly #now: number;
  readonly #isAll: boolean;
  #candidates: Candidate[] = [];
  #left = 0;

  constructor(before: Rotation | undefined, { now, sweepMs, known }: RoundDeps) {
    const { at, time } = before ?? { at: 0, time: now };
    this.#at = at;
    this.#now = now;
    this.#step = Math.max(0, Math.min(1, (now - time) / sweepMs, asksMax / Math.max(1, known)));
    this.#isAll = known <= fewMax;
  }

  /** Takes an entity in where it is to be asked. One that is denied is, when its turn comes. */
  offer(
    key: string,
    { isUrgent, isDenied }: { readonly isUrgent: boolean; readonly isDenied: boolean },
    listed: () => Omit<Asked, 'key'>,
  ): void {
    const ahead = (placeOf(key) - this.#at + 1) % 1;
    const isDue = ahead < this.#step;
    if (!isDue && (isDenied || !(isUrgent || this.#isAll))) return;
    this.#candidates.push({ key, ...listed(), ahead, isUrgent: isUrgent && !isDenied });
    if (this.#candidates.length >= 2 * asksMax) this.#cut();
  }

  /** Forgets what was offered. */
  clear(): void {
    this.#candidates = [];
    this.#left = 0;
  }

  /** Those to ask; to be called once all were offered. */
  chosen(): readonly Asked[] {
    if (this.#candidates.length > asksMax) this.#cut();
    return this.#candidates;
  }

  /** New and changed ones that had no turn. */
  get left(): number {
    return this.#left;
  }

  /** Where the rotation stands after it. */
  get after(): Rotation {
    const lastAsked = Math.max(0, ...this.#candidates.map(({ ahead }) => ahead));
    const step = this.#left === 0 ? this.#step : lastAsked;
    return { at: (this.#at + step) % 1, time: this.#now };
  }

  /** Keeps the urgent ones, and of these and of the others those that stand nearest. */
  #cut(): void {
    const inOrder = this.#candidates.toSorted(
      (a, b) => Number(b.isUrgent) - Number(a.isUrgent) || a.ahead - b.ahead,
    );
    this.#left += inOrder.slice(asksMax).filter(({ isUrgent }) => isUrgent).length;
    this.#candidates = inOrder.slice(0, asksMax);
  }
}

/** Asks upstream for one entity that is missing, where it can be asked. */
export type StillThere = (key: string) => Promise<'there' | 'gone' | 'unknown'>;

/** Asks for so many of the missing as a reading may, and for no parts of what is gone. */
export function askedOnce(stillThere: StillThere) {
  const gone = new Set<string>();
  let asks = 0;
  return async (key: string, { id, parentId }: EntityState) => {
    if (parentId !== undefined && gone.has(parentId)) return 'gone';
    asks += 1;
    const there = asks > asksMax ? 'unknown' : await stillThere(key);
    if (there === 'gone' && parentId === undefined) gone.add(id);
    return there;
  };
}

/** FNV-1a of a key, as a share of its range. */
function placeOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at += 1) {
    hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  }
  // The last characters of a key, in which ids differ, reach the high bits only so.
  hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

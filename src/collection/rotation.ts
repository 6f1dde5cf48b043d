// Which entities are requested by id in a reading. If there are few, all; else the new, changed and waiting ones, and
// enough of the others that each has its turn within the sweep. An entity's position in the rotation is a hash of its
// key, so the rotation's state is one number, whichever entities come and go. Invariant: no reading requests more than
// its bound; urgent entities left over come first in a later reading.

import type { EntityState } from './state.ts';

/** Up to this number, all entities are requested in each reading. */
const fewMax = 1_000;
/** Limit of entities requested in one reading. */
const asksMax = 5_000;

/** The state of a rotation: a position from 0 up to 1, and its time in epoch milliseconds. */
export interface Rotation {
  readonly at: number;
  readonly time: number;
}

/** The parameters of one reading's share. */
export interface RotationDeps {
  readonly now: number;
  readonly sweepMs: number;
  /** Number of known entities. */
  readonly known: number;
}

/** An entity to be requested by id. */
interface Asked {
  readonly key: string;
  /** The list element's id and lossless text. */
  readonly id: string | null;
  readonly text: string;
  readonly listed: string;
}

interface Candidate extends Asked {
  /** Its distance ahead of the rotation. */
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

  constructor(before: Rotation | undefined, { now, sweepMs, known }: RotationDeps) {
    const { at, time } = before ?? { at: 0, time: now };
    this.#at = at;
    this.#now = now;
    this.#step = Math.max(0, Math.min(1, (now - time) / sweepMs, asksMax / Math.max(1, known)));
    this.#isAll = known <= fewMax;
  }

  /** Adds an entity if it is to be requested. A denied entity is requested when its turn comes. */
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

  /** Clears the candidates. */
  clear(): void {
    this.#candidates = [];
    this.#left = 0;
  }

  /** The entities to request; call after all were offered. */
  chosen(): readonly Asked[] {
    if (this.#candidates.length > asksMax) this.#cut();
    return this.#candidates;
  }

  /** New and changed entities that had no turn. */
  get left(): number {
    return this.#left;
  }

  /** The rotation after this reading. */
  get after(): Rotation {
    const lastAsked = Math.max(0, ...this.#candidates.map(({ ahead }) => ahead));
    const step = this.#left === 0 ? this.#step : lastAsked;
    return { at: (this.#at + step) % 1, time: this.#now };
  }

  /** Keeps the urgent entities first, then the nearest ones. */
  #cut(): void {
    const inOrder = this.#candidates.toSorted(
      (a, b) => Number(b.isUrgent) - Number(a.isUrgent) || a.ahead - b.ahead,
    );
    this.#left += inOrder.slice(asksMax).filter(({ isUrgent }) => isUrgent).length;
    this.#candidates = inOrder.slice(0, asksMax);
  }
}

/** Requests one missing entity by id, if possible. */
export type StillThere = (key: string) => Promise<'there' | 'gone' | 'unknown'>;

/** Limits the requests for missing entities per reading, and requests no parts of an entity that is gone. */
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
  // Spreads the last characters of a key, in which ids differ, to the high bits.
  hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

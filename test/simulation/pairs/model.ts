// The deliveries that a pair owes, by the rules and from the records of each side: read from the ledger's marks and
// nothing of the engine's. The rules:
//
//   the side that delivers has a record delivered at once, unless the other side has delivered it;
//   a record of the other side waits for `patience`, by the own clock and whatever that side does,
//   and is delivered then in its own form, unless the side that delivers has shown it;
//   a cutover or rollback delivers what waits on the side that delivers from then on;
//   what the old side had delivered before the pairing counts as shown;
//   while the brake is on, a record stays where the other side was read past it, and no other.

import type { Side } from './traits.ts';

/** A record that a side has shown and that is stored. */
export interface Show {
  readonly side: Side;
  /** What it is on both sides: equal only for one record, and for true twins. */
  readonly key: string;
  /** Its id as text; null: it has none. */
  readonly id: string | null;
  readonly happenedAt: number;
  readonly stream: string;
}

/** A record of the pair. */
export interface Row extends Show {
  /** When it was stored. */
  readonly at: number;
  /** When the other side had shown it, too; null: it has not. */
  matchedAt: number | null;
  isWaiting: boolean;
}

/** A record that is delivered, in the form of a side. */
export interface Delivery {
  readonly key: string;
  readonly side: Side;
}

/** Up to when each side is read, epoch milliseconds; 0: not at all yet. */
export type Reached = Readonly<Record<Side, number>>;

/** The pair as it has to be. */
export class PairModel {
  phase: 'shadow' | 'cut_over' = 'shadow';
  /** Null: the old source is read alone. */
  begunAt: number | null = null;
  /** The pair is no more in the config. */
  isRetired = false;
  readonly rows: Row[] = [];
  /** Records that the old side had delivered before the pairing, as nothing can show. */
  readonly unknown = new Set<string>();
  readonly #patienceMs: number;
  /** Delivered by the old side before the pairing, and not shown by the new one yet. */
  readonly #before = new Map<string, number>();

  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs;
  }

  /** The side that delivers. */
  get delivering(): Side {
    return this.phase === 'shadow' ? 'old' : 'new';
  }

  /** The side whose records wait. */
  get silent(): Side {
    return this.phase === 'shadow' ? 'new' : 'old';
  }

  /** A side has shown a record. Returns what is delivered then. */
  show(show: Show, now: number): readonly Delivery[] {
    const { key, side } = show;
    const delivery = { key, side };
    if (this.begunAt === null) {
      this.#before.set(key, (this.#before.get(key) ?? 0) + 1);
      return [delivery];
    }
    const open = this.rows.find(
      (row) => row.key === key && row.side !== side && row.matchedAt === null,
    );
    if (open !== undefined) {
      open.matchedAt = now;
      const isOwed = open.isWaiting;
      open.isWaiting = false;
      return isOwed ? [delivery] : [];
    }
    const before = this.#before.get(key) ?? 0;
    if (side === 'new' && before > 0) {
      this.#before.set(key, before - 1);
      this.rows.push({ ...show, at: now, matchedAt: now, isWaiting: false });
      return [];
    }
    const isWaiting = side !== this.delivering;
    this.rows.push({ ...show, at: now, matchedAt: null, isWaiting });
    return isWaiting ? [] : [delivery];
  }

  /** Takes back that the old side had delivered a record: nothing shows that it is the same. */
  forgetBefore(key: string): void {
    if (this.#before.delete(key)) this.unknown.add(key);
  }

  /** Delivers what has waited long enough. */
  release(now: number, isBraked: boolean, reached: Reached): readonly Delivery[] {
    const until = now - this.#patienceMs;
    const other = this.delivering;
    return this.#deliver(
      ({ at }) => at <= until && (!isBraked || this.isRetired || at >= reached[other]),
    );
  }

  /** The other side delivers from now on. */
  turn(phase: 'shadow' | 'cut_over'): readonly Delivery[] {
    this.phase = phase;
    return this.#deliver(({ side }) => side === this.delivering);
  }

  /** Records that wait. */
  get waiting(): readonly Row[] {
    return this.rows.filter(({ isWaiting }) => isWaiting);
  }

  #deliver(isDue: (row: Row) => boolean): readonly Delivery[] {
    const due = this.waiting.filter(isDue);
    for (const row of due) row.isWaiting = false;
    return due.map(({ key, side }) => ({ key, side }));
  }
}

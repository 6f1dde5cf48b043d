// The meaning of a spool's offsets across restarts and across states restored from a copy. Each
// start opens an epoch, and an offset is valid only with its epoch: a restored copy would assign
// the same numbers to other events. Invariant: an offset is trusted only as far as this state
// assigned it, in this epoch or in one that this epoch descends from.

import type { Offset } from './event.ts';

/** The time from one start to the next. */
export interface Epoch {
  /** The epoch's begin in epoch milliseconds: unique and increasing. 0: before epochs existed. */
  readonly id: number;
  /** The first offset not assigned by its end; null: the epoch is open. */
  readonly until: Offset | null;
}

/** The numbering of a spool. */
export interface Numbering {
  readonly spool: string;
  /** The epochs of this state, oldest first; the last is the present one. */
  readonly epochs: readonly Epoch[];
}

/** A sink's position as reported by a receiver or another process. */
export interface SinkPosition {
  readonly spool: string;
  readonly epoch: number;
  /** Offset of the next event. */
  readonly next: Offset;
}

/** A position as this spool can use it. */
export interface PositionReach {
  /** Every event before it was delivered. */
  readonly position: Offset;
  /** More was delivered than this state knows: the state is older, or another state's. */
  readonly ahead: boolean;
}

/**
 * How far a position is valid in this numbering. For an epoch that the state did not go through, it
 * is valid as far as the epoch before: there the histories diverge. If an epoch began after the
 * present one (another process resumed from a copy, or the clock was set back), the point of
 * divergence is unknown, so nothing is trusted.
 */
export function reachOf(place: SinkPosition, numbering: Numbering): PositionReach {
  const isKnown = place.spool === numbering.spool && place.epoch <= presentEpoch(numbering);
  const shared = numbering.epochs.findLast(({ id }) => id <= place.epoch);
  const until = !isKnown || shared === undefined ? 0 : (shared.until ?? place.next);
  return { position: Math.min(place.next, until), ahead: place.next > until };
}

/** The present epoch. */
export function presentEpoch({ epochs }: Numbering): number {
  return epochs.at(-1)?.id ?? 0;
}

/** The offset at which the present epoch began: all smaller offsets were stored before. */
export function epochBegin({ epochs }: Numbering): Offset {
  return epochs.at(-2)?.until ?? 0;
}

// What a spool's numbers stand for, over restarts and over states that were put back from a copy.
// Each start begins an epoch, and a number counts only with its epoch: from a copy the same numbers
// would come again for other events. What must stay true: a number is believed only as far as this
// state gave it, in this epoch or in one that it came from.

import type { Offset } from './event.ts';

/** The time between two starts. */
export interface Epoch {
  /** When the epoch began, epoch milliseconds: unique, and grows. 0: before there were epochs. */
  readonly id: number;
  /** The first number that was not given by its end; null: it goes on. */
  readonly until: Offset | null;
}

/** All numbers of a spool. */
export interface Numbering {
  readonly spool: string;
  /** Those this state has come through, oldest first; the last is the present one. */
  readonly epochs: readonly Epoch[];
}

/** How far someone says a sink has come. */
export interface SinkPosition {
  readonly spool: string;
  readonly epoch: number;
  /** Number of the next event. */
  readonly next: Offset;
}

/** What a place means to a spool. */
export interface PositionReach {
  /** Everything before it was delivered. */
  readonly position: Offset;
  /** More was delivered than this state knows of: it is older, or another's. */
  readonly ahead: boolean;
}

/**
 * How far a place reaches in this numbering. Of an epoch that the state has not come through it
 * holds as much as of the one before: there the two have parted. Of one that began behind the
 * present one (another process goes on from a copy, or the clock has gone back) nobody knows where
 * that was, so nothing is believed.
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

/** Where the present epoch began: what has a smaller number was held by then. */
export function epochBegin({ epochs }: Numbering): Offset {
  return epochs.at(-2)?.until ?? 0;
}

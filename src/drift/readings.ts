// When a change can have happened, as far as readings of its configuration say: each takes its time,
// what differs is read a second time, and what is missing several times, before it is told.

import type { CollectionReading } from '../contracts/definition.ts';
import type { DriftOperation, OpenChange } from './state.ts';

/** A configuration that is read, as it stands now. */
export interface WatchedStream {
  readonly name: string;
  readonly source: string;
  readonly company: string | null;
  readonly reading: Pick<
    CollectionReading,
    'confirmAfterMs' | 'settleMs' | 'removals' | 'removalsAfter'
  > & {
    /** Within which each entity is asked by its id; 0: a reading shows all of all. */
    readonly sweepMs: number;
  };
}

/** Removals that the brake holds take three readings, and second looks are none of these. */
const removalReadings = 3;
const looksEach = 2;

/** Readings that must have come by for a change to be told, and for how long. */
export function patience(operation: DriftOperation | null, { reading }: WatchedStream) {
  const { confirmAfterMs, settleMs, removalsAfter, sweepMs } = reading;
  switch (operation) {
    case 'created':
      return { readings: 1, ms: sweepMs };
    case 'deleted':
      return {
        readings: looksEach * Math.max(removalReadings, removalsAfter),
        ms: settleMs + sweepMs,
      };
    case 'updated':
    case null:
      // At the latest two readings after the one that shows it first.
      return { readings: 3, ms: confirmAfterMs + sweepMs };
  }
}

/**
 * The last reading that can have shown what was before a change told at this time, and one more,
 * since readings take their time; null: not known.
 */
export function lastBefore(
  readings: readonly number[],
  { operation, to }: Pick<OpenChange, 'operation' | 'to'>,
  stream: WatchedStream,
): number | null {
  const { readings: count, ms } = patience(operation, stream);
  const byCount = readings.findLastIndex((at) => at < to) - count;
  const byTime = readings.findLastIndex((at) => at < to - ms) - 1;
  return readings[Math.min(byCount, byTime)] ?? null;
}

// The time in which a change can have happened, from the scans of its configuration: a scan takes
// time, a difference is read a second time, and an absence several times, before it is reported.

import type { CollectionReading } from '../contracts/config.ts';
import type { DriftOperation, OpenChange } from './state.ts';

/** A scanned configuration in its present state. */
export interface WatchedStream {
  readonly name: string;
  readonly source: string;
  readonly company: string | null;
  readonly reading: Pick<
    CollectionReading,
    'confirmAfterMs' | 'settleMs' | 'removals' | 'removalsAfter'
  > & {
    /** Maximum time in which each entity is requested by its id; 0: every scan shows everything. */
    readonly sweepMs: number;
  };
}

/** Removals withheld by the brake need three scans, and confirming reads do not count. */
const removalReadings = 3;
const looksEach = 2;

/** Number and duration of scans before a change is reported. */
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
      // At the latest two scans after the one that shows it first.
      return { readings: 3, ms: confirmAfterMs + sweepMs };
  }
}

/**
 * The last scan that can have shown the state before a change reported at this time, and one more,
 * because scans take time; null: unknown.
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

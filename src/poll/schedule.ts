// When a stream is polled: a time after the start of the last poll (`every`), or at the times of a cron expression. The
// time may adapt between two bounds: the shorter one after a poll with new records, longer with each poll without. Polls
// never overlap; ticks missed by a long poll are skipped and counted.

import type { Clock, Schedule } from '../contracts/index.ts';
import { parseCron } from '../tools/index.ts';

/** The waits of one stream. */
export interface Timetable {
  /** Milliseconds until the next poll, if the last one began at this monotonic time and read so many new records. */
  untilNext(begunAt: number, fresh?: number): number;
  /** The present interval of an adaptive schedule, milliseconds; null: the interval is fixed. */
  readonly intervalMs: number | null;
  /** Number of polls that became due while one was running. */
  readonly skipped: number;
}

/** The wait if an expression has no next time; `check` rejects such expressions. */
const neverMs = 366 * 86_400_000;

/** Growth of an adaptive interval with each poll without a new record: from 5 s to 5 min in 11 polls. */
const growth = 1.5;

/** A timetable for one stream. */
export function timetable(schedule: Schedule, clock: Clock): Timetable {
  return 'everyMs' in schedule ? interval(schedule, clock) : cron(schedule, clock);
}

function interval(
  { everyMs, minMs = everyMs }: Extract<Schedule, { everyMs: number }>,
  clock: Clock,
): Timetable {
  let skipped = 0;
  // After a start a stream shows soon whether records arrive.
  let present = minMs;
  return {
    get skipped() {
      return skipped;
    },
    get intervalMs() {
      return minMs === everyMs ? null : present;
    },
    untilNext(begunAt, fresh = 0) {
      present = fresh > 0 ? minMs : Math.min(everyMs, present * growth);
      const took = clock.monotonic() - begunAt;
      if (took < present) return present - took;
      skipped += Math.floor(took / present);
      return 0;
    },
  };
}

function cron(schedule: { cron: string; timezone: string | undefined }, clock: Clock): Timetable {
  const calendar = parseCron(schedule.cron, schedule.timezone);
  let skipped = 0;
  /** The tick of the last wait, and its distance to the next one. */
  let announced: { readonly at: number; readonly spacing: number } | null = null;
  return {
    get skipped() {
      return skipped;
    },
    intervalMs: null,
    untilNext() {
      const now = clock.now();
      if (announced !== null && announced.at < now) {
        skipped += Math.floor((now - announced.at) / announced.spacing);
      }
      const at = calendar.next(now) ?? now + neverMs;
      const after = calendar.next(at) ?? at;
      announced = { at, spacing: Math.max(1_000, after - at) };
      return at - now;
    },
  };
}

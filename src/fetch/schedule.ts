// When a stream is polled: so long after the last poll began (`every`), or when a cron expression
// says so. A poll that takes longer than its period is never doubled; the ticks that it ran over
// are skipped and counted.

import type { Clock } from '../contracts/tools.ts';
import { parseCron } from './cron.ts';

/** As in the config. */
export type Schedule =
  | { readonly everyMs: number }
  | { readonly cron: string; readonly timezone: string | undefined };

/** Tells the waits of one stream. */
export interface Timetable {
  /** Milliseconds until the next poll, when the last one began at this monotonic time. */
  untilNext(begunAt: number): number;
  /** Polls that fell due while one was still running. */
  readonly skipped: number;
}

/** The wait where an expression has no next time; `check` refuses such expressions. */
const neverMs = 366 * 86_400_000;

/** A timetable for one stream. */
export function timetable(schedule: Schedule, clock: Clock): Timetable {
  return 'everyMs' in schedule ? interval(schedule.everyMs, clock) : cron(schedule, clock);
}

function interval(everyMs: number, clock: Clock): Timetable {
  let skipped = 0;
  return {
    get skipped() {
      return skipped;
    },
    untilNext(begunAt) {
      const took = clock.monotonic() - begunAt;
      if (took < everyMs) return everyMs - took;
      skipped += Math.floor(took / everyMs);
      return 0;
    },
  };
}

function cron(schedule: { cron: string; timezone: string | undefined }, clock: Clock): Timetable {
  const calendar = parseCron(schedule.cron, schedule.timezone);
  let skipped = 0;
  /** The tick of the last wait, and how far the next one is from it. */
  let announced: { readonly at: number; readonly spacing: number } | null = null;
  return {
    get skipped() {
      return skipped;
    },
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

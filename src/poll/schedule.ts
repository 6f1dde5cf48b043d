// When a stream is polled: a fixed time after the start of the last poll (`every`), or at the times of a cron
// expression. Polls never overlap; ticks missed by a long poll are skipped and counted.

import type { Clock } from '../contracts/index.ts';
import { parseCron } from './cron.ts';

/** As in the config. */
export type Schedule =
  | { readonly everyMs: number }
  | { readonly cron: string; readonly timezone: string | undefined };

/** The waits of one stream. */
export interface Timetable {
  /** Milliseconds until the next poll, if the last one began at this monotonic time. */
  untilNext(begunAt: number): number;
  /** Number of polls that became due while one was running. */
  readonly skipped: number;
}

/** The wait if an expression has no next time; `check` rejects such expressions. */
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
  /** The tick of the last wait, and its distance to the next one. */
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

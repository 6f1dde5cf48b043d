// When a stream is polled: so long after the last poll began (`every`), or when a cron expression says so. A poll that takes longer than
// its period is never doubled; the ticks that it ran over are skipped and counted.

import { createTask } from 'node-cron';
import type { Clock } from '../contracts/tools.ts';

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

/** Ticks looked ahead for when counting those that a long poll ran over. */
const ticksMax = 1_000;

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
  // Only its calendar is used: the waiting is the clock's, so that it can be cut short and tested.
  const { timezone } = schedule;
  const task = createTask(
    schedule.cron,
    () => undefined,
    timezone === undefined ? {} : { timezone },
  );
  let skipped = 0;
  let announced: number | null = null;
  return {
    get skipped() {
      return skipped;
    },
    untilNext() {
      const now = clock.now();
      const upcoming = task.getNextRuns(1)[0]?.getTime() ?? now + 60_000;
      if (announced !== null && announced < now && upcoming - announced > 0) {
        const perTick = Math.max(1_000, upcoming - announced);
        skipped += Math.min(ticksMax, Math.floor((now - announced) / perTick));
      }
      announced = upcoming;
      return Math.max(0, upcoming - now);
    },
  };
}

// When a stream is polled: so long after the last poll began (`every`), or when a cron expression
// says so. A poll that takes longer than its period is never doubled; the ticks that it ran over
// are skipped and counted.

import { createRequire } from 'node:module';
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

/** node-cron, loaded by the first cron expression: most configs start sooner without it. */
export const nodeCron = () =>
  createRequire(import.meta.url)('node-cron') as typeof import('node-cron');

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
  const { createTask } = nodeCron();
  const { timezone } = schedule;
  const task = createTask(
    schedule.cron,
    () => undefined,
    timezone === undefined ? {} : { timezone },
  );
  let skipped = 0;
  /** The tick that was waited for last, and how far the one after it is from it. */
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
      const [next, after] = task.getNextRuns(2).map((run) => run.getTime());
      const at = next ?? now + 60_000;
      announced = { at, spacing: Math.max(1_000, (after ?? at) - at) };
      return Math.max(0, at - now);
    },
  };
}

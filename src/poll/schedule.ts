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
  return 'everyMs' in schedule ? new Interval(schedule, clock) : new CronTimes(schedule, clock);
}

/** A class, because each of thousands of streams has one. */
class Interval implements Timetable {
  readonly #schedule: Extract<Schedule, { everyMs: number }>;
  readonly #clock: Clock;
  #skipped = 0;
  /** After a start it is the shorter one: a stream shows soon whether records arrive. */
  #presentMs: number;

  constructor(schedule: Extract<Schedule, { everyMs: number }>, clock: Clock) {
    this.#schedule = schedule;
    this.#clock = clock;
    this.#presentMs = this.#minMs;
  }

  get skipped(): number {
    return this.#skipped;
  }

  get intervalMs(): number | null {
    return this.#minMs === this.#schedule.everyMs ? null : this.#presentMs;
  }

  untilNext(begunAt: number, fresh = 0): number {
    const { everyMs } = this.#schedule;
    this.#presentMs = fresh > 0 ? this.#minMs : Math.min(everyMs, this.#presentMs * growth);
    const took = this.#clock.monotonic() - begunAt;
    if (took < this.#presentMs) return this.#presentMs - took;
    this.#skipped += Math.floor(took / this.#presentMs);
    return 0;
  }

  get #minMs(): number {
    const { everyMs, minMs = everyMs } = this.#schedule;
    return minMs;
  }
}

/** The parsed expressions, one for all streams of a source. */
const calendars = new WeakMap<object, ReturnType<typeof parseCron>>();

function calendarOf(schedule: { cron: string; timezone: string | undefined }) {
  return calendars.getOrInsertComputed(schedule, () => parseCron(schedule.cron, schedule.timezone));
}

class CronTimes implements Timetable {
  readonly intervalMs = null;
  readonly #calendar: ReturnType<typeof parseCron>;
  readonly #clock: Clock;
  #skipped = 0;
  /** The tick of the last wait, and its distance to the next one. */
  #announced: { readonly at: number; readonly spacing: number } | null = null;

  constructor(schedule: { cron: string; timezone: string | undefined }, clock: Clock) {
    this.#calendar = calendarOf(schedule);
    this.#clock = clock;
  }

  get skipped(): number {
    return this.#skipped;
  }

  untilNext(): number {
    const now = this.#clock.now();
    const announced = this.#announced;
    if (announced !== null && announced.at < now) {
      this.#skipped += Math.floor((now - announced.at) / announced.spacing);
    }
    const at = this.#calendar.next(now) ?? now + neverMs;
    const after = this.#calendar.next(at) ?? at;
    this.#announced = { at, spacing: Math.max(1_000, after - at) };
    return at - now;
  }
}

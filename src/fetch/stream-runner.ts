// The loop of one stream: poll, wait until it is due again, poll. It is the only place that decides how long a stream waits:
// until its schedule says so, until upstream's own Retry-After, or a growing back-off. One poll at a time per stream, and no
// more than a fixed number over all streams. A stream that fails, fails alone.

import { asExportError, type ExportError } from '../contracts/errors.ts';
import type { Json } from '../contracts/json.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import type { PollResult } from './outcome.ts';
import type { Timetable } from './schedule.ts';
import type { Turns } from './turns.ts';

/** What a stream is polled with. */
export interface RunnerSettings {
  readonly name: string;
  readonly source: string;
  readonly poll: (signal: AbortSignal) => Promise<PollResult>;
  readonly timetable: Timetable;
  readonly turns: Turns;
  readonly clock: Clock;
  readonly log: Log;
  readonly backOff: { next(): number; reset(): void };
  /** Wait before the first poll, so that thousands of streams do not start at once. */
  readonly jitterMs: number;
  /** Told after each poll, for status. */
  readonly note: (facts: Json) => void;
}

/** What status and metrics show of a stream. */
export interface RunnerState {
  readonly name: string;
  readonly source: string;
  readonly state: 'waiting' | 'polling' | 'retrying' | 'halted';
  readonly polls: number;
  readonly records: number;
  readonly skipped: number;
  /** Epoch milliseconds of the last poll that reached the tail; null before the first. */
  readonly caughtUpAt: number | null;
  readonly error: ExportError | null;
}

/** Polls that found the tail wait at least this long, whatever the schedule says. */
const idleWaitMsMin = 100;
/** Polls that failed wait at least this long, whatever upstream says. */
const retryWaitMsMin = 1_000;

/** Polls one stream. */
export class StreamRunner {
  readonly #settings: RunnerSettings;
  #state: RunnerState['state'] = 'waiting';
  #polls = 0;
  #records = 0;
  #caughtUpAt: number | null = null;
  #error: ExportError | null = null;

  constructor(settings: RunnerSettings) {
    this.#settings = settings;
  }

  get state(): RunnerState {
    return {
      name: this.#settings.name,
      source: this.#settings.source,
      state: this.#state,
      polls: this.#polls,
      records: this.#records,
      skipped: this.#settings.timetable.skipped,
      caughtUpAt: this.#caughtUpAt,
      error: this.#error,
    };
  }

  /** Polls until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, jitterMs } = this.#settings;
    try {
      await clock.sleep(jitterMs, signal);
      while (!signal.aborted) {
        const begunAt = clock.monotonic();
        const result = await this.#poll(signal);
        await clock.sleep(this.#waitAfter(result, begunAt), signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Polls until the tail was reached once. Resolves with null, or with what halted the stream. */
  async runOnce(signal: AbortSignal): Promise<ExportError | null> {
    const { clock } = this.#settings;
    for (;;) {
      const begunAt = clock.monotonic();
      const result = await this.#poll(signal);
      if (result.outcome === 'halted') return result.cause;
      if (result.outcome === 'done' && !result.more) return null;
      await clock.sleep(this.#waitAfter(result, begunAt), signal);
    }
  }

  async #poll(signal: AbortSignal): Promise<PollResult> {
    const { turns, poll, name } = this.#settings;
    const release = await turns.take(signal);
    this.#state = 'polling';
    try {
      const result = await poll(signal).catch((error): PollResult => {
        signal.throwIfAborted();
        // A fault of ours, in this stream: the others go on, and this one is asked again.
        return { outcome: 'retry', cause: asExportError(error, `reading ${name}`) };
      });
      this.#polls += 1;
      this.#observe(result);
      return result;
    } finally {
      release();
    }
  }

  #observe(result: PollResult): void {
    const { clock, log, backOff, note } = this.#settings;
    switch (result.outcome) {
      case 'done':
        this.#records += result.fresh;
        if (!result.more) this.#caughtUpAt = clock.now();
        if (this.#error !== null) log.info('the stream can be read again');
        this.#error = null;
        this.#state = 'waiting';
        if (result.fresh > 0 || !result.more) backOff.reset();
        break;
      case 'retry':
        this.#state = 'retrying';
        this.#tell(result.cause);
        break;
      case 'halted':
        this.#state = 'halted';
        this.#tell(result.cause);
        break;
    }
    note({
      source: this.#settings.source,
      state: this.#state,
      caught_up_at: this.#caughtUpAt,
      polls: this.#polls,
      records: this.#records,
      error:
        this.#error === null
          ? null
          : { code: this.#error.code, message: this.#error.message, next: this.#error.next },
    });
  }

  #tell(cause: ExportError): void {
    this.#error = cause;
    const fields = { code: cause.code, error: cause.message, next: cause.next, ...cause.details };
    if (this.#state === 'halted') this.#settings.log.error('the stream is halted', fields);
    else this.#settings.log.warn('the stream could not be read; it is tried again', fields);
  }

  #waitAfter(result: PollResult, begunAt: number): number {
    const { timetable, backOff } = this.#settings;
    switch (result.outcome) {
      case 'done':
        if (!result.more) return Math.max(idleWaitMsMin, timetable.untilNext(begunAt));
        // A list that goes on and on without a record must not become a hot loop.
        return result.fresh > 0 ? 0 : backOff.next();
      case 'retry':
        return Math.max(retryWaitMsMin, result.afterMs ?? backOff.next());
      case 'halted':
        return result.waitMs;
    }
  }
}

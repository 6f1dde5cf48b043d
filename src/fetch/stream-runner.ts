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
  /** Epoch milliseconds of its next poll, past while it waits for its turn; null while it is polled, and once it has ended. */
  readonly nextPollAt: number | null;
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
  #nextPollAt: number | null = null;
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
      nextPollAt: this.#nextPollAt,
      error: this.#error,
    };
  }

  /** Polls until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#wait(this.#settings.jitterMs, signal);
      while (!signal.aborted) {
        const { waitMs } = await this.#poll(signal);
        await this.#wait(waitMs, signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#nextPollAt = null;
    }
  }

  /** Polls until all was read once, and looked at again where it asks for that. Resolves with null, or with what halted it. */
  async runOnce(signal: AbortSignal): Promise<ExportError | null> {
    try {
      for (;;) {
        const { result, waitMs } = await this.#poll(signal);
        if (result.outcome === 'halted') return result.cause;
        if (result.outcome === 'done' && !result.more && result.againMs === undefined) return null;
        await this.#wait(waitMs, signal);
      }
    } finally {
      this.#nextPollAt = null;
    }
  }

  async #wait(waitMs: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#settings;
    this.#nextPollAt = clock.now() + waitMs;
    await clock.sleep(waitMs, signal);
  }

  /** One poll, and how long to wait after it. */
  async #poll(signal: AbortSignal): Promise<{ result: PollResult; waitMs: number }> {
    const { turns, poll, name, clock } = this.#settings;
    const begunAt = clock.monotonic();
    const release = await turns.take(signal);
    this.#state = 'polling';
    this.#nextPollAt = null;
    try {
      const result = await poll(signal).catch((error): PollResult => {
        signal.throwIfAborted();
        // A fault of ours, in this stream: the others go on, and this one is asked again.
        return { outcome: 'retry', cause: asExportError(error, `reading ${name}`) };
      });
      this.#polls += 1;
      const waitMs = this.#waitAfter(result, begunAt);
      this.#observe(result, waitMs);
      return { result, waitMs };
    } finally {
      release();
    }
  }

  #observe(result: PollResult, waitMs: number): void {
    const { clock, log, note } = this.#settings;
    switch (result.outcome) {
      case 'done':
        this.#records += result.fresh;
        if (!result.more) this.#caughtUpAt = clock.now();
        if (this.#error !== null) log.info('the stream can be read again');
        this.#error = null;
        this.#state = 'waiting';
        break;
      case 'retry':
        this.#state = 'retrying';
        this.#tell(result.cause, waitMs);
        break;
      case 'halted':
        this.#state = 'halted';
        this.#tell(result.cause, waitMs);
        break;
    }
    note({
      source: this.#settings.source,
      state: this.#state,
      caught_up_at: this.#caughtUpAt,
      next_poll_at: clock.now() + waitMs,
      polls: this.#polls,
      records: this.#records,
      error:
        this.#error === null
          ? null
          : { code: this.#error.code, message: this.#error.message, next: this.#error.next },
    });
  }

  #tell(cause: ExportError, waitMs: number): void {
    this.#error = cause;
    const { code, message, next, details } = cause;
    const ours = { code, error: message, next };
    // First for who reads, and last since no detail may go by one of these names.
    const fields = { ...ours, ...details, ...ours, wait_ms: waitMs };
    if (this.#state === 'halted') this.#settings.log.error('the stream is halted', fields);
    else this.#settings.log.warn('the stream could not be read; it is tried again', fields);
  }

  #waitAfter(result: PollResult, begunAt: number): number {
    const { timetable, backOff } = this.#settings;
    switch (result.outcome) {
      case 'done':
        if (result.fresh > 0 || !result.more) backOff.reset();
        if (!result.more) {
          return Math.max(idleWaitMsMin, result.againMs ?? timetable.untilNext(begunAt));
        }
        // A list that goes on and on without a record must not become a hot loop.
        return result.fresh > 0 ? 0 : backOff.next();
      case 'retry':
        return Math.max(retryWaitMsMin, result.afterMs ?? backOff.next());
      case 'halted':
        return result.waitMs;
    }
  }
}

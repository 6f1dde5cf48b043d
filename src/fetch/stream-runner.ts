// The loop of one stream: poll, wait as its health decides, poll. An operator may cut a wait short, except one that
// upstream requires. Invariants: one poll at a time per stream, and a limited number over all streams; a failing stream
// does not affect others.

import {
  asExportError,
  type Clock,
  type ExportError,
  type JsonObject,
  type Log,
  type Wait,
} from '../contracts/index.ts';
import type { ParentsState } from '../parents/index.ts';
import type { PollResult, Timetable } from '../poll/index.ts';

import { notDecided, StreamHealth } from './stream-health.ts';
import type { Turns } from './turns.ts';

/** The facts on a stream for status and metrics. */
export interface RunnerState {
  readonly name: string;
  readonly source: string;
  readonly state: 'waiting' | 'polling' | 'retrying' | 'halted';
  readonly polls: number;
  readonly records: number;
  readonly skipped: number;
  /** The present interval of an adaptive schedule, milliseconds; absent: the interval is fixed. */
  readonly intervalMs?: number;
  /** Epoch milliseconds of the last poll that reached the tail; null before the first. */
  readonly caughtUpAt: number | null;
  /** Epoch milliseconds of its next poll, past while it waits for its turn; null: it is polling, or has ended. */
  readonly nextPollAt: number | null;
  readonly error: ExportError | null;
  /** Its last poll found the tail. */
  readonly isAtTail?: boolean;
  /** Its polls fail, and that is no fault: its API has ended, and its successor delivers. */
  readonly isEnded?: boolean;
  /** For pushed streams. */
  readonly deliveries?: Deliveries;
  /** For streams with parents. */
  readonly parents?: ParentsState;
}

/** Numbers of accepted, repeated and rejected deliveries, by outcome. */
export type Deliveries = Readonly<Record<string, number>>;

/** Facts that only some kinds of streams have. */
export type Besides = Pick<RunnerState, 'deliveries' | 'parents'>;

/** Dependencies and settings of a runner. */
export interface RunnerSettings {
  readonly name: string;
  readonly source: string;
  readonly poll: (signal: AbortSignal) => Promise<PollResult>;
  readonly timetable: Timetable;
  readonly turns: Turns;
  readonly clock: Clock;
  readonly log: Log;
  /** From 0 up to 1, for jitter. */
  readonly random: () => number;
  /** Wait before the first poll, so that thousands of streams do not start at once, milliseconds. */
  readonly jitterMs: number;
  /** Called after each poll, for status. */
  readonly note: (facts: JsonObject) => void;
  /** Called once everything that upstream showed by this time (epoch milliseconds) is stored. */
  readonly reached: (at: number) => void;
  /** True if its failures are no fault: its API has ended, and its successor delivers. */
  readonly isExcused?: () => boolean;
  /** The failure, with the end of the API and the next step if that explains it; else unchanged. */
  readonly named?: (cause: ExportError) => ExportError;
  /** Facts that only some kinds of streams have. */
  readonly besides?: () => Besides;
}

/** Minimum time between the starts of two polls, however often upstream announces news. */
const nudgedMsMin = 5_000;

interface Work {
  readonly run: () => Promise<void>;
  readonly drop: (why: unknown) => void;
}

/** Polls one stream. */
export class StreamRunner {
  readonly #settings: RunnerSettings;
  readonly #health: StreamHealth;
  /** Ends the wait under way. */
  #wake: (() => void) | null = null;
  /** An operator requested a poll during a poll, which may have missed new records. */
  #isAskedAgain = false;
  /** Upstream has announced news; a poll that begins later reads it. */
  #isNudged = false;
  /** Ends the wait under way soon; null: it waits for something other than its schedule. */
  #soon: (() => void) | null = null;
  /** The last poll found the tail, so the stream waits for its schedule only. */
  #isAtRest = false;
  /** Work that must not overlap with a poll. */
  readonly #works: Work[] = [];
  /** Aborts the poll or wait under way, for such work or because polling stops. */
  #interrupt = new AbortController();
  #isRunning = false;
  #isPolling = false;
  #nextPollAt: number | null = null;
  #isEndReported = false;

  constructor(settings: RunnerSettings) {
    this.#settings = settings;
    this.#health = new StreamHealth(settings);
  }

  get state(): RunnerState {
    return {
      name: this.#settings.name,
      source: this.#settings.source,
      ...this.#shown,
      ...(this.#isPolling ? { state: 'polling' } : {}),
      skipped: this.#settings.timetable.skipped,
      ...this.#interval,
      nextPollAt: this.#nextPollAt,
      isAtTail: this.#isAtRest,
      ...this.#settings.besides?.(),
    };
  }

  get #interval(): Pick<RunnerState, 'intervalMs'> {
    const { intervalMs } = this.#settings.timetable;
    return intervalMs === null ? {} : { intervalMs };
  }

  /** Polls that have ended since the start. */
  get polls(): number {
    return this.#health.state.polls;
  }

  /** Why its last poll failed, also if that is no fault; null: it did not. */
  get failure(): ExportError | null {
    return this.#health.state.error;
  }

  /** True if its polls fail and that is no fault. */
  get isEnded(): boolean {
    return this.failure !== null && this.#settings.isExcused?.() === true;
  }

  get #named(): ExportError | null {
    return this.failure && (this.#settings.named?.(this.failure) ?? this.failure);
  }

  /** Its health's state; failures of an ended API are none. */
  get #shown() {
    const { state } = this.#health;
    if (!this.isEnded) return { ...state, error: this.#named, isEnded: false };
    this.#reportEnd();
    return { ...state, state: 'waiting' as const, error: null, isEnded: true };
  }

  /** Once for each end: an API that can be read again has not ended. */
  #reportEnd(): void {
    const { log } = this.#settings;
    if (this.#isEndReported || this.failure === null) return;
    this.#isEndReported = true;
    log.info('stream_superseded', 'stopped polling the stream: its successor delivers', {
      error: this.failure.message,
      next: 'Once the old source is not needed, remove it, its upstream and succeeds from the config.',
    });
  }

  /** Polls until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const end = this.#begin(signal);
    let wait: Wait = { ...notDecided, ms: this.#settings.jitterMs };
    try {
      while (!signal.aborted) ({ wait } = await this.#turn(wait, signal));
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      await end();
    }
  }

  /** Polls until everything was read once, and again if requested. Null, or the failure. */
  async runOnce(signal: AbortSignal): Promise<ExportError | null> {
    const end = this.#begin(signal);
    let before: Wait | null = null;
    try {
      for (;;) {
        const { result, wait } = await this.#turn(before, signal);
        const isOver = this.#health.state.state === 'halted' || this.isEnded;
        if (result !== null && result.outcome !== 'done' && isOver) return result.cause;
        if (result?.outcome === 'done' && !result.more && result.againMs === undefined) {
          return result.doubt ?? null;
        }
        before = wait;
      }
    } finally {
      await end();
    }
  }

  /** Starts the runner; returns a function that ends it. Each additional promise of an idle stream would use memory. */
  #begin(signal: AbortSignal): () => Promise<void> {
    this.#isRunning = true;
    // Signals made by AbortSignal.any would be most of an idle stream's memory.
    const stop = () => this.#interrupt.abort(signal.reason);
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    return async () => {
      signal.removeEventListener('abort', stop);
      this.#isRunning = false;
      this.#nextPollAt = null;
      for (const { run, drop } of this.#works.splice(0)) {
        if (signal.aborted) drop(signal.reason);
        else await run();
      }
    };
  }

  /**
   * Polls now instead of at the end of the wait. If upstream requires the wait, the wait stays, and its end is
   * returned, epoch milliseconds.
   */
  retryNow(): number | null {
    this.#health.resetWaits();
    this.#isAskedAgain = this.#isPolling;
    const endsAt = this.#wake === null ? this.#nextPollAt : null;
    this.#wake?.();
    return endsAt;
  }

  /** Polls soon if the stream waits for its schedule. */
  nudge(): void {
    if (this.#isNudged) return;
    this.#isNudged = true;
    this.#soon?.();
  }

  /** Runs work while the stream is idle: a poll under way is aborted and repeated. */
  whileStill<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#isRunning) return work();
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#works.push({ run: () => work().then(resolve, reject), drop: reject });
    this.#interrupt.abort(new Error('interrupted'));
    return promise;
  }

  /** A wait and the poll after it, or the work that interrupts them; returns the next wait. */
  async #turn(
    before: Wait | null,
    signal: AbortSignal,
  ): Promise<{ readonly result: PollResult | null; readonly wait: Wait }> {
    const { signal: interrupted } = this.#interrupt;
    try {
      if (before !== null) await this.#wait(before, interrupted);
      return await this.#poll(interrupted);
    } catch (error) {
      if (signal.aborted || !interrupted.aborted) throw error;
      this.#interrupt = new AbortController();
      for (const { run } of this.#works.splice(0)) await run();
      return { result: null, wait: notDecided };
    }
  }

  async #wait({ ms, cut, repaired }: Wait, signal: AbortSignal): Promise<void> {
    const { clock } = this.#settings;
    this.#nextPollAt = clock.now() + ms;
    const isAskedAgain = this.#isAskedAgain;
    this.#isAskedAgain = false;
    const over = new AbortController();
    const interrupt = () => over.abort(signal.reason);
    signal.addEventListener('abort', interrupt);
    if (signal.aborted) interrupt();
    if (cut !== undefined) {
      this.#wake = () => {
        cut();
        over.abort(new Error('retried now'));
      };
      if (isAskedAgain) this.#wake();
    }
    const begunAt = clock.monotonic();
    if (this.#isAtRest) {
      this.#soon = () => {
        const leftMs = Math.max(0, begunAt + nudgedMsMin - clock.monotonic());
        clock.sleep(leftMs, over.signal).then(
          () => over.abort(new Error('nudged')),
          () => undefined,
        );
      };
      if (this.#isNudged) this.#soon();
    }
    try {
      const waited = clock.sleep(ms, over.signal);
      await (repaired === undefined ? waited : Promise.race([waited, repaired(over.signal)]));
    } catch (error) {
      if (signal.aborted || !over.signal.aborted) throw error;
    } finally {
      this.#wake = null;
      this.#soon = null;
      signal.removeEventListener('abort', interrupt);
      over.abort(new Error('waited'));
    }
  }

  /** One poll, and the wait after it. */
  async #poll(signal: AbortSignal): Promise<{ result: PollResult; wait: Wait }> {
    const { turns, poll, name, clock } = this.#settings;
    const begunAt = clock.monotonic();
    const release = await turns.take(signal);
    this.#isPolling = true;
    this.#nextPollAt = null;
    this.#isNudged = false;
    const askedAt = clock.now();
    try {
      const result = await poll(signal).catch((error): PollResult => {
        signal.throwIfAborted();
        // A bug affects this stream only: the others continue, and this one is polled again.
        return { outcome: 'retry', cause: asExportError(error, `reading ${name}`) };
      });
      this.#isAtRest = result.outcome === 'done' && !result.more && result.againMs === undefined;
      const isEnded = this.#settings.isExcused?.() === true;
      const wait = this.#health.observe(result, begunAt, isEnded);
      if (this.isEnded) this.#reportEnd();
      else if (this.failure === null) this.#isEndReported = false;
      this.#note(wait.ms);
      const isWhole = result.outcome === 'done' && !result.more && !result.doubt;
      if (isWhole) this.#settings.reached(askedAt);
      return { result, wait };
    } finally {
      this.#isPolling = false;
      release();
    }
  }

  #note(waitMs: number): void {
    const { clock, note, source, besides } = this.#settings;
    // The reader judges whether a failure is a fault: the successor's state changes later.
    const { state, polls, records, caughtUpAt } = this.#health.state;
    const error = this.#named;
    note({
      source,
      state,
      caught_up_at: caughtUpAt,
      next_poll_at: clock.now() + waitMs,
      ...(this.#interval.intervalMs !== undefined && { interval_ms: this.#interval.intervalMs }),
      polls,
      records,
      ...noted(besides?.() ?? {}),
      error: error && { code: error.code, message: error.message, next: error.next },
    });
  }
}

function noted({ deliveries, parents }: Besides): JsonObject {
  return { ...(deliveries && { deliveries }), ...(parents && { parents: { ...parents } }) };
}

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

import type { Alarm, Alarms } from './alarms.ts';
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
  /** For lists whose newest records are ahead of this machine's clock: how far, milliseconds. */
  readonly aheadMs?: number;
}

/** Numbers of accepted, repeated and rejected deliveries, by outcome. */
export type Deliveries = Readonly<Record<string, number>>;

/** Facts that only some kinds of streams have. */
export type PollerFacts = Pick<RunnerState, 'deliveries' | 'parents' | 'aheadMs'>;

/** Dependencies and settings of a runner. */
export interface RunnerSettings {
  readonly name: string;
  readonly source: string;
  poll(signal: AbortSignal): Promise<PollResult>;
  readonly timetable: Timetable;
  readonly turns: Turns;
  readonly clock: Clock;
  /** Its waits, on the same clock. */
  readonly alarms: Alarms;
  readonly log: Log;
  /** From 0 up to 1, for jitter. */
  readonly random: () => number;
  /** Wait before the first poll, so that thousands of streams do not start at once, milliseconds. */
  readonly jitterMs: number;
  /** Called after each poll, for status. */
  note(facts: JsonObject): void;
  /** Called once everything that upstream showed by this time (epoch milliseconds) is stored. */
  reached(at: number): void;
  /** True if its failures are no fault: its API has ended, and its successor delivers. */
  isExcused?(): boolean;
  /** The failure, with the end of the API and the next step if that explains it; else unchanged. */
  named?(cause: ExportError): ExportError;
  /** Facts that only some kinds of streams have. */
  pollerFacts?(): PollerFacts;
}

/** Minimum time between the starts of two polls, however often upstream announces news. */
const nudgedMsMin = 5_000;

interface Work {
  readonly run: () => Promise<void>;
  readonly drop: (why: unknown) => void;
}

/** A poll's result, or null if other work was done instead; and the next wait. */
interface Turn {
  readonly result: PollResult | null;
  readonly wait: Wait;
}

/** The wait under way. */
interface Rest {
  readonly begunAt: number;
  readonly ms: number;
  /** An operator cuts it short; undefined: upstream requires it. */
  readonly cut: (() => void) | undefined;
  alarm: Alarm;
  /** Aborts the search for a repaired setting; null: there is none. */
  readonly search: AbortController | null;
  readonly then: () => void;
}

/** Polls one stream. While it waits, no promise, timer or signal is its own: most of many streams only wait. */
export class StreamRunner {
  readonly #settings: RunnerSettings;
  readonly #health: StreamHealth;
  /** Null: it polls, or does not run. */
  #rest: Rest | null = null;
  /** An operator requested a poll during a poll, which may have missed new records. */
  #isAskedAgain = false;
  /** Upstream has announced news; a poll that begins later reads it. */
  #isNudged = false;
  /** The last poll found the tail, so the stream waits for its schedule only. */
  #isAtRest = false;
  /** Work that must not overlap with a poll. */
  #works: Work[] = [];
  /** Aborts the poll under way, for such work or because polling stops. */
  #interrupt: AbortController | null = null;
  #stopped: { readonly reason: unknown } | null = null;
  /** Resolves when no work is under way. */
  #ended: PromiseWithResolvers<void> | null = null;
  #isRunning = false;
  #isPolling = false;
  #nextPollAt: number | null = null;
  #isEndReported = false;
  /** One for all waits. */
  readonly #wakeUp = () => this.#wake();

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
      ...this.#settings.pollerFacts?.(),
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

  /** Polls until it is stopped. `failed`: it has ended because of a bug. */
  start(failed: (error: unknown) => void): void {
    this.#isRunning = true;
    const turn = () => {
      this.#turn().then(
        ({ wait }) => this.#wait(wait, turn),
        async (error) => {
          await this.#end();
          if (this.#stopped === null) failed(error);
        },
      );
    };
    this.#wait({ ...notDecided, ms: this.#settings.jitterMs }, turn);
  }

  /** Polls until everything was read once, and again if requested. Null, or the failure. */
  async runOnce(limit: AbortSignal): Promise<ExportError | null> {
    this.#isRunning = true;
    const stop = () => void this.stop(limit.reason);
    limit.addEventListener('abort', stop);
    if (limit.aborted) stop();
    try {
      for (;;) {
        const { result, wait } = await this.#turn();
        const isOver = this.#health.state.state === 'halted' || this.isEnded;
        if (result !== null && result.outcome !== 'done' && isOver) return result.cause;
        if (result?.outcome === 'done' && !result.more && result.againMs === undefined) {
          return result.doubt ?? null;
        }
        await new Promise<void>((resolve) => this.#wait(wait, resolve));
      }
    } finally {
      limit.removeEventListener('abort', stop);
      await this.#end();
    }
  }

  /** Ends the wait or poll under way; resolves when no work is under way. */
  stop(reason: unknown): Promise<void> {
    this.#stopped ??= { reason };
    if (!this.#isRunning) return Promise.resolve();
    this.#ended ??= Promise.withResolvers();
    this.#interrupt?.abort(reason);
    this.#wake();
    return this.#ended.promise;
  }

  /** No poll follows: does or drops the work that waits. */
  async #end(): Promise<void> {
    this.#isRunning = false;
    this.#nextPollAt = null;
    const works = this.#works;
    this.#works = [];
    for (const { run, drop } of works) {
      if (this.#stopped !== null) drop(this.#stopped.reason);
      else await run();
    }
    this.#ended?.resolve();
  }

  /**
   * Polls now instead of at the end of the wait. If upstream requires the wait, the wait stays, and its end is
   * returned, epoch milliseconds.
   */
  retryNow(): number | null {
    this.#health.resetWaits();
    this.#isAskedAgain = this.#isPolling;
    const cut = this.#rest?.cut;
    if (cut === undefined) return this.#nextPollAt;
    cut();
    this.#wake();
    return null;
  }

  /** Polls soon if the stream waits for its schedule. */
  nudge(): void {
    if (this.#isNudged) return;
    this.#isNudged = true;
    this.#hurry();
  }

  /** Shortens a wait for the schedule, because upstream has announced news. */
  #hurry(): void {
    const rest = this.#rest;
    if (rest === null || !this.#isAtRest) return;
    const { clock, alarms } = this.#settings;
    if (rest.ms <= nudgedMsMin) return;
    rest.alarm.cancel();
    const leftMs = rest.begunAt + nudgedMsMin - clock.monotonic();
    rest.alarm = alarms.set(leftMs, this.#wakeUp);
  }

  /** Runs work while the stream is idle: a poll under way is aborted and repeated. */
  whileStill<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#isRunning) return work();
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#works.push({ run: () => work().then(resolve, reject), drop: reject });
    this.#interrupt?.abort(new Error('interrupted'));
    this.#wake();
    return promise;
  }

  /** A poll, or the work that must not overlap with one. */
  async #turn(): Promise<Turn> {
    const interrupt = new AbortController();
    this.#interrupt = interrupt;
    try {
      if (this.#stopped !== null) throw this.#stopped.reason;
      if (this.#works.length === 0) return await this.#poll(interrupt.signal);
    } catch (error) {
      if (this.#stopped !== null || !interrupt.signal.aborted) throw error;
    } finally {
      this.#interrupt = null;
    }
    for (const { run } of this.#works.splice(0)) await run();
    return { result: null, wait: notDecided };
  }

  /** Calls `then` at the end of the wait, or earlier if it is cut short, or is no longer needed. */
  #wait({ ms, cut, repaired }: Wait, then: () => void): void {
    const { clock, alarms } = this.#settings;
    this.#nextPollAt = clock.now() + ms;
    const isAskedAgain = this.#isAskedAgain;
    this.#isAskedAgain = false;
    const search = repaired === undefined ? null : new AbortController();
    const alarm = alarms.set(ms, this.#wakeUp);
    const rest = { begunAt: clock.monotonic(), ms, cut, alarm, search, then };
    this.#rest = rest;
    if (search !== null) {
      repaired?.(search.signal).then(
        () => this.#wake(rest),
        () => undefined,
      );
    }
    if (this.#stopped !== null || this.#works.length > 0) this.#wake();
    else if (isAskedAgain && cut !== undefined) {
      cut();
      this.#wake();
    } else if (this.#isNudged) this.#hurry();
  }

  /** Ends the wait under way, or only this one. */
  #wake(only: Rest | null = this.#rest): void {
    const rest = this.#rest;
    if (rest === null || rest !== only) return;
    this.#rest = null;
    rest.alarm.cancel();
    rest.search?.abort(new Error('waited'));
    rest.then();
  }

  /** One poll, and the wait after it. */
  async #poll(signal: AbortSignal): Promise<{ result: PollResult; wait: Wait }> {
    const { turns, name, clock } = this.#settings;
    const begunAt = clock.monotonic();
    const release = await turns.take(signal);
    this.#isPolling = true;
    this.#nextPollAt = null;
    this.#isNudged = false;
    const askedAt = clock.now();
    try {
      const result = await this.#settings.poll(signal).catch((error): PollResult => {
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
    const { clock, source } = this.#settings;
    // The reader judges whether a failure is a fault: the successor's state changes later.
    const { state, polls, records, caughtUpAt } = this.#health.state;
    const error = this.#named;
    this.#settings.note({
      source,
      state,
      caught_up_at: caughtUpAt,
      next_poll_at: clock.now() + waitMs,
      ...(this.#interval.intervalMs !== undefined && { interval_ms: this.#interval.intervalMs }),
      polls,
      records,
      ...noted(this.#settings.pollerFacts?.() ?? {}),
      error: error && { code: error.code, message: error.message, next: error.next },
    });
  }
}

function noted({ deliveries, parents }: PollerFacts): JsonObject {
  return { ...(deliveries && { deliveries }), ...(parents && { parents: { ...parents } }) };
}

// Joins fetch, hold and send. The pipeline polls the streams of a plan and sends to its sinks
// around one spool, changes to another plan while it runs, and stops in order: polling ends first,
// then stored events go out to the sinks that accept them, then the batches in flight are settled.
// Invariant: a stage knows the others only through the spool.

import { aborted } from 'node:util';
import { backlog, type DriftSettings, invariant, type Route } from './contracts/index.ts';
import { Drift } from './drift/index.ts';

export { driftKey } from './drift/index.ts';

import {
  type FailedStream,
  forgetLeft,
  type PlannedSource,
  Polling,
  type PollingDeps,
  type RunnerState,
} from './fetch/engine.ts';
import { settlePairs } from './fetch/index.ts';
import {
  type FilterFailuresOf,
  type PlannedSink,
  type SenderState,
  Senders,
  sinkFacts,
  type TranscodedOf,
  type UnreadTimesOf,
} from './send/delivery.ts';

/** The whole config as objects. */
export interface Plan {
  readonly sources: readonly PlannedSource[];
  readonly sinks: readonly PlannedSink[];
  readonly routes: readonly Route[];
  /** SHA-256 of the config without its secrets; absent: no config. */
  readonly config?: string;
  /** The compared changes and trail; null or absent: none. */
  readonly drift?: DriftSettings | null;
}

/**
 * The parts that a change of plan leaves running, by name, because both plans define them alike.
 */
export interface Kept {
  readonly streams: ReadonlySet<string>;
  readonly sinks: ReadonlySet<string>;
}

/** State for status and metrics. */
export interface PipelineState {
  readonly streams: readonly RunnerState[];
  readonly sinks: readonly (SenderState & { readonly name: string })[];
  readonly filterFailures: readonly FilterFailuresOf[];
  readonly transcoded: readonly TranscodedOf[];
  readonly unreadTimes: readonly UnreadTimesOf[];
}

/** Reports the ends of upstreams. */
interface EndsWatch {
  /** Runs until aborted. */
  run(signal: AbortSignal): Promise<void>;
  /** Checks now; `isFinal`: no response follows. */
  look(isFinal?: boolean): Promise<void>;
  /** The end of an upstream, epoch milliseconds; null: never. */
  endOf?(upstream: string): number | null;
}

/** The result of `once`. */
export interface Summary {
  readonly failed: readonly FailedStream[];
  /** Sinks with undelivered events. */
  readonly behind: readonly {
    readonly sink: string;
    readonly held: number;
    readonly cause: SenderState['error'];
  }[];
  readonly records: number;
}

/** A stream or sink that was requested to retry. */
export interface RetryRequest {
  readonly part: 'stream' | 'sink';
  /**
   * Epoch milliseconds until which upstream or the receiver requested to wait; null: it retries
   * now.
   */
  readonly waitsUntil: number | null;
}

/** How often the state of sinks is noted for `status`. */
const noteEveryMs = 2_000;
/** Share of the stop time in which sinks may catch up before they settle. */
const catchUpShare = 0.5;
/** Check interval for sinks that catch up. */
const catchUpLookMs = 20;

/** Dependencies of a pipeline. */
interface PipelineDeps extends PollingDeps {
  /** Default: the ends of upstreams are not reported. */
  readonly ends?: EndsWatch;
}

/** Runs the whole path of events. */
export class Pipeline {
  readonly #deps: PipelineDeps;
  readonly #polling: Polling;
  #plan: Plan;
  #sending: Senders | null = null;
  readonly #drift: Drift | null;
  readonly #opened = Promise.withResolvers<void>();
  #isOpen = false;
  #changing: Promise<void> | null = null;

  constructor(plan: Plan, deps: PipelineDeps) {
    this.#plan = plan;
    this.#deps = deps;
    this.#polling = new Polling(deps);
    this.#polling.add(plan.sources);
    const now = { sources: () => this.#plan.sources, streams: () => this.#polling.state };
    this.#drift = plan.drift ? new Drift(plan.drift, { ...deps, ...now }) : null;
    this.#opened.promise.catch(() => undefined);
  }

  get state(): PipelineState {
    return {
      streams: this.#polling.state,
      sinks: this.#sinks,
      filterFailures: this.#sending?.filterFailures ?? [],
      transcoded: this.#sending?.transcoded ?? [],
      unreadTimes: this.#sending?.unreadTimes ?? [],
    };
  }

  /** Read each second, so without the states of thousands of streams. */
  get #sinks(): PipelineState['sinks'] {
    return this.#sending?.state ?? [];
  }

  /**
   * Runs until `stop` aborts, then drains within `drainMs`. Resolves when everything is settled.
   */
  async run(stop: AbortSignal, drainMs: number): Promise<void> {
    const opening = this.#send();
    opening.catch((error) => this.#opened.reject(error));
    const sending = await opening;
    const over = new AbortController();
    const noting = this.#noteSinks(AbortSignal.any([stop, over.signal]));
    const failed = Promise.race([this.#polling.failed, sending.failed]);
    this.#polling.start();
    const watched = AbortSignal.any([stop, over.signal]);
    const watching = Promise.all([this.#drift?.run(watched), this.#deps.ends?.run(watched)]);
    this.#isOpen = true;
    this.#opened.resolve();
    try {
      await Promise.race([aborted(stop, this), failed]);
      this.#isOpen = false;
      await this.#changing?.catch(() => undefined);
      await Promise.race([this.#polling.stop(), failed]);
      await Promise.race([this.#caughtUp(drainMs * catchUpShare), failed]);
    } finally {
      // Also if a sender has failed: the others settle their batches in flight.
      this.#isOpen = false;
      over.abort(new Error('stopping'));
      await this.#changing?.catch(() => undefined);
      await this.#polling.stop();
      await this.#endSending(sending, drainMs * (1 - catchUpShare));
      await noting;
      await watching;
    }
  }

  /**
   * Reads every stream to its tail once and delivers all stored events, within `limit`.
   * `afterwards` is called if everything was read; events that it stores are delivered too.
   */
  async once(
    limit: AbortSignal,
    drainMs: number,
    afterwards?: (signal: AbortSignal) => Promise<void>,
  ): Promise<Summary> {
    const sending = await this.#send();
    this.#opened.resolve();
    const over = new AbortController();
    const halt = AbortSignal.any([limit, over.signal]);
    // If a sender ends, a full spool would never have space again.
    sending.failed.catch((error) => over.abort(error));
    const read = new AbortController();
    // The comparison retains pages, and polling waits for space.
    const watching = this.#drift?.run(AbortSignal.any([halt, read.signal]));
    const failed = await this.#polling.once(halt);
    read.abort(new Error('read'));
    await watching;
    await this.#drift?.look();
    await this.#deps.ends?.look(true);
    await this.#delivered(halt).catch(() => undefined);
    if (failed.length === 0 && !halt.aborted) await afterwards?.(halt);
    await this.#delivered(halt).catch(() => undefined);
    const { gauge } = this.#deps.spool;
    const behind = this.#sinks
      .filter((sink) => sink.position < gauge.end || sink.setAside.length > 0)
      .map((sink) => ({
        sink: sink.name,
        held: backlog(gauge, sink.position) + sum(sink.setAside.map(({ events }) => events)),
        cause: sink.error,
      }));
    await this.#endSending(sending, drainMs);
    const records = this.state.streams.reduce((sum, stream) => sum + stream.records, 0);
    return { failed, behind, records };
  }

  /**
   * Changes to another plan during `run`: parts that are not kept end as at a stop, sinks within
   * `withinMs`, and the plan's new parts start from checkpoint and position. If a new sink cannot
   * be opened, the old plan stays in effect and the error is thrown.
   */
  async change(plan: Plan, kept: Kept, withinMs: number): Promise<void> {
    await this.#opened.promise;
    invariant(this.#isOpen && this.#changing === null, 'a running pipeline changes once at a time');
    this.#changing = this.#change(plan, kept, withinMs);
    try {
      await this.#changing;
    } finally {
      this.#changing = null;
    }
  }

  async #change(plan: Plan, kept: Kept, withinMs: number): Promise<void> {
    const before = this.#plan;
    const sending = this.#sending;
    invariant(sending !== null, 'sinks are open while the pipeline runs');
    const polling = this.#polling;
    const [failures] = await Promise.all([
      sending.stop(withinMs, without(sending.names, kept.sinks)),
      polling.stop(without(polling.names, kept.streams)),
    ]);
    for (const error of failures) {
      this.#deps.tools.log.warn('sink_close_failed', 'a sink could not be closed cleanly', {
        error: String(error),
      });
    }
    const adopt = async (requested: Plan) => {
      sending.follow(requested);
      await settlePairs(this.#deps.spool, requested.sources, this.#deps.tools.log);
      polling.add(requested.sources, kept.streams);
      const requestedSinks = requested.sinks.filter(({ name }) => !kept.sinks.has(name));
      const opened = await sending.open(requestedSinks);
      this.#plan = requested;
      await polling.remove(without(polling.names, streamNames(requested)));
      await forgetLeft(this.#deps.spool, requested.sources);
      sending.remove(without(sending.names, sinkNames(requested)));
      sending.start(opened);
      polling.start();
    };
    try {
      await adopt(plan);
    } catch (error) {
      await adopt(before).catch((worse) => sending.fail(worse));
      throw error;
    }
  }

  /** Makes the waiting stream and sink of this name retry now; empty: neither exists. */
  retryNow(name: string): readonly RetryRequest[] {
    const [stream, sink] = [this.#polling.retryNow(name), this.#sending?.retryNow(name)];
    return [
      ...(stream === undefined ? [] : [{ part: 'stream', waitsUntil: stream } as const]),
      ...(sink === undefined ? [] : [{ part: 'sink', waitsUntil: sink } as const]),
    ];
  }

  /**
   * True if the source's successor delivers and is read: then the end of the source's API is not a
   * fault.
   */
  hasMoved(source: string): boolean {
    return this.#polling.hasMoved(source);
  }

  /** Reads a source's streams to their tails, starting now; null, or the reason if not possible. */
  async readNow(source: string, withinMs: number): Promise<string | null> {
    await this.#opened.promise;
    return await this.#polling.readNow(source, withinMs);
  }

  /**
   * Makes dead letters of a sink's suspects, all or those with these uids; returns their number.
   */
  async giveUp(sink: string, uids: readonly string[] | null): Promise<number> {
    return (await this.#sending?.giveUp(sink, uids)) ?? 0;
  }

  /** Does work while a stream has nothing in flight and no other config is being applied. */
  async whileStill<T>(stream: string, work: () => Promise<T>): Promise<T> {
    await this.#opened.promise;
    return await this.#polling.whileStill(stream, work);
  }

  /** Opens all sinks and starts sending. */
  async #send(): Promise<Senders> {
    const sending = new Senders(this.#deps, this.#plan);
    const opened = await sending.open(this.#plan.sinks);
    this.#sending = sending;
    sending.start(opened);
    return sending;
  }

  async #endSending(sending: Senders, withinMs: number): Promise<void> {
    const [failure] = await sending.stop(withinMs);
    this.#note();
    if (failure !== undefined) throw failure;
  }

  /** Waits, up to a limit, until each sink that accepts events has received all stored ones. */
  async #caughtUp(withinMs: number): Promise<void> {
    const { spool, tools } = this.#deps;
    const { clock } = tools;
    this.#sending?.finish();
    const deadline = clock.monotonic() + withinMs;
    // A sink may report a condition while it finishes, which stores another event.
    const waiting = () =>
      this.#sending?.state.some((sink) => sink.position < spool.gauge.end && !isStuck(sink));
    while (waiting() && clock.monotonic() < deadline) await clock.sleep(catchUpLookMs);
  }

  /** Waits until every sink has received everything or rejects everything, or the limit is over. */
  async #delivered(limit: AbortSignal): Promise<void> {
    const { clock } = this.#deps.tools;
    this.#sending?.finish();
    const refusesAll = (sink: SenderState) =>
      sink.state === 'refused' || sink.suspects?.stuck === true;
    const waiting = () =>
      this.#sinks.some(
        (sink) =>
          sink.waitsAside || (sink.position < this.#deps.spool.gauge.end && !refusesAll(sink)),
      );
    while (waiting() && !limit.aborted) await clock.sleep(catchUpLookMs, limit);
  }

  async #noteSinks(stop: AbortSignal): Promise<void> {
    const { clock } = this.#deps.tools;
    while (!stop.aborted) {
      this.#note();
      await clock.sleep(noteEveryMs, stop).catch(() => undefined);
    }
  }

  #note(): void {
    for (const sink of this.#sinks) this.#deps.spool.note('sink', sink.name, sinkFacts(sink));
  }
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

function isStuck(sink: SenderState): boolean {
  return sink.state === 'retrying' || sink.state === 'refused' || sink.state === 'stopped';
}

function streamNames({ sources }: Plan): ReadonlySet<string> {
  return new Set(sources.flatMap(({ streams }) => streams.map(({ name }) => name)));
}

function sinkNames({ sinks }: Plan): ReadonlySet<string> {
  return new Set(sinks.map(({ name }) => name));
}

function without(names: readonly string[], those: ReadonlySet<string>): readonly string[] {
  return names.filter((name) => !those.has(name));
}

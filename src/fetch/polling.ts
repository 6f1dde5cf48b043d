// The polled streams. Each is created from its source's plan and stopped separately, so one can be replaced while the
// others run. Invariant: a stopped stream has no work under way; everything it stored is durable, and the next stream
// with its name resumes there.

import {
  asExportError,
  type ExportError,
  type Log,
  type Spool,
  type Stream,
} from '../contracts/index.ts';
import type { Backfill, BackfillState } from '../list/index.ts';
import { Feed } from '../parents/index.ts';
import type { PollResult } from '../poll/index.ts';

import {
  comparedFrom,
  firstWalk,
  heldBack,
  inheritedFor,
  namedByEnd,
  type Pairing,
  pairingsOf,
  sideIn,
} from '../succession/index.ts';

import { isConcerned, Listeners } from '../webhooks/index.ts';

import { Alarms } from './alarms.ts';
import { type AnswersDeps, StreamResponses } from './answers.ts';
import type { Lookups } from './lookups.ts';
import { type PlannedSource, PolledStream, type StreamsShared } from './polled-stream.ts';
import { type Poller, type PollerDeps, pollerFor } from './pollers.ts';
import { Repeated } from './repeated.ts';
import { SilenceWatch } from './silence.ts';
import type { RunnerState, StreamRunner } from './stream-runner.ts';
import { type SpoolsShared, StreamSpool } from './stream-spool.ts';
import { Turns } from './turns.ts';
import { VolumeWatch } from './volume.ts';

/** Dependencies of polling. */
export interface PollingDeps extends Pick<PollerDeps, 'tools' | 'random' | 'found'> {
  readonly spool: Spool;
  /** Undefined: no upstream ends. */
  readonly ends?: { endOf?(upstream: string): number | null };
}

/** A stream that could not be read to its tail, with the reason. */
export interface FailedStream {
  readonly stream: string;
  readonly cause: ExportError;
}

/** Limit of concurrent polls over all streams. */
const pollsAtOnceMax = 32;
/** First polls are spread over this much time per stream. */
const jitterMsPerStream = 10;
const jitterMsMax = 30_000;
/** Longest wait for look-ups of a run with `--once`, milliseconds. */
const lookupsMsMax = 5_000;

/** The renewal of look-ups. */
interface Renewal {
  readonly stop: AbortController;
  /** Null until it is started. */
  ended: Promise<void> | null;
}

/** All streams of the config. */
export class Polling {
  readonly #deps: PollingDeps;
  readonly #alarms;
  readonly #shared: StreamsShared;
  readonly #spools: SpoolsShared;
  readonly #answersDeps: AnswersDeps;
  readonly #backfills: Backfill[] = [];
  readonly #listeners;
  readonly #feed: Feed;
  readonly #sources = new Map<string, PlannedSource>();
  #pairings: readonly Pairing[] = [];
  /** Streams of successors that may be read. */
  readonly #walking = new Set<string>();
  readonly #streams = new Map<string, PolledStream>();
  /** One renewal each, however many sources use it. */
  readonly #lookups = new Map<Lookups, Renewal>();
  readonly #failed = Promise.withResolvers<never>();

  constructor(deps: PollingDeps, pollsAtOnce = pollsAtOnceMax) {
    this.#deps = deps;
    const { spool, tools, random, found } = deps;
    this.#alarms = new Alarms(tools.clock);
    this.#shared = {
      ...{ clock: tools.clock, alarms: this.#alarms, turns: new Turns(pollsAtOnce), random, spool },
      inFlight: tools.http.inFlight,
      pollerFor: (source, answers, log) => this.#pollerFor(source, answers, log),
      heldBack: (source, stream) => this.#heldBack(source, stream),
      hasMoved: (source) => this.hasMoved(source),
      named: (cause, source) => this.#named(cause, source),
    };
    const sourceOf = (name: string) => this.#sources.get(name);
    const everyMs = (source: string) => sourceOf(source)?.answersEveryMs;
    this.#answersDeps = { spool, tools, everyMs, ...(found && { found }) };
    this.#listeners = new Listeners(deps.tools);
    this.#feed = new Feed(deps.tools.log);
    const sideOf = (source: string) =>
      sourceOf(source)?.past === undefined ? sideIn(this.#pairings, source) : null;
    this.#spools = { spool, feed: this.#feed, sideOf };
    this.#failed.promise.catch(() => undefined);
  }

  get names(): readonly string[] {
    return [...this.#streams.keys()];
  }

  get state(): readonly RunnerState[] {
    return Array.from(this.#streams.values(), ({ runner }) => runner.state);
  }

  /** The progress of the backfilled streams. */
  get backfills(): readonly BackfillState[] {
    return this.#backfills.map(({ state }) => state);
  }

  /** Rejects when a stream ends because of a bug. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  /** Creates the streams of these sources except those in `but`; sends no request yet. */
  add(sources: readonly PlannedSource[], but: ReadonlySet<string> = new Set()): void {
    for (const source of sources) {
      this.#sources.set(source.name, source);
      this.#feed.add(source);
    }
    this.#pairings = pairingsOf([...this.#sources.values()]);
    const added = sources.flatMap((source) =>
      source.streams.flatMap((stream) => (but.has(stream.name) ? [] : [{ source, stream }])),
    );
    const jitterMs = Math.min(jitterMsMax, (added.length - 1) * jitterMsPerStream);
    for (const { source, stream } of added) {
      const log = this.#deps.tools.log.with({ stream: stream.name });
      const answers = new StreamResponses(stream, this.#answersDeps);
      const parts = { source, answers, log, jitterMs };
      const polled = new PolledStream(stream, parts, this.#shared);
      polled.watches = this.#watchesOf(source, polled);
      this.#streams.set(stream.name, polled);
    }
    const live = sources.filter(({ streams, past }) => streams.length > 0 && past === undefined);
    const requested = new Set(live.flatMap(({ lookups }) => lookups ?? []));
    for (const [lookups, { stop }] of this.#lookups) if (!requested.has(lookups)) stop.abort();
    for (const lookups of requested.difference(new Set(this.#lookups.keys()))) {
      this.#lookups.set(lookups, { stop: new AbortController(), ended: null });
    }
  }

  /** Starts every stream that is not polled yet. */
  start(): void {
    for (const polled of this.#streams.values()) {
      if (polled.isStarted) continue;
      polled.isStarted = true;
      polled.runner.start(this.#failed.reject);
      for (const watch of polled.watches) watch.start();
    }
    for (const [lookups, kept] of this.#lookups) {
      if (kept.ended === null) kept.ended = lookups.run(this.#lookupDeps, kept.stop.signal);
    }
  }

  get #lookupDeps() {
    const { spool, tools } = this.#deps;
    return { spool, clock: tools.clock, log: tools.log };
  }

  /** Polls a stream now, or returns the time until which upstream's wait lasts. Undefined: no such stream. */
  retryNow(name: string): number | null | undefined {
    return this.#streams.get(name)?.runner.retryNow();
  }

  /**
   * Reads the streams of a source to their tails, beginning now. Returns null, or why one could not be read in this
   * time.
   */
  async readNow(source: string, withinMs: number): Promise<string | null> {
    const { clock } = this.#deps.tools;
    const deadline = clock.monotonic() + withinMs;
    const runners = Array.from(this.#streams.values()).filter(
      ({ stream }) => stream.source === source,
    );
    if (runners.length === 0) return `${source} is not read`;
    const cannot = await Promise.all(
      runners.map(({ runner }) => readOn(runner, () => clock.monotonic() >= deadline, clock)),
    );
    return cannot.find((why) => why !== null) ?? null;
  }

  /** Runs work while no poll of the stream is under way; the stream then resumes from the durable state. */
  async whileStill<T>(name: string, work: () => Promise<T>): Promise<T> {
    const polled = this.#streams.get(name);
    if (polled === undefined) return await work();
    return await polled.runner.whileStill(() => work().finally(() => polled.forget()));
  }

  /** Stops these streams, or all; resolves when none of their work is under way. */
  async stop(names?: readonly string[]): Promise<void> {
    const lookups = names === undefined ? [...this.#lookups.values()] : [];
    const streams = (names ?? this.names).flatMap((name) => this.#streams.get(name) ?? []);
    const reason = new Error('stopping');
    for (const { stop } of lookups) stop.abort(reason);
    await Promise.allSettled([
      ...streams.flatMap(({ runner, watches }) => [
        runner.stop(reason),
        ...watches.map((watch) => watch.stop()),
      ]),
      ...lookups.map(({ ended }) => ended),
    ]);
    for (const polled of streams) polled.close();
    if (names === undefined) await this.#listeners.sweep();
  }

  /** Removes stopped streams. */
  async remove(names: readonly string[]): Promise<void> {
    for (const name of names) {
      this.#streams.delete(name);
      this.#walking.delete(name);
      this.#feed.remove(name);
    }
    await this.#listeners.sweep();
  }

  /** Reads every stream to its tail once. Resolves with the failed ones. */
  async once(limit: AbortSignal): Promise<readonly FailedStream[]> {
    const failed: FailedStream[] = [];
    const soon = AbortSignal.any([limit, AbortSignal.timeout(lookupsMsMax)]);
    const renewed = Array.from(this.#lookups.keys(), (one) => one.renew(this.#lookupDeps, soon));
    // Names that arrive too late are available in the next run.
    await Promise.allSettled(renewed);
    const asked = [...this.#streams.values()].filter(({ stream }) => stream.kind !== 'push');
    const reads = new Map<string, Promise<void>>();
    const read = (source: string): Promise<void> => {
      return reads.getOrInsertComputed(source, () => readSource(source));
    };
    const readSource = async (source: string) => {
      // Its parents' source is read first.
      const each = this.#sources.get(source)?.parents?.each;
      if (each !== undefined && 'of' in each) await read(each.of);
      const own = asked.filter(({ stream }) => stream.source === source);
      await Promise.all(own.map((polled) => readOnce(polled, failed, limit)));
    };
    await Promise.all(asked.map(({ stream }) => read(stream.source)));
    // Only now it is known whether the successor of an ended API was read.
    return failed.filter(({ stream }) => this.#streams.get(stream)?.runner.isEnded !== true);
  }

  /** The poll result of a successor that must not begin its first walk; null: it may. */
  async #heldBack({ name, list, past }: PlannedSource, stream: Stream): Promise<PollResult | null> {
    const pairing = this.#pairings.find(({ plan }) => plan.successor === name);
    if (pairing === undefined || past !== undefined || stream.kind !== 'list') return null;
    if (list?.start !== 'beginning' || this.#walking.has(stream.name)) return null;
    const { spool, tools } = this.#deps;
    const olds = () =>
      pairing.plan.streams.old.flatMap((old) => {
        const runner = this.#streams.get(old)?.runner;
        return runner === undefined ? [] : [{ polls: runner.polls, failure: runner.failure }];
      });
    const verdict = await firstWalk(pairing, stream.name, { spool, olds: olds() });
    if (verdict !== 'begin') return heldBack(verdict, { clock: tools.clock, olds });
    this.#walking.add(stream.name);
    return null;
  }

  /** True if a source's successor delivers and is read, or has itself been succeeded. */
  hasMoved(source: string): boolean {
    const pairing = this.#pairings.find(({ plan }) => plan.predecessor === source);
    if (pairing === undefined) return false;
    const { successor } = pairing.plan;
    if (this.#deps.spool.pairs?.isCutOver(successor) !== true) return false;
    const runners = Array.from(this.#streams.values()).flatMap(({ stream, runner }) =>
      stream.source === successor ? [runner] : [],
    );
    // Before its first poll after a start, a runner has no failure.
    const isRead = runners.length > 0 && runners.every(({ failure }) => failure === null);
    return isRead || this.hasMoved(successor);
  }

  #named(cause: ExportError, { name, upstream }: PlannedSource): ExportError {
    const { tools, spool, ends } = this.#deps;
    const pairing = this.#pairings.find(({ plan }) => plan.predecessor === name);
    const successor = pairing?.plan.successor ?? null;
    const isCutOver = successor !== null && spool.pairs?.isCutOver(successor) === true;
    const endsMs = ends?.endOf?.(upstream) ?? null;
    const now = tools.clock.now();
    return namedByEnd(cause, { source: name, upstream, endsMs, now, successor, isCutOver });
  }

  #watchesOf(
    { expectMs, expectVolume: expected, past }: PlannedSource,
    { stream, runner, log, watches }: PolledStream,
  ): PolledStream['watches'] {
    if (past !== undefined || (expectMs === undefined && expected === undefined)) return watches;
    const { spool, tools, found } = this.#deps;
    const { clock } = tools;
    const deps = { stream, spool, clock, log, found };
    const state = () => runner.state;
    const checks = [
      ...(expectMs === undefined ? [] : [new SilenceWatch({ ...deps, expectMs }, state)]),
      ...(expected === undefined ? [] : [new VolumeWatch({ ...deps, expected }, state)]),
    ];
    return checks.map((check) => new Repeated(this.#alarms, check));
  }

  #pollerFor(source: PlannedSource, responses: StreamResponses, log: Log): Poller {
    const { stream } = responses;
    const sideOf = () => this.#spools.sideOf(source.name);
    const read: PollerDeps = {
      ...this.#deps,
      log,
      spool: new StreamSpool(responses, this.#spools),
      isMoved: () => source.past === undefined && this.hasMoved(source.name),
      comparedFrom: () => comparedFrom(sideOf()?.pairing, this.#deps.spool, this.#deps.tools.log),
      inherited: () =>
        inheritedFor(sideOf(), stream, { spool: this.#deps.spool, log: this.#deps.tools.log }),
      known: (name) => this.#feed.known(name, this.#sources, this.#deps.spool),
      begun: (backfill) => void this.#backfills.push(backfill),
      listening: (pushed) => ({
        endpoint: this.#listeners.endpoint(pushed.listen),
        wake: () => void this.retryNow(stream.name),
        announced: (events) => this.#nudge(source.upstream, events),
      }),
    };
    return pollerFor(source, stream, read);
  }

  /** News from upstream triggers a poll soon: the polled data are the source of truth. */
  #nudge(upstream: string, events: ReadonlySet<string | null>): void {
    for (const polled of this.#streams.values()) {
      if (polled.upstream !== upstream) continue;
      if ([...events].some((event) => isConcerned(event, polled.stream))) polled.runner.nudge();
    }
  }
}

/** Interval of checks while a stream is read to its tail, milliseconds. */
const readLookMs = 20;

/** Polls a stream until a poll that began after now has found the tail; null, or the failure. */
async function readOn(
  runner: StreamRunner,
  isOver: () => boolean,
  clock: PollingDeps['tools']['clock'],
): Promise<string | null> {
  // A poll under way may have missed new records.
  const begun = runner.state.polls + (runner.state.state === 'polling' ? 1 : 0);
  runner.retryNow();
  for (;;) {
    await clock.sleep(readLookMs);
    const { name, polls, state, isAtTail } = runner.state;
    const { failure } = runner;
    if (polls > begun && failure !== null) return `${name} cannot be read: ${failure.message}`;
    if (polls > begun && state === 'waiting' && isAtTail) return null;
    if (isOver()) return `${name} was not read to its end in time`;
  }
}

/** Reads a stream to its tail once. */
async function readOnce(
  { stream: { name: stream }, runner, watches }: PolledStream,
  failed: FailedStream[],
  limit: AbortSignal,
): Promise<void> {
  const cause = await runner
    .runOnce(limit)
    .catch((error) => asExportError(error, `reading ${stream}`));
  for (const watch of watches) await watch.look();
  if (cause !== null) failed.push({ stream, cause: runner.failure ?? cause });
}

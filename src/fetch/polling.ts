// The streams that are polled, each made from its source's plan and ended by itself, so that one
// can be made anew while the others go on. What must stay true: a stream that has been stopped has
// nothing under way any more; whatever it had held is durable, and the next one under its name goes
// on from there.

import type { RecordReading } from '../contracts/definition.ts';
import { asExportError, type ExportError } from '../contracts/errors.ts';
import type { Stream } from '../contracts/source.ts';
import type { Spool } from '../contracts/spool.ts';
import { StreamResponses } from './answers.ts';
import type { Backfill, BackfillState } from './backfill.ts';
import type { Lookups } from './lookups.ts';
import type { PollResult } from './outcome.ts';
import { Feed } from './parents/feed.ts';
import { type PolledSource, type Poller, type PollerDeps, pollerFor } from './pollers.ts';
import { isConcerned } from './push/concerns.ts';
import { Listeners } from './push/listener.ts';
import { type Schedule, timetable } from './schedule.ts';
import { SilenceWatch } from './silence.ts';
import { type RunnerState, StreamRunner } from './stream-runner.ts';
import { comparedFrom } from './succession/compared-from.ts';
import { namedByEnd } from './succession/end-of-api.ts';
import { firstWalk, heldBack } from './succession/first-walk.ts';
import { inheritedFor } from './succession/inherited.ts';
import { type Pairing, pairingsOf, sideIn } from './succession/pairing.ts';
import { pairedSpool } from './succession/side.ts';
import { turnsOf } from './turns.ts';

/** A source of the config with its streams. */
export interface PlannedSource extends PolledSource {
  /** Name of its upstream. */
  readonly upstream: string;
  readonly streams: readonly Stream[];
  readonly reading: RecordReading;
  readonly schedule: Schedule;
  /** How long none of its streams may be silent, in milliseconds; left out: as long as they are. */
  readonly expectMs?: number;
  /** What its numbers are looked up in. */
  readonly lookups?: Lookups;
  /** Every answer is held; what says the same again once in so long. Left out: none is held. */
  readonly answersEveryMs?: number;
}

/** What streams are polled with. */
export interface PollingDeps extends Pick<PollerDeps, 'tools' | 'random' | 'found'> {
  readonly spool: Spool;
  /** Left out: no upstream ends. */
  readonly ends?: { endOf?(upstream: string): number | null };
}

/** A stream that could not be read to its tail, with the reason. */
export interface FailedStream {
  readonly stream: string;
  readonly cause: ExportError;
}

/** Polls that run at the same time, over all streams. */
const pollsAtOnceMax = 32;
/** First polls are spread over this much time per stream. */
const jitterMsPerStream = 10;
const jitterMsMax = 30_000;
/** A run that ends by itself waits so long for look-ups, and no longer. */
const lookupsMsMax = 5_000;

interface Polled {
  readonly upstream: string;
  readonly stream: Stream;
  readonly runner: StreamRunner;
  /** Null where nothing is expected of it. */
  readonly silence: SilenceWatch | null;
  /** The next poll begins with what is durable. */
  readonly forget: () => void;
  /** Nothing comes in by itself any more. */
  readonly close: () => void;
  readonly stop: AbortController;
  /** Null until it is started. */
  ended: Promise<void> | null;
}

interface RunnerWishes {
  readonly source: PlannedSource;
  readonly stream: Stream;
  readonly poller: () => Poller;
  readonly answers: StreamResponses;
  readonly jitterMs: number;
}

/** All streams of the config. */
export class Polling {
  readonly #deps: PollingDeps;
  readonly #turns;
  readonly #backfills: Backfill[] = [];
  readonly #listeners;
  readonly #feed: Feed;
  readonly #sources = new Map<string, PlannedSource>();
  #pairings: readonly Pairing[] = [];
  /** Streams of successors that may read. */
  readonly #walking = new Set<string>();
  readonly #streams = new Map<string, Polled>();
  /** Each kept fresh by one, whatever the number of its sources. */
  readonly #lookups = new Map<Lookups, Pick<Polled, 'stop' | 'ended'>>();
  readonly #failed = Promise.withResolvers<never>();

  constructor(deps: PollingDeps, pollsAtOnce = pollsAtOnceMax) {
    this.#deps = deps;
    this.#turns = turnsOf(pollsAtOnce);
    this.#listeners = new Listeners(deps.tools);
    this.#feed = new Feed(deps.tools.log);
    this.#failed.promise.catch(() => undefined);
  }

  get names(): readonly string[] {
    return [...this.#streams.keys()];
  }

  get state(): readonly RunnerState[] {
    return Array.from(this.#streams.values(), ({ runner }) => runner.state);
  }

  /** How far the streams of a past time have come. */
  get backfills(): readonly BackfillState[] {
    return this.#backfills.map(({ state }) => state);
  }

  /** Rejects when a stream ends for a fault of ours. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  /** Makes the streams of these sources, without those named in `but`; nothing is asked. */
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
      const everyMs = () => this.#sources.get(source.name)?.answersEveryMs;
      const answers = new StreamResponses(stream, { ...this.#deps, everyMs });
      let poller = this.#pollerFor(source, answers);
      const close = () => poller.close?.();
      const forget = () => {
        close();
        poller = this.#pollerFor(source, answers);
      };
      const runner = this.#runnerFor({ source, stream, poller: () => poller, answers, jitterMs });
      const silence = this.#silenceOf(source, stream, runner);
      const stop = new AbortController();
      const parts = { upstream: source.upstream, stream, runner, silence };
      this.#streams.set(stream.name, { ...parts, forget, close, stop, ended: null });
    }
    const live = sources.filter(({ streams, past }) => streams.length > 0 && past === undefined);
    const requested = new Set(live.flatMap(({ lookups }) => lookups ?? []));
    for (const [lookups, { stop }] of this.#lookups) if (!requested.has(lookups)) stop.abort();
    for (const lookups of requested.difference(new Set(this.#lookups.keys()))) {
      this.#lookups.set(lookups, { stop: new AbortController(), ended: null });
    }
  }

  /** Polls every stream that is not polled yet, until it is stopped. */
  start(): void {
    for (const polled of this.#streams.values()) {
      if (polled.ended !== null) continue;
      const { runner, silence, stop } = polled;
      const running = runner.run(stop.signal);
      polled.ended =
        silence === null
          ? running
          : Promise.all([running, silence.run(stop.signal)]).then(() => undefined);
      polled.ended.catch(this.#failed.reject);
    }
    for (const [lookups, kept] of this.#lookups) {
      if (kept.ended === null) kept.ended = lookups.run(this.#lookupDeps, kept.stop.signal);
    }
  }

  get #lookupDeps() {
    const { spool, tools } = this.#deps;
    return { spool, clock: tools.clock, log: tools.log };
  }

  /** Has a stream polled now; when, where upstream wants a wait. Undefined: no such name. */
  askNow(name: string): number | null | undefined {
    return this.#streams.get(name)?.runner.askNow();
  }

  /**
   * Reads the streams of a source to their tails from now on. Null; or why one could not be, within
   * this time.
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

  /** Does work while nothing of a stream is under way; it goes on from what is durable then. */
  async whileStill<T>(name: string, work: () => Promise<T>): Promise<T> {
    const polled = this.#streams.get(name);
    if (polled === undefined) return await work();
    return await polled.runner.whileStill(() => work().finally(polled.forget));
  }

  /** Stops these streams, or all; resolves when nothing of them is under way. */
  async stop(names?: readonly string[]): Promise<void> {
    const lookups = names === undefined ? [...this.#lookups.values()] : [];
    const streams = (names ?? this.names).flatMap((name) => this.#streams.get(name) ?? []);
    const stopped = [...streams, ...lookups];
    for (const { stop } of stopped) stop.abort(new Error('stopping'));
    await Promise.allSettled(stopped.map(({ ended }) => ended));
    for (const { close } of streams) close();
    if (names === undefined) await this.#listeners.sweep();
  }

  /** Forgets streams that have been stopped. */
  async remove(names: readonly string[]): Promise<void> {
    for (const name of names) {
      this.#streams.delete(name);
      this.#walking.delete(name);
      this.#feed.remove(name);
    }
    await this.#listeners.sweep();
  }

  /** Reads every stream up to its tail once. Resolves with those that could not be. */
  async once(limit: AbortSignal): Promise<readonly FailedStream[]> {
    const failed: FailedStream[] = [];
    const soon = AbortSignal.any([limit, AbortSignal.timeout(lookupsMsMax)]);
    const renewed = Array.from(this.#lookups.keys(), (one) => one.renew(this.#lookupDeps, soon));
    // Names that come too late are there the next time.
    await Promise.allSettled(renewed);
    const asked = [...this.#streams.values()].filter(({ stream }) => stream.kind !== 'push');
    const reads = new Map<string, Promise<void>>();
    const read = (source: string): Promise<void> => {
      const reading = reads.get(source) ?? readSource(source);
      reads.set(source, reading);
      return reading;
    };
    const readSource = async (source: string) => {
      // What it takes its parents from goes first.
      const each = this.#sources.get(source)?.parents?.each;
      if (each !== undefined && 'of' in each) await read(each.of);
      const own = asked.filter(({ stream }) => stream.source === source);
      await Promise.all(own.map((polled) => readOnce(polled, failed, limit)));
    };
    await Promise.all(asked.map(({ stream }) => read(stream.source)));
    // Only now it is known whether the successor of an ended API was read.
    return failed.filter(({ stream }) => this.#streams.get(stream)?.runner.isEnded !== true);
  }

  #runnerFor({ source, stream, poller, answers, jitterMs }: RunnerWishes): StreamRunner {
    const { tools, random, spool } = this.#deps;
    return new StreamRunner({
      name: stream.name,
      source: source.name,
      poll: (signal) =>
        answers.during(
          async () => (await this.#heldBack(source, stream)) ?? (await poller().poll(signal)),
        ),
      timetable: timetable(source.schedule, tools.clock),
      // Who brings something waits for the answer, and is not to wait for others' polls.
      turns: stream.kind === 'push' ? turnsOf(1) : this.#turns,
      clock: tools.clock,
      log: tools.log.with({ stream: stream.name }),
      random,
      jitterMs: stream.kind === 'push' ? 0 : random() * jitterMs,
      // What is noted of a stream is of the live one.
      note: (facts) => {
        if (source.past === undefined) spool.note('stream', stream.name, facts);
      },
      isExcused: () => this.hasMoved(source.name),
      named: (cause) => this.#named(cause, source),
      reached: (at) => {
        if (source.past === undefined) spool.note('reached', stream.name, at);
      },
      besides() {
        const { counts: deliveries, parents } = poller();
        return { ...(deliveries && { deliveries }), ...(parents && { parents }) };
      },
    });
  }

  /** What a poll of a successor comes to that may not begin its first walk; null: it may. */
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

  /** True where the successor of a source delivers and is read, or has moved on itself. */
  hasMoved(source: string): boolean {
    const pairing = this.#pairings.find(({ plan }) => plan.predecessor === source);
    if (pairing === undefined) return false;
    const { successor } = pairing.plan;
    if (this.#deps.spool.pairs?.isCutOver(successor) !== true) return false;
    const runners = Array.from(this.#streams.values()).flatMap(({ stream, runner }) =>
      stream.source === successor ? [runner] : [],
    );
    // Before its first poll after a start nothing speaks against it.
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

  #silenceOf(
    { expectMs, past }: PlannedSource,
    stream: Stream,
    runner: StreamRunner,
  ): SilenceWatch | null {
    if (expectMs === undefined || past !== undefined) return null;
    const { spool, tools, found } = this.#deps;
    const { clock } = tools;
    const log = tools.log.with({ stream: stream.name });
    const deps = { stream, expectMs, spool, clock, log, found };
    return new SilenceWatch(deps, () => runner.state);
  }

  #pollerFor(source: PlannedSource, { stream, spool }: StreamResponses): Poller {
    const sideOf = () => (source.past === undefined ? sideIn(this.#pairings, source.name) : null);
    const { log } = this.#deps.tools;
    const read: PollerDeps = {
      ...this.#deps,
      spool: pairedSpool(this.#feed.spoolOf(stream, spool), stream, {
        sideOf,
        pairs: this.#deps.spool.pairs,
      }),
      isMoved: () => source.past === undefined && this.hasMoved(source.name),
      comparedFrom: () => comparedFrom(sideOf()?.pairing, this.#deps.spool, log),
      inherited: () => inheritedFor(sideOf(), stream, { spool: this.#deps.spool, log }),
      known: (name) => this.#feed.known(name, this.#sources, this.#deps.spool),
      begun: (backfill) => void this.#backfills.push(backfill),
      listening: (pushed) => ({
        door: this.#listeners.door(pushed.listen),
        wake: () => void this.askNow(stream.name),
        told: (events) => this.#nudge(source.upstream, events),
      }),
    };
    return pollerFor(source, stream, read);
  }

  /** What upstream tells of is read soon by whatever reads it: that is where the truth stands. */
  #nudge(upstream: string, events: ReadonlySet<string | null>): void {
    for (const polled of this.#streams.values()) {
      if (polled.upstream !== upstream) continue;
      if ([...events].some((event) => isConcerned(event, polled.stream))) polled.runner.nudge();
    }
  }
}

/** How often a stream that is being read to its tail is looked at. */
const readLookMs = 20;

/** Polls a stream until one poll that began from now on has found the tail; null, or why not. */
async function readOn(
  runner: StreamRunner,
  isOver: () => boolean,
  clock: PollingDeps['tools']['clock'],
): Promise<string | null> {
  // A poll that is under way may have passed by what is new.
  const begun = runner.state.polls + (runner.state.state === 'polling' ? 1 : 0);
  runner.askNow();
  for (;;) {
    await clock.sleep(readLookMs);
    const { name, polls, state, isAtTail } = runner.state;
    const { failure } = runner;
    if (polls > begun && failure !== null) return `${name} cannot be read: ${failure.message}`;
    if (polls > begun && state === 'waiting' && isAtTail) return null;
    if (isOver()) return `${name} was not read to its end in time`;
  }
}

/** Reads a stream up to its tail once. */
async function readOnce(
  { stream: { name: stream }, runner, silence }: Polled,
  failed: FailedStream[],
  limit: AbortSignal,
): Promise<void> {
  const cause = await runner
    .runOnce(limit)
    .catch((error) => asExportError(error, `reading ${stream}`));
  await silence?.look();
  if (cause !== null) failed.push({ stream, cause: runner.failure ?? cause });
}

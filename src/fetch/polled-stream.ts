// One polled stream: its poller, and the facts that its runner needs. It is one object with methods, because each of
// thousands of streams has one: a function for each of these methods would be a large part of an idle stream's memory.
// Invariant: after `forget`, the next poll starts from the durable state.

import type { RecordReading } from '../contracts/config.ts';
import type {
  Clock,
  ExpectedVolume,
  ExportError,
  InFlight,
  JsonObject,
  Log,
  Schedule,
  Spool,
  Stream,
} from '../contracts/index.ts';
import { type PollResult, type Timetable, timetable } from '../poll/index.ts';
import type { Alarms } from './alarms.ts';
import type { StreamResponses } from './answers.ts';
import type { Lookups } from './lookups.ts';
import type { PolledSource, Poller } from './pollers.ts';
import type { Repeated } from './repeated.ts';
import { type PollerFacts, type RunnerSettings, StreamRunner } from './stream-runner.ts';
import { Turns } from './turns.ts';

/** A source of the config with its streams. */
export interface PlannedSource extends PolledSource {
  /** Name of its upstream. */
  readonly upstream: string;
  readonly streams: readonly Stream[];
  readonly reading: RecordReading;
  readonly schedule: Schedule;
  /** How long each of its streams may be silent, milliseconds; undefined: without limit. */
  readonly expectMs?: number;
  /** The expected volume of each of its streams; undefined: none. */
  readonly expectVolume?: ExpectedVolume;
  /** The look-ups of its numbers. */
  readonly lookups?: Lookups;
  /**
   * Store every response; minimum time between two copies of an equal one, milliseconds. Undefined: responses are not
   * stored.
   */
  readonly answersEveryMs?: number;
}

/** What all streams share. */
export interface StreamsShared {
  readonly clock: Clock;
  readonly alarms: Alarms;
  readonly turns: Turns;
  /** From 0 up to 1, for jitter. */
  readonly random: () => number;
  readonly spool: Pick<Spool, 'note'>;
  readonly inFlight: InFlight | undefined;
  readonly pollerFor: (source: PlannedSource, answers: StreamResponses, log: Log) => Poller;
  /** The poll result of a successor that must not begin its first walk; null: it may. */
  readonly heldBack: (source: PlannedSource, stream: Stream) => Promise<PollResult | null>;
  /** True if a source's successor delivers and is read. */
  readonly hasMoved: (source: string) => boolean;
  /** The failure, with the end of the API and the next step if that explains it. */
  readonly named: (cause: ExportError, source: PlannedSource) => ExportError;
}

/** The parts of one stream. */
interface Parts {
  readonly source: PlannedSource;
  readonly answers: StreamResponses;
  readonly log: Log;
  /** First polls are spread over this time, milliseconds. */
  readonly jitterMs: number;
}

/** A stream with its runner. */
export class PolledStream implements RunnerSettings {
  readonly stream: Stream;
  readonly runner: StreamRunner;
  readonly timetable: Timetable;
  readonly turns: Turns;
  readonly jitterMs: number;
  readonly log: Log;
  /** Watch its silence and its volume, if its source expects some. */
  watches: readonly Repeated[] = none;
  isStarted = false;
  readonly #shared: StreamsShared;
  readonly #source: PlannedSource;
  readonly #answers: StreamResponses;
  #poller: Poller;

  constructor(stream: Stream, { source, answers, log, jitterMs }: Parts, shared: StreamsShared) {
    const isPushed = stream.kind === 'push';
    this.stream = stream;
    this.timetable = timetable(source.schedule, shared.clock);
    // A sender waits for the response and must not wait for polls of other streams.
    this.turns = isPushed ? new Turns(1) : shared.turns;
    this.jitterMs = isPushed ? 0 : shared.random() * jitterMs;
    this.log = log;
    this.#shared = shared;
    this.#source = source;
    this.#answers = answers;
    this.#poller = shared.pollerFor(source, answers, log);
    this.runner = new StreamRunner(this);
  }

  get name(): string {
    return this.stream.name;
  }

  get source(): string {
    return this.#source.name;
  }

  get upstream(): string {
    return this.#source.upstream;
  }

  get clock(): Clock {
    return this.#shared.clock;
  }

  get alarms(): Alarms {
    return this.#shared.alarms;
  }

  get random(): () => number {
    return this.#shared.random;
  }

  poll(signal: AbortSignal): Promise<PollResult> {
    return this.#answers.during(
      async () =>
        (await this.#shared.heldBack(this.#source, this.stream)) ?? (await this.#polled(signal)),
    );
  }

  /** The bodies of a poll are counted until it ends, those of each parent apart; those of pages until they are stored. */
  #polled(signal: AbortSignal): Promise<PollResult> {
    const poll = () => this.#poller.poll(signal);
    const { inFlight } = this.#shared;
    const { kind } = this.stream;
    const isCounted = kind === 'list' || kind === 'collection';
    return isCounted && inFlight !== undefined ? inFlight.during(poll) : poll();
  }

  note(facts: JsonObject): void {
    if (this.#isLive) this.#shared.spool.note('stream', this.name, facts);
  }

  reached(at: number): void {
    if (this.#isLive) this.#shared.spool.note('reached', this.name, at);
  }

  isExcused(): boolean {
    return this.#shared.hasMoved(this.source);
  }

  named(cause: ExportError): ExportError {
    return this.#shared.named(cause, this.#source);
  }

  pollerFacts(): PollerFacts {
    const { counts: deliveries, parents, aheadMs } = this.#poller;
    return {
      ...(deliveries && { deliveries }),
      ...(parents && { parents }),
      ...(aheadMs && { aheadMs }),
    };
  }

  /** Makes the next poll start from the durable state. */
  forget(): void {
    this.close();
    this.#poller = this.#shared.pollerFor(this.#source, this.#answers, this.log);
  }

  /** Accepts no more deliveries. */
  close(): void {
    this.#poller.close?.();
  }

  /** Stored facts of a stream describe the live one. */
  get #isLive(): boolean {
    return this.#source.past === undefined;
  }
}

const none: readonly Repeated[] = [];

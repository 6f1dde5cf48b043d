// fetch -> hold -> send, joined here and nowhere else. The pipeline makes a runner per stream and a sender per sink around
// one spool, starts them, and ends them in order: first polling stops, then what is held goes out to the sinks that
// take it, then what is under way is settled. What must stay true: a stage knows the others only through the spool.

import type {
  ListReading,
  RecordReading,
  SinkDefinition,
  SinkSettings,
  SnapshotReading,
} from './contracts/definition.ts';
import { asExportError, type ExportError } from './contracts/errors.ts';
import type { Offset, PageContext } from './contracts/event.ts';
import type { Format } from './contracts/format.ts';
import type { Stream } from './contracts/source.ts';
import type { Spool } from './contracts/spool.ts';
import type { Tools } from './contracts/tools.ts';
import { ListPoller } from './fetch/list-poller.ts';
import { ListReader } from './fetch/list-reader.ts';
import type { PollResult } from './fetch/outcome.ts';
import { type Schedule, timetable } from './fetch/schedule.ts';
import { SnapshotPoller } from './fetch/snapshot-poller.ts';
import { type RunnerState, StreamRunner } from './fetch/stream-runner.ts';
import { turnsOf } from './fetch/turns.ts';
import { type Normalise, PageDecoder } from './send/held-event.ts';
import { compileNormaliser } from './send/normalise/normalise.ts';
import { type BatchBounds, Outlet } from './send/outlet.ts';
import { PageEncoder } from './send/page-encoder.ts';
import { type Route, type Selection, selectionFor } from './send/route.ts';
import { Sender, type SenderState } from './send/sender.ts';
import { backOff } from './tools/back-off.ts';

/** A source of the config with its streams. */
export interface PlannedSource {
  readonly name: string;
  readonly streams: readonly Stream[];
  readonly reading: RecordReading;
  readonly list: ListReading | null;
  readonly snapshot: SnapshotReading | null;
  readonly schedule: Schedule;
}

/** A sink of the config, ready to be opened. */
export interface PlannedSink {
  readonly name: string;
  readonly definition: SinkDefinition;
  readonly settings: SinkSettings;
  readonly format: Format;
  /** Equal keys encode alike. */
  readonly formatKey: string;
  readonly bounds: BatchBounds;
  readonly waitMs: number;
  readonly retry: { readonly minMs: number; readonly maxMs: number };
}

/** Everything that the config says, as objects. */
export interface Plan {
  readonly sources: readonly PlannedSource[];
  readonly sinks: readonly PlannedSink[];
  readonly routes: readonly Route[];
}

/** What a pipeline runs on. */
export interface PipelineMeans {
  readonly spool: Spool;
  readonly tools: Tools;
  readonly random: () => number;
}

/** What status and metrics show. */
export interface PipelineState {
  readonly streams: readonly RunnerState[];
  readonly sinks: readonly (SenderState & { readonly name: string })[];
  readonly filterFailures: number;
}

/** How `once` ended. */
export interface Summary {
  /** Streams that could not be read to their tail, with the reason. */
  readonly failed: readonly { readonly stream: string; readonly cause: ExportError }[];
  /** Sinks with events still held for them. */
  readonly behind: readonly {
    readonly sink: string;
    readonly held: number;
    readonly cause: ExportError | null;
  }[];
  readonly records: number;
}

/** Polls that run at the same time, over all streams. */
const pollsAtOnceMax = 32;
/** First polls are spread over this much time per stream. */
const jitterMsPerStream = 10;
const jitterMsMax = 30_000;
/** How often sinks' states are noted for `status`. */
const noteEveryMs = 2_000;
/** How long the sinks may take to catch up before a stop settles for what is under way: this share of the time given. */
const catchUpShare = 0.5;
/** A sink that is not in the middle of trying again has this many chances a second to be seen at the spool's end. */
const catchUpLookMs = 20;

/** The whole journey. */
export class Pipeline {
  readonly #plan: Plan;
  readonly #means: PipelineMeans;
  readonly #runners: readonly StreamRunner[];
  #senders: readonly { readonly name: string; readonly sender: Sender }[] = [];
  #filterFailures = 0;

  constructor(plan: Plan, means: PipelineMeans) {
    this.#plan = plan;
    this.#means = means;
    this.#runners = this.#makeRunners();
  }

  get state(): PipelineState {
    return {
      streams: this.#runners.map((runner) => runner.state),
      sinks: this.#senders.map(({ name, sender }) => ({ name, ...sender.state })),
      filterFailures: this.#filterFailures,
    };
  }

  /** Runs until `stop` aborts, then drains within `drainMs`. Resolves when everything is settled or given up. */
  async run(stop: AbortSignal, drainMs: number): Promise<void> {
    const sending = await this.#startSenders();
    const over = new AbortController();
    const halt = AbortSignal.any([stop, over.signal]);
    const polling = Promise.all(this.#runners.map((runner) => runner.run(halt)));
    const noting = this.#noteSinks(halt);
    try {
      await Promise.race([polling, sending.failed]);
      await Promise.race([this.#caughtUp(drainMs * catchUpShare), sending.failed]);
    } finally {
      // Also when a sender has failed: the others settle what they have under way.
      over.abort(new Error('stopping'));
      await this.#endSenders(sending, drainMs * (1 - catchUpShare));
      await noting;
    }
  }

  /** Reads every stream up to its tail once and delivers everything held, unless `limit` aborts first. */
  async once(limit: AbortSignal, drainMs: number): Promise<Summary> {
    const sending = await this.#startSenders();
    const over = new AbortController();
    const halt = AbortSignal.any([limit, over.signal]);
    // Without a sender that goes on, a full spool would never have room again.
    sending.failed.catch((error) => over.abort(error));
    const failed: Summary['failed'][number][] = [];
    await Promise.all(
      this.#runners.map(async (runner) => {
        const cause = await runner
          .runOnce(halt)
          .catch((error) => asExportError(error, `reading ${runner.state.name}`));
        if (cause !== null)
          failed.push({ stream: runner.state.name, cause: runner.state.error ?? cause });
      }),
    );
    await this.#delivered(halt).catch(() => undefined);
    const { end } = this.#means.spool.gauge;
    const behind = this.state.sinks
      .filter((sink) => sink.position < end)
      .map((sink) => ({ sink: sink.name, held: end - sink.position, cause: sink.error }));
    await this.#endSenders(sending, drainMs);
    const records = this.state.streams.reduce((sum, stream) => sum + stream.records, 0);
    return { failed, behind, records };
  }

  #makeRunners(): readonly StreamRunner[] {
    const { tools, random, spool } = this.#means;
    const turns = turnsOf(pollsAtOnceMax);
    const count = this.#plan.sources.reduce((sum, source) => sum + source.streams.length, 0);
    const jitterMs = Math.min(jitterMsMax, (count - 1) * jitterMsPerStream);
    return this.#plan.sources.flatMap((source) =>
      source.streams.map(
        (stream) =>
          new StreamRunner({
            name: stream.name,
            source: source.name,
            poll: this.#pollerFor(source, stream),
            timetable: timetable(source.schedule, tools.clock),
            turns,
            clock: tools.clock,
            log: tools.log.with({ stream: stream.name }),
            backOff: backOff({ random }),
            jitterMs: random() * jitterMs,
            note: (facts) => spool.note('stream', stream.name, facts),
          }),
      ),
    );
  }

  #pollerFor(source: PlannedSource, stream: Stream): (signal: AbortSignal) => Promise<PollResult> {
    const { spool, tools } = this.#means;
    const log = tools.log.with({ stream: stream.name });
    if (stream.kind === 'snapshot') {
      const reading = required(source.snapshot, `${source.name} says how snapshots are compared`);
      const poller = new SnapshotPoller({ stream, spool, clock: tools.clock, log, reading });
      return (signal) => poller.poll(signal);
    }
    const list = required(source.list, `${source.name} says how lists are read`);
    const reader = new ListReader({
      stream,
      spool,
      clock: tools.clock,
      log,
      order: list.order,
      start: list.start,
    });
    const poller = new ListPoller(reader, list);
    return (signal) => poller.poll(signal);
  }

  async #startSenders(): Promise<Sending> {
    const encoder = new PageEncoder(new PageDecoder(normalisersOf(this.#plan.sources)));
    this.#senders = await Promise.all(
      this.#plan.sinks.map(async (sink) => ({
        name: sink.name,
        sender: await this.#makeSender(sink, encoder),
      })),
    );
    const stop = new AbortController();
    const kill = new AbortController();
    const signals = { stop: stop.signal, kill: kill.signal };
    const runs = this.#senders.map(({ sender }) => sender.run(signals));
    // A sender only fails for a fault of ours; the pipeline must not go on without it.
    const failed = new Promise<never>((_, reject) => {
      for (const running of runs) running.catch(reject);
    });
    failed.catch(() => undefined);
    return { stop, kill, ended: Promise.allSettled(runs), failed };
  }

  async #makeSender(sink: PlannedSink, encoder: PageEncoder): Promise<Sender> {
    const { spool, tools, random } = this.#means;
    const { definition, format, settings } = sink;
    const { position, mark } = await spool.progress(sink.name);
    const log = tools.log.with({ sink: sink.name });
    const opened = await definition.open(settings, {
      name: sink.name,
      format,
      spoolId: spool.id,
      position,
      mark,
      tools: { ...tools, log },
    });
    const selections = new Map<string, Selection | null>();
    const outlet = new Outlet({
      sink: sink.name,
      spool,
      encoder,
      format,
      formatKey: sink.formatKey,
      documents: definition.documents === true,
      bounds: sink.bounds,
      selectionFor: (source) => {
        let selection = selections.get(source);
        if (selection === undefined) {
          selection = selectionFor(this.#plan.routes, { source, sink: sink.name }, () => {
            this.#filterFailures += 1;
          });
          selections.set(source, selection);
        }
        return selection;
      },
    });
    return new Sender({
      name: sink.name,
      sink: opened,
      outlet,
      spool,
      clock: tools.clock,
      log,
      position,
      inFlightMax: definition.inFlightMax,
      marks: definition.marks === true,
      waitMs: sink.waitMs,
      backOff: backOff({ ...sink.retry, random }),
      refusedWaitMs: sink.retry.maxMs,
    });
  }

  async #endSenders(sending: Sending, withinMs: number): Promise<void> {
    sending.stop.abort(new Error('stopping'));
    const late = setTimeout(() => sending.kill.abort(new Error('giving up')), withinMs);
    const ends = await sending.ended;
    clearTimeout(late);
    this.#note();
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  /** Waits, for a while, until each sink that takes events has got what is held now. */
  async #caughtUp(withinMs: number): Promise<void> {
    const { clock } = this.#means.tools;
    const { end } = this.#means.spool.gauge;
    const deadline = clock.monotonic() + withinMs;
    const waiting = () => this.state.sinks.some((sink) => sink.position < end && !isStuck(sink));
    while (waiting() && clock.monotonic() < deadline) await clock.sleep(catchUpLookMs);
  }

  /** Waits until every sink has everything, has refused everything, or the limit is over. */
  async #delivered(limit: AbortSignal): Promise<void> {
    const { clock } = this.#means.tools;
    const waiting = () =>
      this.state.sinks.some(
        (sink) => sink.position < this.#means.spool.gauge.end && sink.state !== 'refused',
      );
    while (waiting() && !limit.aborted) await clock.sleep(catchUpLookMs, limit);
  }

  async #noteSinks(stop: AbortSignal): Promise<void> {
    const { clock } = this.#means.tools;
    while (!stop.aborted) {
      this.#note();
      await clock.sleep(noteEveryMs, stop).catch(() => undefined);
    }
  }

  #note(): void {
    for (const { name, error, ...facts } of this.state.sinks) {
      const told =
        error === null ? null : { code: error.code, message: error.message, next: error.next };
      this.#means.spool.note('sink', name, { ...facts, error: told });
    }
  }
}

/** The senders under way. */
interface Sending {
  readonly stop: AbortController;
  readonly kill: AbortController;
  readonly ended: Promise<readonly PromiseSettledResult<void>[]>;
  readonly failed: Promise<never>;
}

const commonReading: RecordReading = { id: 'id', time: ['timestamp', 'time', 'created_at'] };

function isStuck(sink: SenderState): boolean {
  return sink.state === 'retrying' || sink.state === 'refused' || sink.state === 'stopped';
}

function required<T>(value: T | null, what: string): T {
  if (value === null) throw asExportError(new Error(what), 'building the pipeline');
  return value;
}

/** Normalisers are compiled once per source and kind; a source that left the config is read by common names. */
export function normalisersOf(
  sources: readonly PlannedSource[],
): (context: PageContext) => Normalise {
  const readings = new Map(sources.map((source) => [source.name, source.reading]));
  const compiled = new Map<string, Normalise>();
  return ({ source, kind }) => {
    const key = `${kind} ${source}`;
    let normalise = compiled.get(key);
    if (normalise === undefined) {
      normalise = compileNormaliser(kind, readings.get(source) ?? commonReading);
      compiled.set(key, normalise);
    }
    return normalise;
  };
}

/** Events held for a sink that has come this far. */
export function backlog(end: Offset, position: Offset): number {
  return Math.max(0, end - position);
}

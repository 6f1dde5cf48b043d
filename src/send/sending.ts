// The running sinks, each opened from its plan and ended by itself, so that one can be reopened
// while the others continue. Invariants: at most one sink per name is open at a time; a stopped
// sink has settled or abandoned its batches in flight, and the next one with its name resumes from
// the durable position.

import type { SinkDefinition, SinkSettings } from '../contracts/config.ts';
import {
  errorText,
  type Format,
  type Route,
  type SendSpool,
  type Sink,
  type Tools,
} from '../contracts/index.ts';
import { BackOff, fingerprintOf, refreshSecrets } from '../tools/index.ts';
import { FilterFailures, type FilterFailuresOf } from './filter-failures.ts';
import { normalisersOf, PageDecoder, type ReadSource } from './held-event.ts';
import { type BatchBounds, Outlet } from './outlet.ts';
import { PageEncoder } from './page-encoder.ts';
import { type Selection, selectionFor } from './route.ts';
import { Sender, type SenderState } from './sender.ts';
import { sinkConditionPage } from './sink-conditions.ts';
import { type TranscodedOf, Transcoders } from './transcoders.ts';
import { gatedHttp, gatedSink } from './turn-gate.ts';
import { UnreadTimes, type UnreadTimesOf } from './unread-times.ts';

/** A sink of the config, ready to be opened. */
export interface PlannedSink {
  readonly name: string;
  readonly definition: SinkDefinition;
  readonly settings: SinkSettings;
  readonly format: Format;
  /** Sinks with equal keys encode alike. */
  readonly formatKey: string;
  readonly bounds: BatchBounds;
  readonly waitMs: number;
  readonly retry: { readonly minMs: number; readonly maxMs: number };
}

/** The settings that decide which events a sink gets, and how they are normalised. */
export interface Ways {
  readonly sources: readonly ReadSource[];
  readonly routes: readonly Route[];
  readonly config?: string;
}

/** Dependencies of the senders. */
export interface SendingDeps {
  readonly spool: SendSpool;
  readonly tools: Tools;
  readonly random: () => number;
}

/** A sink that is open but does not send yet. */
interface OpenSink {
  readonly name: string;
  readonly sink: Sink;
  readonly sender: Sender;
  readonly outlet: Outlet;
}

interface SendingSink extends OpenSink {
  readonly stop: AbortController;
  readonly kill: AbortController;
  readonly ended: Promise<void>;
}

/** All sinks of the config. */
export class Senders {
  readonly #deps: SendingDeps;
  readonly #transcoders = new Transcoders(process.env.SLUICE_TRANSCODER !== 'off');
  readonly #unreadTimes = new UnreadTimes();
  readonly #encoder = new PageEncoder(
    new PageDecoder(normalisersOf([])),
    this.#transcoders,
    (page) => {
      const { reading } = this.#sources.get(page.held.context.source) ?? {};
      this.#unreadTimes.look(page, reading?.time ?? []);
    },
  );
  readonly #sinks = new Map<string, SendingSink>();
  readonly #filterFailures: FilterFailures;
  readonly #failed = Promise.withResolvers<never>();
  /** The last known settings of each source, with the routes of that time. */
  readonly #sources = new Map<string, ReadSource & { readonly routes: readonly Route[] }>();
  #routes: readonly Route[] = [];
  #config: string | null = null;
  /** By sink and source. */
  readonly #selections = new Map<string, Selection | null>();

  constructor(deps: SendingDeps, ways: Ways) {
    this.#deps = deps;
    this.#filterFailures = new FilterFailures(deps.tools.log);
    this.#failed.promise.catch(() => undefined);
    this.follow(ways);
  }

  get names(): readonly string[] {
    return [...this.#sinks.keys()];
  }

  get state(): readonly (SenderState & { readonly name: string })[] {
    return Array.from(this.#sinks, ([name, { sender }]) => ({ name, ...sender.state }));
  }

  /** Events on which a filter failed. */
  get filterFailures(): readonly FilterFailuresOf[] {
    return this.#filterFailures.all;
  }

  /** Streams with mostly unreadable times. */
  get unreadTimes(): readonly UnreadTimesOf[] {
    return this.#unreadTimes.all;
  }

  /** Numbers of events written by copying, and the reasons for the others. */
  get transcoded(): readonly TranscodedOf[] {
    return this.#transcoders.transcoded;
  }

  /** Rejects when a sender ends because of a bug: the process must not continue without it. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  /** Applies new normalising and routing. Stored events of a removed source go out as before. */
  follow({ sources, routes, config }: Ways): void {
    this.#routes = routes;
    this.#config = config ?? null;
    for (const source of sources) this.#sources.set(source.name, { ...source, routes });
    this.#selections.clear();
    this.#unreadTimes.forget();
    this.#encoder.decodeWith(new PageDecoder(normalisersOf([...this.#sources.values()])));
  }

  /** Opens these sinks at their positions, or none if one cannot be opened. */
  async open(sinks: readonly PlannedSink[]): Promise<readonly OpenSink[]> {
    const results = await Promise.allSettled(sinks.map((sink) => this.#open(sink)));
    const opened = results.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const failure = results.find((one) => one.status === 'rejected');
    if (failure === undefined) return opened;
    for (const { outlet } of opened) outlet.leave();
    await Promise.allSettled(opened.map(({ sink }) => sink.close()));
    throw failure.reason;
  }

  /** Sends to opened sinks until they are stopped. */
  start(opened: readonly OpenSink[]): void {
    for (const open of opened) {
      const stop = new AbortController();
      const kill = new AbortController();
      const ended = open.sender.run({ stop: stop.signal, kill: kill.signal });
      ended.catch((error) => {
        if (!stop.signal.aborted) this.#failed.reject(error);
      });
      this.#sinks.set(open.name, { ...open, stop, kill, ended });
    }
  }

  /**
   * Makes a sink send now; returns the end of a wait that its receiver requested. Undefined: no
   * such name.
   */
  retryNow(name: string): number | null | undefined {
    return this.#sinks.get(name)?.sender.retryNow();
  }

  /** Makes dead letters of suspects, all or those with these uids; returns their number. */
  async giveUp(name: string, uids: readonly string[] | null): Promise<number> {
    return (await this.#sinks.get(name)?.sender.giveUp(uids)) ?? 0;
  }

  /**
   * Stops these sinks, or all: no further batch, and batches in flight are abandoned after
   * `withinMs`. Resolves with the errors of those that did not end normally.
   */
  async stop(withinMs: number, names: readonly string[] = this.names): Promise<readonly unknown[]> {
    const stopped = names.flatMap((name) => this.#sinks.get(name) ?? []);
    for (const { stop } of stopped) stop.abort(new Error('stopping'));
    const late = setTimeout(() => {
      for (const { kill } of stopped) kill.abort(new Error('giving up'));
    }, withinMs);
    const ends = await Promise.allSettled(stopped.map(({ ended }) => ended));
    clearTimeout(late);
    for (const { outlet } of stopped) outlet.leave();
    return ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
  }

  /** No stream reads any more: every sink completes its open events. */
  finish(): void {
    for (const { sender } of this.#sinks.values()) sender.finish();
  }

  /** Makes `failed` reject, because a necessary part has ended. */
  fail(error: unknown): void {
    this.#failed.reject(error);
  }

  /** Removes stopped sinks. */
  remove(names: readonly string[]): void {
    for (const name of names) this.#sinks.delete(name);
  }

  async #open(planned: PlannedSink): Promise<OpenSink> {
    const { spool, tools, random } = this.#deps;
    const { name, definition, format, settings } = planned;
    const { inFlightMax } = definition;
    const { position, mark } = await spool.progress(name);
    const log = tools.log.with({ sink: name });
    const { sendTurn: turn } = tools;
    const http = turn === undefined ? tools.http : gatedHttp(tools.http, turn);
    const opened = await definition.open(settings, {
      name,
      format,
      numbering: spool.numbering,
      sinks: () => this.names,
      config: () => this.#config,
      position,
      mark,
      // Position 0 leaves the position unchanged, because it never decreases.
      remember: (mark) => spool.acknowledge(name, { position: 0, mark }),
      report: async (reported) => {
        const pages = [sinkConditionPage(name, reported, tools.clock.now())];
        await spool.append({ stream: name, pages }).catch((error) => {
          log.warn(
            'sink_condition_not_stored',
            'could not store a condition reported by the sink',
            {
              error: errorText(error),
            },
          );
        });
      },
      tools: { ...tools, http, log },
    });
    const sink = turn === undefined ? opened : gatedSink(opened, turn);
    const outlet = this.#outletOf(planned);
    const sender = new Sender({
      name,
      sink,
      outlet,
      spool,
      clock: tools.clock,
      log,
      position,
      inFlightMax: typeof inFlightMax === 'number' ? inFlightMax : inFlightMax(settings),
      waitMs: planned.waitMs,
      backOff: new BackOff({ ...planned.retry, random }),
      fingerprint: () => fingerprintOf(settings),
      refresh: () => refreshSecrets(settings),
      refusedWaitMs: planned.retry.maxMs,
      retryMinMs: planned.retry.minMs,
    });
    return { name, sink, sender, outlet };
  }

  #outletOf({ name, definition, format, formatKey, bounds }: PlannedSink): Outlet {
    return new Outlet({
      sink: name,
      spool: this.#deps.spool,
      encoder: this.#encoder,
      format,
      formatKey,
      documents: definition.documents === true,
      takesPages: definition.takes === 'pages',
      bounds,
      selectionFor: (source) => this.#selectionFor(source, name),
    });
  }

  #selectionFor(source: string, sink: string): Selection | null {
    const key = `${sink} ${source}`;
    let selection = this.#selections.get(key);
    if (selection === undefined) {
      const routes = this.#sources.get(source)?.routes ?? this.#routes;
      selection = selectionFor(routes, { source, sink }, (failure) =>
        this.#filterFailures.add(failure),
      );
      this.#selections.set(key, selection);
    }
    return selection;
  }
}

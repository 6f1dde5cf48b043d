// Reads one backfill: its source's lists as streams with an end, stored in the spool of an open journey and paced so
// that live streams come first. Then it waits until every sink has all events. A running process uses it beside its
// live streams, a command alone. Invariant: a failure of a backfill never stops the journey.

import {
  asExportError,
  backlog,
  ExportError,
  type Log,
  type SpoolGauge,
} from '../contracts/index.ts';
import { type BackfillState, type PlannedSource, Polling } from '../fetch/engine.ts';
import {
  type BackfillProgress,
  type BackfillRequest,
  backfillMemory,
  type OwnSpool,
} from '../hold/open.ts';
import type { Findings } from '../watch/running-status.ts';
import { type Live, type PaceDeps, paceFor } from './backfill-pace.ts';
import type { BootTools } from './tools.ts';

/** The dependencies. */
export interface BackfillReadingDeps extends Pick<PaceDeps, 'live'> {
  /** The running config and plan; they change with a reload. A backfill keeps those that it started with. */
  readonly made: () => Pick<PaceDeps, 'config' | 'plan'>;
  readonly spool: OwnSpool;
  readonly findings: Findings;
  readonly tools: BootTools;
}

const lookEveryMs = 100;
const noteEveryMs = 500;

/** The source with its lists alone; null where it has none, and so no past to be read. */
export function listsOf(source: PlannedSource | undefined): PlannedSource | null {
  const streams = (source?.streams ?? []).filter(({ kind }) => kind === 'list');
  return source === undefined || streams.length === 0 ? null : { ...source, streams };
}

/** A backfill being read: until all is delivered, it is dropped, or the process is to stop. */
export class BackfillReading {
  /** Resolves with the progress when none of its work is under way. */
  readonly ended: Promise<BackfillProgress>;
  readonly #request: BackfillRequest;
  readonly #deps: BackfillReadingDeps;
  readonly #log: Log;
  readonly #polling: Polling;
  readonly #unrequested = new AbortController();
  readonly #signal: AbortSignal;
  #state: BackfillProgress['state'] = 'reading';
  #error: ExportError | null = null;
  #isOver = false;

  constructor(request: BackfillRequest, deps: BackfillReadingDeps, stop: AbortSignal) {
    const { random, ...tools } = deps.tools;
    const log = tools.log.with({ backfill: request.id });
    const found = deps.findings.add;
    this.#request = request;
    this.#deps = deps;
    this.#log = log;
    this.#polling = new Polling({ ...deps, tools: { ...tools, log }, random, found }, 1);
    this.#signal = AbortSignal.any([stop, this.#unrequested.signal]);
    this.ended = this.#run();
  }

  get row(): number {
    return this.#request.row;
  }

  /** True when none of its work is under way. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Stops it, because it was cancelled. */
  drop(): void {
    this.#unrequested.abort(new Error('cancelled'));
  }

  async #run(): Promise<BackfillProgress> {
    const over = new AbortController();
    const noting = this.#note(over.signal);
    await this.#read().catch((failure) => this.#fail(failure));
    over.abort(new Error('ended'));
    await noting;
    await this.#deps.spool.leave(this.#request, this.#progress).catch((failure) => {
      // For example a full disk. The request is taken up again, and no page is read twice.
      this.#log.debug('backfill_not_stored', 'cannot store the end of a backfill', {
        error: String(failure),
      });
    });
    this.#isOver = true;
    return this.#progress;
  }

  async #read(): Promise<void> {
    this.#log.info('backfill_started', 'backfill started or resumed', factsOf(this.#request));
    this.#polling.add([pastOf(this.#request, this.#deps)]);
    const [failed] = await this.#polling.once(this.#signal);
    this.#signal.throwIfAborted();
    if (failed !== undefined) throw failed.cause;
    this.#state = 'delivering';
    await delivered(this.#deps, this.#signal);
    this.#state = 'done';
    this.#log.info('backfill_done', 'backfill complete: every sink has all of its events');
  }

  #fail(failure: unknown): void {
    if (this.#signal.aborted) {
      this.#log.info('backfill_stopped', 'backfill stopped');
      return;
    }
    const error = asExportError(failure, 'backfilling');
    this.#error = error;
    this.#state = 'failed';
    this.#log.error('backfill_failed', 'backfill failed', {
      error: error.message,
      next: error.next,
    });
  }

  /** Stores the progress. A failure, for example on a full disk, only means another try later. */
  async #note(over: AbortSignal): Promise<void> {
    const { spool, tools } = this.#deps;
    while (!over.aborted) {
      await spool.noteRequest(this.row, { ...this.#progress }).catch(() => undefined);
      await tools.clock.sleep(noteEveryMs, over).catch(() => undefined);
    }
  }

  get #progress(): BackfillProgress {
    const { live, spool, tools } = this.#deps;
    const error = this.#error && { message: this.#error.message, next: this.#error.next };
    return {
      ...{ version: 1, state: this.#state, at: tools.clock.now() },
      ...together(this.#polling.backfills),
      ...slowestOf(live(), spool.gauge),
      error,
    };
  }
}

/** The sink for which most events wait; a backfill waits for it. */
function slowestOf(
  { sinks }: Live,
  gauge: SpoolGauge,
): Pick<BackfillProgress, 'behind' | 'slowest'> {
  const waiting = sinks.map((one) => ({ ...one, behind: backlog(gauge, one.position) }));
  const [slowest] = waiting.toSorted((a, b) => b.behind - a.behind);
  if (slowest === undefined || slowest.behind === 0) return { behind: 0 };
  const { name: sink, behind, error } = slowest;
  return { behind, slowest: { sink, error: error?.message ?? null } };
}

function pastOf(request: BackfillRequest, deps: BackfillReadingDeps): PlannedSource {
  const { source, from, to } = request;
  const { clock, random } = deps.tools;
  const made = deps.made();
  const lists = listsOf(made.plan.sources.find(({ name }) => name === source));
  if (lists === null) {
    const text = `backfilling: no source ${source} with a list runs here`;
    throw new ExportError('config_invalid', text, {
      next: 'Request it with the config that runs.',
    });
  }
  const past = {
    span: { fromMs: from, toMs: to },
    memory: backfillMemory(request),
    paceOf: (stream: PlannedSource['streams'][number]) =>
      paceFor(stream, { ...deps, ...made, clock, random }),
  };
  return { ...lists, past };
}

/** Waits until each sink has all events that are stored now; right after a start, some sinks may be missing. */
export async function delivered(
  { made, spool, live, tools: { clock } }: BackfillReadingDeps,
  signal: AbortSignal,
): Promise<void> {
  const { end } = spool.gauge;
  const has = () => live().sinks.filter(({ position }) => position >= end).length;
  while (has() < made().plan.sinks.length) await clock.sleep(lookEveryMs, signal);
}

/** The request as facts of a log line. */
function factsOf({ source, from, to }: BackfillRequest): Record<string, string> {
  const time = (at: number) => new Date(at).toISOString();
  return { source, from: time(from), to: time(to) };
}

function together(states: readonly BackfillState[]): BackfillState {
  const sum = (of: (state: BackfillState) => number) =>
    states.reduce((total, state) => total + of(state), 0);
  const current = states.find(({ share }) => share !== 1) ?? states.at(-1);
  const isKnown = states.some(({ share }) => share !== null);
  return {
    read: sum(({ read }) => read),
    held: sum(({ held }) => held),
    untimed: sum(({ untimed }) => untimed),
    reachedAt: current?.reachedAt ?? null,
    share: isKnown ? sum(({ share }) => share ?? 0) / states.length : null,
  };
}

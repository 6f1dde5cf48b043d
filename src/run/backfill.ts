// One backfill being read: its source's lists as streams that have an end, in the spool of an open journey, paced so that
// the live streams come first; and then waited for until every sink has all of it. The same whether a running process does it
// beside its live streams or a command alone. What must stay true: whatever goes wrong with it, the journey goes on.

import { asExportError, ExportError } from '../contracts/errors.ts';
import type { BackfillState } from '../fetch/backfill.ts';
import { type PlannedSource, Polling } from '../fetch/polling.ts';
import { type BackfillProgress, type BackfillRequest, memoryOf } from '../hold/backfills.ts';
import type { OwnSpool } from '../hold/spool.ts';
import { backlog } from '../pipeline.ts';
import type { Findings } from '../watch/findings.ts';
import { type PaceMeans, paceFor } from './backfill-pace.ts';
import type { BootTools } from './tools.ts';

/** What it is read with. */
export interface ReadingMeans extends Pick<PaceMeans, 'live'> {
  /** What runs: it may be another after a reload. A backfill goes on with the one that it began with. */
  readonly made: () => Pick<PaceMeans, 'config' | 'plan'>;
  readonly spool: OwnSpool;
  readonly findings: Findings;
  readonly tools: BootTools;
}

/** A backfill being read. */
export interface BackfillReading {
  readonly row: number;
  /** Nothing of it is under way any more. */
  readonly isOver: boolean;
  /** Stops it: it is not wanted any more. */
  drop(): void;
  /** Resolves when nothing of it is under way, with how far it has come. */
  readonly ended: Promise<BackfillProgress>;
}

const lookEveryMs = 100;
const noteEveryMs = 500;

/** The source with its lists alone, null where it has none: a configuration that is read whole has no past to be read. */
export function listsOf(source: PlannedSource | undefined): PlannedSource | null {
  const streams = (source?.streams ?? []).filter(({ kind }) => kind === 'list');
  return source === undefined || streams.length === 0 ? null : { ...source, streams };
}

/** Reads on, until all is delivered, it is dropped, or the process is to stop. */
export function readBackfill(
  request: BackfillRequest,
  means: ReadingMeans,
  stop: AbortSignal,
): BackfillReading {
  const { row, id } = request;
  const { clock, random, ...tools } = means.tools;
  const log = tools.log.with({ backfill: id });
  const polling = new Polling(
    { ...means, tools: { ...tools, clock, log }, random, found: means.findings.add },
    1,
  );
  const unwanted = new AbortController();
  const signal = AbortSignal.any([stop, unwanted.signal]);
  let state: BackfillProgress['state'] = 'reading';
  let error: ExportError | null = null;
  let isOver = false;
  const progress = (): BackfillProgress => ({
    version: 1,
    state,
    at: clock.now(),
    ...together(polling.backfills),
    behind: behindMost(means),
    error: error === null ? null : { message: error.message, next: error.next },
  });
  const over = new AbortController();
  const noting = (async () => {
    while (!over.signal.aborted) {
      // On a full disk, say, it is worth no more than another try.
      await means.spool.noteRequest(row, { ...progress() }).catch(() => undefined);
      await clock.sleep(noteEveryMs, over.signal).catch(() => undefined);
    }
  })();
  const read = async () => {
    log.info('a backfill begins, or goes on', factsOf(request));
    polling.add([pastOf(request, means)]);
    const [failed] = await polling.once(signal);
    signal.throwIfAborted();
    if (failed !== undefined) throw failed.cause;
    state = 'delivering';
    await delivered(means, signal);
    state = 'done';
    log.info('the backfill is done: every sink has all of it');
  };
  const ended = read()
    .catch((failure) => {
      if (signal.aborted) {
        log.info('the backfill stops where it is');
        return;
      }
      error = asExportError(failure, 'backfilling');
      state = 'failed';
      log.error('the backfill has failed', { error: error.message, next: error.next });
    })
    .then(async () => {
      over.abort(new Error('ended'));
      await noting;
      await means.spool.leave(request, progress());
    })
    .catch((failure) => {
      // A full disk, say. The request is looked at again, and what was read is not read twice.
      log.debug('leaving a backfill', { error: String(failure) });
    })
    .then(() => {
      isOver = true;
      return progress();
    });
  return {
    row,
    ended,
    drop: () => unwanted.abort(new Error('not wanted')),
    get isOver() {
      return isOver;
    },
  };
}

function pastOf(request: BackfillRequest, means: ReadingMeans): PlannedSource {
  const { source, from, to } = request;
  const { clock, random } = means.tools;
  const made = means.made();
  const lists = listsOf(made.plan.sources.find(({ name }) => name === source));
  if (lists === null) {
    const text = `backfilling: no source ${source} with a list runs here`;
    throw new ExportError('config_invalid', text, {
      next: 'Ask for it with the config that runs.',
    });
  }
  const past = {
    span: { fromMs: from, toMs: to },
    memory: memoryOf(request),
    paceOf: (stream: PlannedSource['streams'][number]) =>
      paceFor(stream, { ...means, ...made, clock, random }),
  };
  return { ...lists, past };
}

/** Events that the slowest sink still has to get. */
function behindMost({ spool, live }: Pick<ReadingMeans, 'spool' | 'live'>): number {
  const { end } = spool.gauge;
  return Math.max(0, ...live().sinks.map(({ position }) => backlog(end, position)));
}

/** Waits until each sink has what is held now; at a start they are not all there yet. */
export async function delivered(
  { made, spool, live, tools: { clock } }: ReadingMeans,
  signal: AbortSignal,
): Promise<void> {
  const { end } = spool.gauge;
  const has = () => live().sinks.filter(({ position }) => position >= end).length;
  while (has() < made().plan.sinks.length) await clock.sleep(lookEveryMs, signal);
}

/** What is asked for, for a log line. */
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

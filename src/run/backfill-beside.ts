// Backfills beside the live streams: the process that runs looks now and then what is asked for in its state directory, and
// reads one after the other, through the same spool and the same throttles. It stops one that is no longer wanted, goes
// on after a restart with what is, and is done with one when every sink has all of it. What must stay true: whatever
// goes wrong with a backfill, the live streams go on.

import { asExportError, ExportError } from '../contracts/errors.ts';
import { backlog } from '../pipeline.ts';
import {
  type BackfillReading,
  listStreams,
  type ReadingMeans,
  readingOf,
} from './backfill-reading.ts';
import {
  type BackfillProgress,
  type BackfillRequest,
  forget,
  progressOf,
  requestOf,
  requestsIn,
  setDone,
  writeProgress,
} from './backfill-requests.ts';

const lookEveryMs = 250;

/** What backfills are served with. */
export interface ServingMeans extends Omit<ReadingMeans, 'config' | 'plan'> {
  /** What runs: it may be another after a reload. */
  readonly made: () => Pick<ReadingMeans, 'config' | 'plan'>;
}

/** Runs the journey and serves backfills until it ends. */
export async function withBackfills(
  journey: (stop: AbortSignal) => Promise<void>,
  means: ServingMeans,
  stop: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const serving = serveBackfills(means, AbortSignal.any([stop, over.signal]));
  try {
    await journey(stop);
  } finally {
    over.abort(new Error('the journey is over'));
    await serving;
  }
}

/** Serves until stopped. Never rejects. */
async function serveBackfills(means: ServingMeans, stop: AbortSignal): Promise<void> {
  const { clock, log } = means.tools;
  const { dir } = means.made().config.state;
  while (!stop.aborted) {
    try {
      const next = requestsIn(dir).find((request) => isDue(dir, request));
      if (next !== undefined) await serve(next, means, stop);
    } catch (error) {
      const { message, next } = asExportError(error, 'serving backfills');
      if (!stop.aborted) log.warn('a backfill could not be served', { error: message, next });
    }
    await clock.sleep(lookEveryMs, stop).catch(() => undefined);
  }
}

/** One that has failed is only tried again when it is asked for again. */
function isDue(dir: string, { id, wanted, askedAt }: BackfillRequest): boolean {
  if (!wanted) return false;
  const last = progressOf(dir, id);
  return last?.state !== 'failed' || last.at < askedAt;
}

async function serve(
  request: BackfillRequest,
  serving: ServingMeans,
  stop: AbortSignal,
): Promise<void> {
  // It goes on with the config that it began with.
  const means: ReadingMeans = { ...serving, ...serving.made() };
  const { config, plan, tools } = means;
  const unwanted = new AbortController();
  const over = new AbortController();
  const signal = AbortSignal.any([stop, unwanted.signal]);
  const reading = readingOf(request, means);
  const tell: Ending['tell'] = (state, error = null) =>
    writeProgress(config.state.dir, request.id, progressNow(state, { reading, means, error }));
  let state: BackfillProgress['state'] = 'reading';
  let error: ExportError | null = null;
  const look = () => {
    if (requestOf(config.state.dir, request.id)?.wanted !== true) {
      unwanted.abort(new Error('the backfill is not wanted any more'));
    }
    tell(state);
  };
  const looking = keepLooking(look, tools, over.signal);
  try {
    tools.log.info('a backfill begins, or goes on', factsOf(request));
    const source = plan.sources.find(({ name }) => name === request.source);
    error = listStreams(source).length === 0 ? gone(request) : await reading.run(signal);
    state = 'delivering';
    if (error === null) await delivered(serving, signal);
  } catch (failure) {
    if (!signal.aborted) error = asExportError(failure, 'backfilling');
  } finally {
    over.abort(new Error('ended'));
    await looking;
  }
  conclude({ request, signal, error, means, tell });
}

/** Looks until it is over. A disk that is full, say, costs no more than a look. */
async function keepLooking(
  look: () => void,
  { clock, log }: ReadingMeans['tools'],
  over: AbortSignal,
): Promise<void> {
  while (!over.aborted) {
    try {
      look();
    } catch (error) {
      log.debug('looking after a backfill', { error: String(error) });
    }
    await clock.sleep(lookEveryMs, over).catch(() => undefined);
  }
}

interface Ending {
  readonly request: BackfillRequest;
  readonly signal: AbortSignal;
  readonly error: ExportError | null;
  readonly means: ReadingMeans;
  readonly tell: (state: BackfillProgress['state'], error?: ExportError | null) => void;
}

function conclude({ request, signal, error, means, tell }: Ending): void {
  const log = means.tools.log.with({ backfill: request.id, source: request.source });
  if (signal.aborted) {
    tell('stopped');
    // Where it was taken back altogether, nothing of it is to stay.
    if (requestOf(means.config.state.dir, request.id) === null) forget(means.config, request);
    log.info('the backfill stops where it is');
  } else if (error !== null) {
    tell('failed', error);
    log.error('the backfill has failed', { error: error.message, next: error.next });
  } else {
    tell('done');
    setDone(means.config, request);
    log.info('the backfill is done: every sink has all of it');
  }
}

/** How far it is, as it is written down. */
export function progressNow(
  state: BackfillProgress['state'],
  {
    reading,
    means,
    error,
  }: {
    readonly reading: BackfillReading;
    readonly means: Pick<ReadingMeans, 'live' | 'spool' | 'tools'>;
    readonly error: ExportError | null;
  },
): BackfillProgress {
  const { end } = means.spool.gauge;
  const behind = means.live().sinks.map(({ position }) => backlog(end, position));
  return {
    version: 1,
    state,
    at: means.tools.clock.now(),
    ...reading.state,
    behind: Math.max(0, ...behind),
    error: error === null ? null : { message: error.message, next: error.next },
  };
}

/** What is asked for, for a log line. */
function factsOf({ id, source, from, to }: BackfillRequest): Record<string, string> {
  const time = (at: number) => new Date(at).toISOString();
  return { backfill: id, source, from: time(from), to: time(to) };
}

/** Waits until each sink has what is held now; at a start they are not all there yet. */
async function delivered(
  { made, spool, live, tools }: ServingMeans,
  signal: AbortSignal,
): Promise<void> {
  const { end } = spool.gauge;
  const has = () => live().sinks.filter(({ position }) => position >= end).length;
  while (has() < made().plan.sinks.length) await tools.clock.sleep(lookEveryMs, signal);
}

function gone({ source }: BackfillRequest): ExportError {
  return new ExportError(
    'config_invalid',
    `backfilling: no source ${source} with a list runs here`,
    {
      next: 'Ask for it with the config that runs.',
    },
  );
}

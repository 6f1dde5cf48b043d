// A backfill where no process runs with the config: the journey is opened here without its live streams, the past is read
// into the spool, and sinks get what is held while it is read and the rest at the end. What must stay true: the state
// directory is held meanwhile like by any other run, so that a run that starts beside it is refused and nothing is mixed.

import type { Config } from '../config/config.ts';
import type { WholePlan } from '../config/plan.ts';
import type { ExportError } from '../contracts/errors.ts';
import type { Spool } from '../contracts/spool.ts';
import { backlog, Pipeline, type Summary } from '../pipeline.ts';
import { progressNow } from './backfill-beside.ts';
import type { Live } from './backfill-pace.ts';
import { readingOf } from './backfill-reading.ts';
import {
  type BackfillProgress,
  type BackfillRequest,
  forget,
  requestOf,
  setDone,
  writeProgress,
  writeRequest,
} from './backfill-requests.ts';
import { timeToGiveUp } from './give-up.ts';
import { openJourney } from './journey.ts';
import type { BootTools } from './tools.ts';

/** What it is run with. */
export interface AloneMeans {
  readonly config: Config;
  readonly plan: WholePlan;
  readonly tools: BootTools;
  readonly stop: AbortSignal;
  readonly show: (progress: BackfillProgress) => void;
}

/** How it ended. */
export interface AloneEnd {
  readonly progress: BackfillProgress;
  /** Sinks that do not have everything. */
  readonly behind: Summary['behind'];
}

/** Sinks are opened for so many events at once, or for the last ones. */
const eventsAtOnce = 20_000;
/** Or where they fill this share of the spool. */
const spoolShare = 0.25;
const lookEveryMs = 200;

/** Reads and delivers. Throws `state_locked` where a process runs after all. */
export async function runAlone(request: BackfillRequest, means: AloneMeans): Promise<AloneEnd> {
  const { config, plan, tools } = means;
  const journey = await openJourney(plan, config.state, tools);
  const { spool } = journey;
  let end: AloneEnd;
  try {
    const silent = plan.sources.map((source) => ({ ...source, streams: [] }));
    const quiet = { ...plan, sources: silent };
    const pipeline = new Pipeline(quiet, { spool, tools, random: tools.random });
    end = await readAndDeliver(request, { ...means, spool, pipeline });
  } finally {
    await journey.close();
  }
  settle(request, end, config);
  return end;
}

interface Open extends AloneMeans {
  readonly spool: Spool;
  readonly pipeline: Pipeline;
}

async function readAndDeliver(request: BackfillRequest, open: Open): Promise<AloneEnd> {
  const { tools, stop } = open;
  const live = await liveFrom(open);
  const reading = readingOf(request, { ...open, live });
  const over = new AbortController();
  const signal = AbortSignal.any([stop, over.signal]);
  let isRead = false;
  let isCancelled = false;
  let error: ExportError | null = null;
  const now = (state: BackfillProgress['state']) =>
    progressNow(state, { reading, means: { ...open, live }, error });
  const telling = (async () => {
    while (!over.signal.aborted) {
      isCancelled = !tell(request, now(isRead ? 'delivering' : 'reading'), open);
      if (isCancelled) over.abort(new Error('the backfill was cancelled'));
      else await tools.clock.sleep(lookEveryMs, over.signal).catch(() => undefined);
    }
  })();
  const read = reading
    .run(signal)
    .then((halted) => {
      error = halted;
    })
    .catch((failure) => {
      // Stopped, or sinks that take nothing any more.
      if (!signal.aborted) throw failure;
    })
    .finally(() => {
      isRead = true;
    });
  try {
    const [behind] = await Promise.all([deliver({ ...open, live }, () => isRead, over), read]);
    const isStopped = stop.aborted || isCancelled;
    const isWhole = error === null && !isStopped && behind.length === 0;
    return { progress: now(stateAt(isWhole, error, isStopped)), behind };
  } finally {
    over.abort(new Error('ended'));
    await telling;
  }
}

/** Tells how far it is, here and in the state directory; false once it was cancelled. A disk that is full, say, costs a look. */
function tell(
  { id }: BackfillRequest,
  progress: BackfillProgress,
  { config, tools, show }: AloneMeans,
): boolean {
  show(progress);
  try {
    if (requestOf(config.state.dir, id) === null) return false;
    writeProgress(config.state.dir, id, progress);
  } catch (error) {
    tools.log.debug('looking after a backfill', { error: String(error) });
  }
  return true;
}

function stateAt(
  isWhole: boolean,
  error: ExportError | null,
  isStopped: boolean,
): BackfillProgress['state'] {
  if (isWhole) return 'done';
  if (error !== null) return 'failed';
  return isStopped ? 'stopped' : 'delivering';
}

/** The sinks as they stand, also before they are opened. */
async function liveFrom({ plan, pipeline, spool }: Open): Promise<() => Live> {
  const before = await Promise.all(
    plan.sinks.map(async ({ name }) => {
      const { position } = await spool.progress(name);
      return { position, state: 'waiting' };
    }),
  );
  return () => {
    const { sinks } = pipeline.state;
    return { streams: [], sinks: sinks.length > 0 ? sinks : before };
  };
}

/** Delivers what is held while it is read, and the rest at the end; ends the reading where sinks take nothing any more. */
async function deliver(
  open: Open & { readonly live: () => Live },
  isRead: () => boolean,
  over: AbortController,
): Promise<Summary['behind']> {
  const { config, spool, live, tools } = open;
  for (;;) {
    const isLast = isRead();
    const { end, bytes } = spool.gauge;
    const held = Math.max(0, ...live().sinks.map(({ position }) => backlog(end, position)));
    const isMuch = held >= eventsAtOnce || bytes >= config.state.maxBytes * spoolShare;
    if (held > 0 && (isLast || isMuch)) {
      const { behind } = await deliverHeld(open);
      if (behind.length > 0) {
        over.abort(new Error('sinks do not take what is held'));
        return behind;
      }
    } else if (isLast) return [];
    else await tools.clock.sleep(lookEveryMs);
  }
}

/** As `run --once` does: for as long as anything moves, and for a while after a signal. */
async function deliverHeld({ config, pipeline, spool, tools, stop }: Open): Promise<Summary> {
  const { clock } = tools;
  const { timeoutMs } = config.shutdown;
  const limit = new AbortController();
  const over = new AbortController();
  const giveUp = () => limit.abort(new Error('the time is over'));
  const watched = { clock, state: () => pipeline.state, end: () => spool.gauge.end };
  timeToGiveUp(watched, over.signal).then(giveUp, () => undefined);
  const stopped = () => void clock.sleep(timeoutMs / 2, over.signal).then(giveUp, () => undefined);
  stop.addEventListener('abort', stopped);
  if (stop.aborted) stopped();
  try {
    return await pipeline.once(limit.signal, timeoutMs / 2);
  } finally {
    stop.removeEventListener('abort', stopped);
    over.abort(new Error('ended'));
  }
}

/** What is left in the state directory for another time. */
function settle(request: BackfillRequest, { progress }: AloneEnd, config: Config): void {
  const { dir } = config.state;
  if (requestOf(dir, request.id) === null) {
    forget(config, request);
    return;
  }
  writeProgress(dir, request.id, progress);
  if (progress.state === 'done') setDone(config, request);
  else writeRequest(dir, { ...request, wanted: progress.state !== 'stopped' });
}

// A backfill where no process runs with the config: the journey is run here without its live streams, until the one backfill
// has ended. What must stay true: the state directory is held meanwhile like by any other run, so that a run that starts
// beside it is refused and nothing is mixed.

import type { Config } from '../config/config.ts';
import type { WholePlan } from '../config/plan.ts';
import {
  askForBackfill,
  type BackfillProgress,
  type BackfillRequest,
  type Past,
  stopBackfill,
} from '../hold/backfills.ts';
import { changeIn } from '../hold/store.ts';
import { backlog, type Summary } from '../pipeline.ts';
import { delivered } from './backfill.ts';
import { timeToGiveUp } from './give-up.ts';
import { type Journey, openJourney } from './journey.ts';
import { serveRequests } from './requests.ts';
import type { BootTools } from './tools.ts';

/** What it is run with. */
export interface AloneMeans {
  readonly config: Config;
  readonly plan: WholePlan;
  readonly tools: BootTools;
  readonly stop: AbortSignal;
  /** Told once the state directory is held. */
  readonly begun: (request: BackfillRequest) => void;
  readonly show: (progress: BackfillProgress) => void;
}

/** How it ended. */
export interface AloneEnd {
  readonly request: BackfillRequest;
  /** Null: it had not begun yet. */
  readonly progress: BackfillProgress | null;
  /** Sinks that do not have everything. */
  readonly behind: Summary['behind'];
}

/** Reads and delivers. Throws `state_locked` where a process runs after all. */
export async function runAlone(past: Past, means: AloneMeans): Promise<AloneEnd> {
  const { config, plan, tools, stop } = means;
  const journey = await openJourney(plan, config.state, tools, { polls: false });
  try {
    const request = changeIn(config.state, (store) =>
      askForBackfill(store, past, tools.clock.now()),
    );
    means.begun(request);
    const read = await readAndDeliver(request, journey, means);
    const { end } = journey.spool.gauge;
    const behind = journey.pipeline.state.sinks
      .filter(({ position }) => position < end)
      .map(({ name, position, error }) => ({
        ...{ sink: name, held: backlog(end, position), cause: error },
      }));
    const isOver = read?.state === 'done' || read?.state === 'failed';
    const state = read !== null && (isOver || !stop.aborted) ? read.state : 'stopped';
    const held = Math.max(0, ...behind.map((sink) => sink.held));
    const progress = read && { ...read, state, behind: held };
    if (state === 'stopped')
      changeIn(config.state, (store) => stopBackfill(store, request, progress));
    return { request, progress, behind };
  } finally {
    await journey.close();
  }
}

async function readAndDeliver(
  { row }: BackfillRequest,
  journey: Journey,
  { config, plan, tools, stop, show }: AloneMeans,
): Promise<BackfillProgress | null> {
  const { pipeline, spool } = journey;
  const { timeoutMs } = config.shutdown;
  const over = new AbortController();
  const end = AbortSignal.any([stop, over.signal]);
  const endNow = () => over.abort(new Error('the backfill is over'));
  const watched = { clock: tools.clock, state: () => pipeline.state, end: () => spool.gauge.end };
  timeToGiveUp(watched, end).then(endNow, () => undefined);
  const made = () => ({ config, plan });
  let last: BackfillProgress | null = null;
  const told = async (progress: BackfillProgress, isOver: boolean) => {
    last = progress;
    show(progress);
    if (!isOver) return;
    // What was held before it failed goes out as far as sinks take it.
    const means = { ...journey, made, live: () => pipeline.state, tools };
    if (progress.state === 'failed') await delivered(means, end).catch(() => undefined);
    endNow();
  };
  const running = pipeline.run(end, timeoutMs);
  running.catch(endNow);
  const reads = (id: number) => id === row;
  await serveRequests({ ...journey, made, tools, reads, told }, end);
  await running;
  return last;
}

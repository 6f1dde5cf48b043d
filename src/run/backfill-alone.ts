// Runs one backfill that a command has requested, without live streams, if no process runs with the config. Invariant:
// the state directory is locked as by any other run, so that a second run is refused and nothing is mixed.

import type { Config } from '../config/index.ts';
import { backlog } from '../contracts/index.ts';
import type { BackfillProgress, BackfillRequest } from '../hold/open.ts';
import type { Summary } from '../pipeline.ts';
import { delivered } from './backfill.ts';
import { timeToGiveUp } from './give-up.ts';
import type { Journey } from './journey.ts';
import type { WholePlan } from './plan.ts';
import { serveRequests } from './requests.ts';
import type { BootTools } from './tools.ts';

/** The dependencies. */
export interface AloneDeps {
  readonly config: Config;
  readonly plan: WholePlan;
  readonly tools: BootTools;
}

/** The journey under way. */
export interface RunningAlone {
  /** Aborts when nothing moves any more. */
  readonly stuck: AbortSignal;
  /** Ends it; `delivers`: after all stored events have been delivered. */
  end(how: { readonly delivers: boolean }): Promise<AloneEnd>;
}

/** How it ended. */
interface AloneEnd {
  /** The progress of the reading; null: it had not started. */
  readonly read: BackfillProgress | null;
  /** Sinks that do not have everything. */
  readonly behind: Summary['behind'];
}

/** Runs it. */
export function runAlone(
  { row }: BackfillRequest,
  journey: Journey,
  { config, plan, tools }: AloneDeps,
): RunningAlone {
  const { pipeline, spool } = journey;
  const over = new AbortController();
  const stuck = new AbortController();
  const isStuck = () => stuck.abort(new Error('nothing moves any more'));
  const watched = { clock: tools.clock, state: () => pipeline.state, end: () => spool.gauge.end };
  timeToGiveUp(watched, over.signal).then(isStuck, () => undefined);
  const deps = { ...journey, made: () => ({ config, plan }), tools };
  const serving = serveRequests({ ...deps, reads: (one) => one === row }, over.signal);
  const running = pipeline.run(over.signal, config.shutdown.timeoutMs);
  running.catch(isStuck);
  return {
    stuck: stuck.signal,
    async end({ delivers }) {
      const live = () => pipeline.state;
      if (delivers) await delivered({ ...deps, live }, stuck.signal).catch(() => undefined);
      over.abort(new Error('the backfill is over'));
      const read = await serving;
      await running;
      const { end } = spool.gauge;
      const behind = pipeline.state.sinks
        .filter(({ position }) => position < end)
        .map(({ name, position, error }) => ({
          ...{ sink: name, held: backlog(spool.gauge, position), cause: error },
        }));
      return { read, behind };
    },
  };
}

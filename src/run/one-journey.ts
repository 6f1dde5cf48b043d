// One journey of a process, or of a shard in a worker process: from standby, if the state is in Kafka, to its end.
// Invariant: when another process has taken over the state, this one ends at once, since its sends would run beside
// those of the other process. A worker process then ends with all of its shards.

import type { Config } from '../config/index.ts';
import type { ExportError, Log } from '../contracts/index.ts';
import { warnOfRemoved } from './companies.ts';
import type { Drains } from './drains.ts';
import { type Journey, openJourney } from './journey.ts';
import { MemberFile } from './member-note.ts';
import { sparePage, standByText } from './own-page.ts';
import { planFrom } from './plan.ts';
import { resumeLines } from './resume-lines.ts';
import { openStatus, type Running, sightOf } from './running.ts';
import { lastConfigIn, noteRunning } from './running-config.ts';
import type { HostedTurn } from './shard-worker.ts';
import { openTools } from './tools.ts';
import type { Processes } from './watch-configs.ts';

/** The dependencies of a journey. */
export interface JourneyDeps
  extends Pick<Running, 'own' | 'shutdown' | 'hosted' | 'read' | 'deploymentChanged' | 'control'> {
  readonly deps: Running['deps'] & { readonly exit: (code: 1) => void };
  /** Null: the state is in SQLite, or this is a worker process. */
  readonly drains: Drains | null;
  /** Of a worker process: reads the processes of the state for all of its shards. */
  readonly processes?: Processes;
}

/** Resolves with its exit code, and the config that ran last. */
export async function oneJourney(
  config: Config,
  { shutdown: ending, drains, processes, ...kept }: JourneyDeps,
  go: (running: Running) => Promise<0 | 1>,
): Promise<{ readonly code: 0 | 1; readonly config: Config }> {
  const { own, hosted } = kept;
  const { log } = own;
  const tools = openTools(log);
  const plan = planFrom(config, tools);
  const lost = (why: ExportError) => {
    reportEnd(log, why, hosted);
    kept.deps.exit(1);
  };
  const isDrained = () => drains?.isDrained() === true;
  const spare = sparePage(config, tools, isDrained);
  const member = drains === null ? null : new MemberFile(config.state.dir, log);
  const waits = () => {
    member?.note({ standing_by: standByText(config, isDrained()) });
    spare.waits();
  };
  const { sessionMs = 0 } = config.state.kafka ?? {};
  const membership = hosted?.membership(sessionMs, tools, lost);
  const standBy = {
    stop: ending.stop,
    lost,
    waits,
    answered: spare.answered,
    isDrained,
    membership,
    processes,
  };
  let journey: Journey;
  try {
    journey = await openJourney(plan, config.state, tools, { standBy });
  } finally {
    member?.close();
    await spare.close();
  }
  try {
    for (const { event, text, fields } of resumeLines(plan, journey.before)) {
      log.info(event, text, fields);
    }
    const sight = sightOf({ config, plan }, { journey, tools, hosted });
    const shutdown = {
      ...ending,
      stop: drains?.orDrained(ending.stop) ?? ending.stop,
    };
    const running: Running = {
      ...kept,
      ...{ config, plan, journey, tools, shutdown, sight, refused: null },
    };
    warnOfRemoved(lastConfigIn(config.state.dir), config, log);
    noteRunning(config, tools.clock.now(), null, log);
    const status = await openStatus(running);
    try {
      return { code: await go(running), config: running.config };
    } finally {
      await status?.close();
    }
  } finally {
    await journey.close();
  }
}

/** Logs why a run ends, and reports it to the process that has started this one. */
export function reportEnd(log: Log, why: ExportError, hosted: HostedTurn | null): void {
  const { code, message, next } = why;
  hosted?.ends(why);
  log.error('sluice_failed', 'sluice ends with an error', { code, error: message, next });
}

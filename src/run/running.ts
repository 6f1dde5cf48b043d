// A running journey and its status, shared by the loops beside it (run-loops.ts). Invariant: the status shows the
// running config, also after a reload.

import type { Control } from '../cluster/kafka.ts';
import type { Config } from '../config/index.ts';
import { timeText } from '../tools/index.ts';
import { type EventTap, type StatusMoment, watching } from '../watch/running-status.ts';
import { eventTap } from './event-tap.ts';
import type { Journey } from './journey.ts';
import type { OwnLog } from './own-log.ts';
import { openPage } from './own-page.ts';
import type { WholePlan } from './plan.ts';
import type { Made } from './reload-changes.ts';
import type { ReloadRefusal } from './running-config.ts';
import type { HostedTurn } from './shard-worker.ts';
import type { Shutdown } from './shutdown.ts';
import type { BootTools } from './tools.ts';

/** An open journey with its process. */
export interface Running {
  /** The running config; it changes with a reload. */
  config: Config;
  readonly plan: WholePlan;
  readonly journey: Journey;
  readonly tools: BootTools;
  readonly shutdown: Shutdown;
  /** Lines of the command to stdout and to stderr. */
  readonly deps: { readonly out: (line: string) => void; readonly err: (line: string) => void };
  /** In a worker process, the turn of the shard. */
  readonly hosted: HostedTurn | null;
  /** How the upstreams differ from those that the state in Kafka had at the start; null: they do not. */
  readonly deploymentChanged: string | null;
  /** Reads the config from its file now, or this process's copy. */
  readonly read: () => Promise<Config>;
  readonly own: OwnLog;
  /** Commands of operators on other machines; null: the state is not in Kafka. */
  readonly control: Control | null;
  /** The content of the status; it changes when another config runs. */
  sight: Sight;
  /** Why the config in its file does not run; null: it does. */
  refused: ReloadRefusal | null;
}

interface Sight {
  readonly look: () => StatusMoment;
  readonly tap: EventTap | null;
}

/** The content of the status for a running config. */
export function sightOf(
  made: Made,
  { journey, tools: { clock, log }, hosted }: Pick<Running, 'journey' | 'tools' | 'hosted'>,
): Sight {
  const isTailed = hosted?.isTailed ?? made.config.status?.tail === true;
  return {
    look: watching({ ...journey, plan: made.plan, state: made.config.state, clock, log }),
    tap: isTailed ? eventTap({ ...made, spool: journey.spool, clock }) : null,
  };
}

/** The status page; of a shard in a worker process, the process that has started the worker has it. */
export async function openStatus(running: Running): Promise<{ close(): unknown } | null> {
  const { hosted, own, tools } = running;
  const look = (): StatusMoment => ({
    ...running.sight.look(),
    reload_refused: running.refused && { ...running.refused, at: timeText(running.refused.at) },
    deployment_changed: running.deploymentChanged,
  });
  const retry = (name: string) => running.journey.pipeline.retryNow(name);
  const shown = { look, tap: () => running.sight.tap, retry };
  if (hosted !== null) return hosted.show(shown);
  return await openPage({ ...shown, config: () => running.config }, tools, own);
}

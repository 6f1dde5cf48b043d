// The status page of a run, if its config has one. A run whose page cannot listen does not start.

import type { Config } from '../config/index.ts';
import type {
  EventTap,
  StatusMoment,
  StatusServer,
  StatusSettings,
  TailWish,
} from '../watch/running-status.ts';
import { clusterSight } from './cluster-sight.ts';
import type { OwnLog } from './own-log.ts';
import type { BootTools } from './tools.ts';

/** The facts and actions of the page. */
interface Shown {
  readonly look: () => StatusMoment;
  /** Another one once another config runs. */
  readonly tap: () => EventTap | null;
  readonly retry: NonNullable<StatusSettings['retry']>;
  /** The running config; it changes with a reload. */
  readonly config: () => Config;
}

/** Opens it. Throws an ExportError where its address cannot be listened on. */
export async function openPage(
  { look, tap: tapNow, retry, config }: Shown,
  { clock, log, http }: Pick<BootTools, 'clock' | 'log' | 'http'>,
  { lost, instance }: Pick<OwnLog, 'lost' | 'instance'>,
): Promise<StatusServer | null> {
  const { status } = config();
  if (status === null) return null;
  const { serveStatus } = await import('../watch/status-server.ts');
  const first = tapNow();
  const tap = first && {
    get forms() {
      return (tapNow() ?? first).forms;
    },
    open: (wish: TailWish) => (tapNow() ?? first).open(wish),
  };
  const telemetry = status.telemetry && { ...status.telemetry, http, instance };
  const all = (): StatusMoment => ({ ...look(), logLinesLost: lost() });
  const cluster = clusterSight(config, clock);
  return await serveStatus({ ...status, look: all, tap, cluster, telemetry, retry, clock, log });
}

// The status page of a run, if its config has one. A run whose page cannot listen does not start.

import { join } from 'node:path';
import type { Config } from '../config/index.ts';
import { asExportError, type Clock } from '../contracts/index.ts';
import type { ShardShare } from '../watch/index.ts';
import {
  type ClusterSight,
  type EventTap,
  idleMoment,
  type StatusMoment,
  type StatusServer,
  type StatusSettings,
  type TailWish,
} from '../watch/running-status.ts';
import type { ClusterLook } from './cluster-look.ts';
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

// The status page of a standby process: shows the standby state, answers the probes as ready, and closes when the
// process becomes active and opens its own page at the same address.

/** The page, which is not served before the process waits. */
export interface SparePage {
  readonly waits: () => void;
  /** The group of this process has answered a request of then; epoch milliseconds. */
  readonly answered: (at: number) => void;
  close(): Promise<void>;
}

const nothing: ShardShare = { owned: [], running: [], failing: [] };

/** Why a process of a state in Kafka has no work. */
export function standByText({ state: { kafka } }: Config, isDrained: boolean): string {
  if (isDrained) return 'it is drained: sluice cluster undrain lets it work again';
  return `another process has the state ${kafka?.prefix} in Kafka`;
}

/** The page for this config, if it has one. */
export function sparePage(
  config: Config,
  { clock, log }: Pick<BootTools, 'clock' | 'log'>,
  isDrained: () => boolean,
): SparePage {
  const {
    state: { kafka, maxBytes },
    status,
  } = config;
  let serving: Promise<StatusServer | null> = Promise.resolve(null);
  let answeredAt: number | null = null;
  const serve = async () => {
    if (status === null || kafka === null) return null;
    const { serveStatus } = await import('../watch/status-server.ts');
    const look = (): StatusMoment => ({
      ...idleMoment(maxBytes, standByText(config, isDrained())),
      cluster: { share: nothing, takeovers: 0, answeredAt, commitMs: null },
    });
    const cluster = clusterSight(() => config, clock);
    return await serveStatus({ ...status, telemetry: null, look, cluster, clock, log });
  };
  return {
    answered(at) {
      answeredAt = at;
    },
    waits() {
      serving = serve().catch((error) => {
        // It is tried again, and then decides, once the process works.
        log.warn('standby_page_failed', 'no status page while on standby', {
          error: asExportError(error, 'serving').message,
        });
        return null;
      });
    },
    async close() {
      await (await serving)?.close();
    },
  };
}

// The whole of a state in Kafka for a status page. Nothing is loaded before the first request.

/** Of the state of a config, which another one replaces after a reload; null: it is not in Kafka. */
function clusterSight(config: () => Config, clock: Clock): ClusterSight | null {
  const { kafka, dir } = config().state;
  if (kafka === null) return null;
  const scratch = join(dir, 'cluster-look');
  let opened: ClusterLook | null = null;
  return {
    async look() {
      const { ClusterLook } = await import('./cluster-look.ts');
      opened ??= new ClusterLook({ config, scratch, clock });
      return await opened.look();
    },
    close: () => opened?.close(),
  };
}

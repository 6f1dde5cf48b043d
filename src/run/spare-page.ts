// The status page of a standby process: shows the standby state, answers the probes as ready, and closes when the
// process becomes active and opens its own page at the same address.

import type { Config } from '../config/index.ts';
import { asExportError } from '../contracts/index.ts';
import type { ShardShare } from '../watch/index.ts';
import { idleMoment, type StatusMoment, type StatusServer } from '../watch/running-status.ts';
import { clusterSight } from './cluster-sight.ts';
import type { BootTools } from './tools.ts';

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

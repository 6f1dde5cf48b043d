// The status page of a process that stands by: it says so, answers the probes as ready, and goes when
// the process works and has a page of its own there.

import type { Config } from '../config/config.ts';
import { asExportError } from '../contracts/errors.ts';
import { idleMoment } from '../watch/live.ts';
import type { StatusServer } from '../watch/status-server.ts';
import { clusterSight } from './cluster-sight.ts';
import type { BootTools } from './tools.ts';

/** The page, which is not served before the process waits. */
export interface SparePage {
  readonly waits: () => void;
  close(): Promise<void>;
}

/** Of the page of this config, where it asks for one. */
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
  const serve = async () => {
    if (status === null || kafka === null) return null;
    const { serveStatus } = await import('../watch/status-server.ts');
    const waits = `another process has the state ${kafka.prefix} in Kafka`;
    const drained = 'it is drained: sluice cluster undrain lets it work again';
    const look = () => idleMoment(maxBytes, isDrained() ? drained : waits);
    const cluster = clusterSight(() => config, clock);
    return await serveStatus({ ...status, telemetry: null, look, cluster, clock, log });
  };
  return {
    waits() {
      serving = serve().catch((error) => {
        // It is tried again, and then decides, once the process works.
        log.warn('no status page meanwhile', { error: asExportError(error, 'serving').message });
        return null;
      });
    },
    async close() {
      await (await serving)?.close();
    },
  };
}

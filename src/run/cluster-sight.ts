// The whole of a state in Kafka for a status page. Nothing is loaded before the first request.

import { join } from 'node:path';
import type { Config } from '../config/index.ts';
import type { Clock } from '../contracts/index.ts';
import type { ClusterSight } from '../watch/running-status.ts';
import type { ClusterLook } from './cluster-look.ts';

/** Of the state of a config, which another one replaces after a reload; null: it is not in Kafka. */
export function clusterSight(config: () => Config, clock: Clock): ClusterSight | null {
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

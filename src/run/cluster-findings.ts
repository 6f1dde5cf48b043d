// The findings of `check --connect` about a state in Kafka: brokers and topics, other processes, and whether this config
// fits the state. Invariant: nothing is created or changed.

import type { Config } from '../config/index.ts';
import type { ExportError } from '../contracts/index.ts';
import { systemClock } from '../tools/index.ts';
import { refuseBeside } from './cluster.ts';
import { deploymentFinding } from './deployment.ts';
import { homesFault } from './homes.ts';

/** One finding. */
export interface StateFinding {
  readonly subject: string;
  /** Why a run would be refused; null: it would not. */
  readonly cause: ExportError | null;
  /** A run would work; the finding is only a note. */
  readonly isNote?: boolean | undefined;
}

/**
 * The findings, one after the other; none if the state is not in Kafka. Throws the reason for which a run would be
 * refused at once, such as `config_invalid`.
 */
export async function* clusterFindings(
  config: Config,
  withinMs: number,
): AsyncGenerator<StateFinding> {
  const { kafka } = config.state;
  if (kafka === null) return;
  // Its client takes long to load.
  const { inspectCluster } = await import('../cluster/kafka.ts');
  const clock = systemClock();
  yield* inspectCluster(kafka, clock, AbortSignal.timeout(withinMs));
  const found = await deploymentFinding(kafka, clock);
  if (found !== null) yield found;
  const moved = await homesFault(config, clock);
  if (moved !== null) yield { subject: 'sources and their shards', cause: moved };
  await refuseBeside(kafka, clock, { waits: true });
}

// Shared by the `sluice cluster` commands: a config with a state in Kafka.

import type { Config } from '../../config/index.ts';
import { UsageError } from '../../contracts/index.ts';

/** Throws a UsageError where the state is not in Kafka. */
export function kafkaOf({ file, state }: Config): NonNullable<Config['state']['kafka']> {
  if (state.kafka !== null) return state.kafka;
  throw new UsageError(
    `${file} has no state.kafka: its state is in ${state.dir}, of one process; docs/state-in-kafka.md says how it goes into Kafka`,
  );
}

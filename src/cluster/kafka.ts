// The second entry point of src/cluster: ownership and the logs of shards, with a Kafka client.

export { ControlLog } from './board.ts';
export { Control, type ControlCommand } from './control.ts';
export { StateCopy } from './copy.ts';
export { clusterError } from './failure.ts';
export { GroupMember, gainOnly } from './group-member.ts';
export { inspectCluster } from './inspect.ts';
export { LogClient } from './log/client.ts';
export { ShardLog } from './log/shard-log.ts';
export { streamsHeld } from './log/streams-held.ts';
export { ensureTopics, usedShards } from './log/topics.ts';
export type { Membership, Ownership } from './ownership.ts';
export { askForProcesses, type ClusterProcess, processesOf, processText } from './processes.ts';
export { OwnerQuery } from './queries.ts';

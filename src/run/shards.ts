// The third entry point of src/run: workers of a state in Kafka. Loads a Kafka client.

export { ClusterLook } from './cluster-look.ts';
export { hostShards } from './host-shards.ts';
export { keepShards } from './keep-shards.ts';

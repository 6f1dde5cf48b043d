// A queue model of sluice on Kafka: pages arrive from streams, each is processed by the one process that has its shard,
// and the cost of a page is spent on some core. Its parameters are the costs measured by cluster.ts. Invariant: nothing
// in the model is fitted to its predictions.

/** What an event costs, CPU microseconds, by who spends them; and what a shard takes and does. */
export interface Costs {
  readonly sluiceUs: number;
  readonly brokerUs: number;
  readonly upstreamUs: number;
  /** Resident memory of a shard's process at work, bytes. */
  readonly shardBytes: number;
  /** Most that one shard does, events a second: one process reads, holds and sends, in steps of which some wait for others. */
  readonly shardEventsPerS: number;
}

/** Events a second that so many shards with work come to, on cores that brokers and upstream share. */
export function throughput(costs: Costs, shards: number, cores: number): number {
  const eachUs = costs.sluiceUs + costs.brokerUs + costs.upstreamUs;
  return Math.min((cores * 1e6) / eachUs, shards * costs.shardEventsPerS);
}

/** Seconds from a process's end until its shards are worked on again. */
export function takeoverS(sessionS: number, beginS: number): { least: number; most: number } {
  // A heartbeat is sent five times a session; the last one is at most a fifth of a session old when the process ends.
  return { least: sessionS * 0.8 + beginS, most: sessionS + beginS };
}

/** What is to be carried. */
export interface Load {
  readonly streams: number;
  readonly eventsPerS: number;
  /** Of an event in Kafka, in its page and as delivered. */
  readonly eventBytes: number;
  /** How often each stream is polled. */
  readonly everyS: number;
  /** CPU of a poll that finds nothing, and memory of a stream, beside what its events cost. */
  readonly pollUs: number;
  readonly streamBytes: number;
}

/** Cores are filled so far only: queues grow without bound as use nears all of a core. */
const useMax = 0.6;
/** So many brokers hold each byte. */
const replicas = 3;

/** What it takes: a shard is a process, so shards are what is counted. */
export function plan(costs: Costs, load: Load) {
  const pollsUs = (load.streams / load.everyS) * load.pollUs;
  const sluiceCores = (load.eventsPerS * costs.sluiceUs + pollsUs) / 1e6 / useMax;
  const shards = Math.max(
    Math.ceil(load.eventsPerS / (costs.shardEventsPerS * useMax)),
    Math.ceil(sluiceCores),
  );
  const brokerCores = (load.eventsPerS * costs.brokerUs * replicas) / 1e6 / useMax;
  return {
    shards,
    'partitions of pages': shards,
    'cores of sluice': Math.ceil(sluiceCores),
    'memory of sluice GB': Math.ceil(
      (shards * costs.shardBytes + load.streams * load.streamBytes) / 1e9,
    ),
    'cores of brokers': Math.ceil(brokerCores),
    'MB/s into Kafka, each replica': Math.ceil((load.eventsPerS * load.eventBytes) / 1e6),
    'use of a core at that': useMax,
    'mean wait for a core, in pages': Number((useMax / (1 - useMax)).toFixed(1)),
  };
}

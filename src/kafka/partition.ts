// The partition of a record. Keyed records go to the partition that Kafka's Java client would choose, so sluice can
// share a topic with other producers and order per key holds. Records without a key go to one partition per request,
// the next one with each request, which compresses best.

import { KafkaFailure } from './failure.ts';
import type { KafkaRecord } from './port.ts';

const seed = 0x9747b28c;
const multiplier = 0x5bd1e995;

/** murmur2 as in `org.apache.kafka.common.utils.Utils.murmur2`: a signed 32-bit number. */
export function murmur2(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const tail = bytes.length & ~3;
  let hash = seed ^ bytes.length;
  for (let i = 0; i < tail; i += 4) {
    let word = Math.imul(view.getInt32(i, true), multiplier);
    word = Math.imul(word ^ (word >>> 24), multiplier);
    hash = Math.imul(hash, multiplier) ^ word;
  }
  if (tail < bytes.length) {
    for (let i = bytes.length - 1; i >= tail; i--) hash ^= view.getUint8(i) << (8 * (i - tail));
    hash = Math.imul(hash, multiplier);
  }
  hash = Math.imul(hash ^ (hash >>> 13), multiplier);
  return hash ^ (hash >>> 15);
}

/** The partitions of a topic: their number, and the ones with a leader. */
export interface TopicPartitions {
  readonly count: number;
  readonly led: readonly number[];
}

/** The partition for a key, or for the `turn`-th request without keys. */
export function choosePartition(
  key: Uint8Array | null,
  turn: number,
  partitions: TopicPartitions,
): number {
  const { count, led } = partitions;
  if (key !== null) return (murmur2(key) & 0x7fffffff) % count;
  return led.length > 0 ? (led[turn % led.length] ?? 0) : turn % count;
}

/** The offset after these records in a partition where the first one has offset `base`. */
export function offsetAfter(
  base: bigint,
  partition: number,
  records: readonly KafkaRecord[],
): bigint {
  return base + BigInt(records.filter((record) => record.partition === partition).length);
}

/** Throws if the response lacks a record's partition: clients treat that as success. */
export function checkAnswers(records: readonly KafkaRecord[], answered: Iterable<number>): void {
  const partitions = new Set(answered);
  const missing = records.find(
    ({ partition }) => partition === undefined || !partitions.has(partition),
  );
  if (missing === undefined) return;
  const message = `partition ${missing.partition} did not answer; it moved to another broker meanwhile`;
  throw new KafkaFailure('passing', message, { answered: true });
}

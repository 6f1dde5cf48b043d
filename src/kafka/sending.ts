// Sends records to the leaders of their partitions, with either client, one request per leader at a time. Invariants: a
// batch is encoded once, so a repeat has the same bytes and sequence numbers, by which the broker recognises it;
// nothing is decided or repeated before each request was answered or its connection is lost; a client does not repeat
// requests with records itself. Records that cannot be sent so are given up here: the sink creates another producer,
// and in a transaction that one aborts the sent records.

import { setTimeout as delay } from 'node:timers/promises';
import type { Compression } from '../contracts/config.ts';
import type { SendTurn } from '../contracts/index.ts';
import { failureOfAll, KafkaFailure } from './failure.ts';
import type { KafkaRecord } from './port.ts';
import { type PartitionBatch, recordBatch } from './record-batch.ts';

/** One of a topic's partitions. */
export interface Led {
  readonly partition: number;
  /** The leader's node id; -1: there is no leader at the moment. */
  readonly leader: number;
}

/** The client's requests. `produce` sends one request, once; the others may repeat theirs. */
export interface KafkaRequests {
  /** All of the topic's partitions, at least one. */
  partitions(): Promise<readonly Led[]>;
  /** Adds partitions to the open transaction; does nothing without transactions. */
  join(partitions: readonly number[]): Promise<void>;
  /** The producer id; known once `join` has resolved. */
  producer(): Promise<{ readonly producerId: bigint; readonly producerEpoch: number }>;
  /** Resolves with the first offset in each partition; rejects if one of them is rejected. */
  produce(leader: number, batches: readonly PartitionBatch[]): Promise<ReadonlyMap<number, bigint>>;
  /** Refreshes the metadata after a failure. Does not reject. */
  refresh(error: unknown): Promise<void>;
  failureOf(error: unknown): KafkaFailure;
}

/** How batches are encoded. */
export interface SendingSettings {
  readonly topic: string;
  readonly compression: Compression;
  /** Null: an idempotent producer without transactions. */
  readonly transactionalId: string | null;
  /** Whether this process may send now; undefined: always. */
  readonly sendTurn?: SendTurn | undefined;
  readonly crc32c: (bytes: Uint8Array) => number;
}

// The pauses add up to about two seconds: time for a leader to move. The engine has the longer waits.
const pauseMsMin = 2;
const pauseMsMax = 1_000;
const repeatsMax = 10;
/** Sequence numbers have 31 bits and wrap around. */
const sequenceCount = 2 ** 31;

/** Sends for one producer, until its first failure. */
export class PartitionSender {
  readonly #requests: KafkaRequests;
  readonly #settings: SendingSettings;
  /** The next sequence number, by partition. */
  readonly #sequences = new Map<number, number>();
  /** Counts calls: records without a key go to another partition with each call. */
  #turn = 0;

  constructor(requests: KafkaRequests, settings: SendingSettings) {
    this.#requests = requests;
    this.#settings = settings;
  }

  /**
   * Resolves when all in-sync replicas have every record; adds the offset after the last record of each partition to
   * `written`. Rejects with a KafkaFailure, whose `answered` is false if a request may still arrive.
   */
  async send(records: readonly KafkaRecord[], written = new Map<number, bigint>()): Promise<void> {
    const batches = await this.#batchesOf(records).catch((error) => {
      throw this.#requests.failureOf(error);
    });
    const bases = await this.#accepted(batches);
    checkAnswers(records, bases.keys());
    for (const [partition, base] of bases)
      written.set(partition, offsetAfter(base, partition, records));
  }

  /** Encodes the batches. In a transaction, their partitions are added to the transaction. */
  async #batchesOf(records: readonly KafkaRecord[]): Promise<readonly PartitionBatch[]> {
    const found = await this.#requests.partitions();
    const led = found.filter(({ leader }) => leader >= 0).map(({ partition }) => partition);
    this.#turn += 1;
    for (const record of records) {
      record.partition ??= choosePartition(record.key, this.#turn, { count: found.length, led });
    }
    const grouped = Map.groupBy(records, ({ partition }) => partition ?? 0);
    // In one request: the broker rejects this until it has finished the last commit.
    await this.#requests.join([...grouped.keys()]);
    const { topic, ...settings } = this.#settings;
    const writer = { ...settings, ...(await this.#requests.producer()) };
    return await Promise.all(
      Array.from(grouped, async ([partition, some]) => {
        const firstSequence = this.#sequences.get(partition) ?? 0;
        this.#sequences.set(partition, (firstSequence + some.length) % sequenceCount);
        const batch = await recordBatch({ records: some, firstSequence }, writer);
        return { topic, partition, batch };
      }),
    );
  }

  /** Resolves with the first offset in each partition once all have accepted their batch. */
  async #accepted(batches: readonly PartitionBatch[]): Promise<ReadonlyMap<number, bigint>> {
    const bases = new Map<number, bigint>();
    for (let repeats = 0; ; repeats += 1) {
      const left = batches.filter(({ partition }) => !bases.has(partition));
      const errors = await this.#sendOnce(left, bases);
      const [first] = errors;
      if (first === undefined) return bases;
      const failure = failureOfAll(errors.map((error) => this.#requests.failureOf(error)));
      const passes = failure.kind === 'passing' || failure.kind === 'topic_missing';
      if (!passes || repeats === repeatsMax) throw failure;
      await delay(Math.min(pauseMsMin * 2 ** repeats, pauseMsMax));
      await this.#requests.refresh(first);
    }
  }

  /** One request to each leader, in parallel; resolves with the errors once all have ended. */
  async #sendOnce(
    batches: readonly PartitionBatch[],
    bases: Map<number, bigint>,
  ): Promise<readonly unknown[]> {
    const leaders = await this.#leadersOf(batches).catch((error: unknown) => error);
    if (!(leaders instanceof Map)) return [leaders];
    const ended = await Promise.allSettled(
      Array.from(
        leaders as ReadonlyMap<number, readonly PartitionBatch[]>,
        async ([leader, some]) => {
          await this.#mayBeSent();
          const found = await this.#requests.produce(leader, some);
          for (const [partition, base] of found) bases.set(partition, base);
        },
      ),
    );
    return ended.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  }

  // Metadata and compression come between the start of a batch and here. A process that was paused meanwhile may have a
  // successor that sends the same records. In a transaction the successor fences this producer.
  async #mayBeSent(): Promise<void> {
    const { transactionalId, sendTurn } = this.#settings;
    if (transactionalId !== null || sendTurn === undefined || sendTurn.isGiven()) return;
    await sendTurn.wait(new AbortController().signal);
  }

  async #leadersOf(
    batches: readonly PartitionBatch[],
  ): Promise<ReadonlyMap<number, readonly PartitionBatch[]>> {
    const found = await this.#requests.partitions();
    const leaders = new Map(found.map(({ partition, leader }) => [partition, leader]));
    return Map.groupBy(batches, ({ topic, partition }) => {
      const leader = leaders.get(partition) ?? -1;
      if (leader >= 0) return leader;
      const message = `no broker leads partition ${partition} of ${topic}`;
      throw new KafkaFailure('passing', message, { answered: true });
    });
  }
}

// The partition of a record. Keyed records go to the partition that Kafka's Java client would choose, so sluice can
// share a topic with other producers and order per key holds. Records without a key go to one partition per request,
// the next one with each request, which compresses best.

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
interface TopicPartitions {
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
function offsetAfter(base: bigint, partition: number, records: readonly KafkaRecord[]): bigint {
  return base + BigInt(records.filter((record) => record.partition === partition).length);
}

/** Throws if the response lacks a record's partition: clients treat that as success. */
function checkAnswers(records: readonly KafkaRecord[], answered: Iterable<number>): void {
  const partitions = new Set(answered);
  const missing = records.find(
    ({ partition }) => partition === undefined || !partitions.has(partition),
  );
  if (missing === undefined) return;
  const message = `partition ${missing.partition} did not answer; it moved to another broker meanwhile`;
  throw new KafkaFailure('passing', message, { answered: true });
}

// Writes to the log of a shard, one transaction at a time, under the transactional id of the shard. A writer that begins
// with this id ends the open transaction of the earlier one, and fences it. Invariant: after any failure the producer is
// dropped, since the library forgets the epoch of a fenced producer, and its next transaction would fence its successor.

import { ProduceAcks } from '@platformatic/kafka';
import { KafkaFailure } from '../../kafka/index.ts';
import { Client, rejecting, type Transaction } from '../../kafka/log-client.ts';
import type { TopicPartition } from './client.ts';
import { connectionOf, type StateLogSettings } from './settings.ts';

/** A record to write. */
export interface NewRecord {
  readonly to: TopicPartition;
  readonly key: Buffer;
  /** Null deletes the key. */
  readonly value: Buffer | null;
}

/** The broker aborts a transaction that was not ended after so long. */
export const transactionMsMax = 30_000;
const retries = 12;
/**
 * After a commit the broker answers CONCURRENT_TRANSACTIONS until its markers are written, for a
 * few milliseconds: the pauses are 2 ms, doubled each time.
 */
const retryMs = (attempt: number) => Math.min(2 ** attempt, 200);
const metadataMsMax = 300_000;
/**
 * The library puts all records of one request for a partition into one batch, and by default a broker
 * accepts batches of at most 1 MiB.
 */
export const requestBytesMax = 900 * 1024;

/** A producer with one transactional id, from its first transaction to its first failure. */
export class TransactionalWriter {
  readonly #client: Client;
  #transaction: Transaction | null = null;

  constructor(settings: StateLogSettings, transactionalId: string) {
    const { clientId } = connectionOf(settings);
    this.#client = new Client({
      brokers: settings.brokers,
      connections: connectionOf(settings),
      producer: {
        ...{ clientId, transactionalId, retries, idempotent: true, autocreateTopics: false },
        retryDelay: (_client, _what, attempt) => retryMs(attempt),
        metadataMaxAge: metadataMsMax,
        // Both limits: waiting for replicas, and an open transaction.
        timeout: transactionMsMax,
        // Otherwise it would begin with the id 0, which the broker assigns to another producer.
        ...{ producerId: -1n, producerEpoch: -1 },
      },
    });
  }

  /** Fences the earlier writer with this id. When it resolves, the open transaction of that writer is ended. */
  async begin(): Promise<void> {
    this.#transaction ??= await rejecting(this.#client.beginTransaction());
  }

  /**
   * Writes all records, or none. Resolves after the commit, with the offset of the first record
   * in each partition, by `<topic>:<partition>`.
   */
  async write(records: readonly NewRecord[]): Promise<ReadonlyMap<string, bigint>> {
    await this.begin();
    const transaction = this.#transaction;
    if (transaction === null)
      throw new KafkaFailure('passing', 'no transaction', { answered: false });
    const firsts = new Map<string, bigint>();
    for (const some of requestsOf(records)) {
      const messages = some.map(({ to, key, value }) => ({
        ...to,
        key,
        // The protocol uses null for a deleted key, and the library writes it; its types do not know it.
        value: value as Buffer,
      }));
      const { offsets = [] } = await rejecting(
        transaction.send({ messages, compression: 'none', acks: ProduceAcks.ALL }),
      );
      for (const { topic, partition, offset } of offsets) {
        const key = `${topic}:${partition}`;
        if (!firsts.has(key)) firsts.set(key, offset);
      }
    }
    await rejecting(transaction.commit(), 'the outcome of the commit is not known');
    this.#transaction = null;
    return firsts;
  }

  /** Cuts all connections and leaves the transaction open, as a crash does. */
  drop(): void {
    this.#client.cut();
  }

  async close(): Promise<void> {
    await this.#client.disconnect();
  }
}

function* requestsOf(records: readonly NewRecord[]): Iterable<readonly NewRecord[]> {
  let some: NewRecord[] = [];
  let bytes = 0;
  for (const record of records) {
    const size = record.key.length + (record.value?.length ?? 0);
    if (some.length > 0 && bytes + size > requestBytesMax) {
      yield some;
      [some, bytes] = [[], 0];
    }
    some.push(record);
    bytes += size;
  }
  if (some.length > 0) yield some;
}

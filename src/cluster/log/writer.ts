// Writes to the log of a shard, a transaction at a time, under the shard's own transactional id:
// whoever begins with it ends what the one before has left open, and fences that one. What must
// stay true: after any failure the producer is dropped, since the library forgets the epoch of one
// that was fenced and the next transaction of the same object would fence its successor.

import { ProduceAcks } from '@platformatic/kafka';
import { KafkaFailure } from '../../kafka/index.ts';
import { Client, kafkaFailureOf, type Transaction } from '../../kafka/log-client.ts';
import type { TopicPartition } from './client.ts';
import { connectionOf, type StateLogSettings } from './settings.ts';

/** A record to be written. */
export interface NewRecord {
  readonly to: TopicPartition;
  readonly key: Buffer;
  /** Null: what the key names is gone. */
  readonly value: Buffer | null;
}

/** The broker ends a transaction that nobody has ended after so long. */
export const transactionMsMax = 30_000;
const retries = 12;
/**
 * After a commit the broker answers CONCURRENT_TRANSACTIONS until its markers are written, for a
 * few milliseconds: from 2 ms, doubled.
 */
const retryMs = (attempt: number) => Math.min(2 ** attempt, 200);
const metadataMsMax = 300_000;
/**
 * The library puts all records that one request has for a partition into one batch, and a broker
 * takes 1 MiB of that unless it is told otherwise.
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
        // Both: how long to wait for replicas, and for a transaction's end.
        timeout: transactionMsMax,
        // Else it would begin with an id of 0, which the broker takes for somebody else's.
        ...{ producerId: -1n, producerEpoch: -1 },
      },
    });
  }

  /** Fences whoever had the id before; what that one has left open is ended when this resolves. */
  async begin(): Promise<void> {
    this.#transaction ??= await reported(this.#client.beginTransaction());
  }

  /**
   * Writes all of it, or nothing. Resolves when it is committed, to the offset of the first record
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
        // A null is what the protocol has for it, and the library writes it; its types do not know.
        value: value as Buffer,
      }));
      const { offsets = [] } = await reported(
        transaction.send({ messages, compression: 'none', acks: ProduceAcks.ALL }),
      );
      for (const { topic, partition, offset } of offsets) {
        const key = `${topic}:${partition}`;
        if (!firsts.has(key)) firsts.set(key, offset);
      }
    }
    await reported(transaction.commit(), 'the outcome of the commit is not known');
    this.#transaction = null;
    return firsts;
  }

  /** Cuts all connections; nothing is ended, as after a crash. */
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

async function reported<T>(promise: Promise<T>, what?: string): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw kafkaFailureOf(error, what);
  }
}

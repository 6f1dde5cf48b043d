// The kafkajs requests for sending.ts. Kafkajs's own producer is not used: as soon as one leader rejects a request, it
// repeats requests that are still in flight to others, with new sequence numbers.

import { setTimeout as delay } from 'node:timers/promises';
import { KafkaFailure } from './failure.ts';
import { kafkajsFailure } from './kafkajs-errors.ts';
import type { Cluster, TransactionManager } from './kafkajs-inner.ts';
import type { PartitionBatch } from './record-batch.ts';
import type { KafkaRequests, Led } from './sending.ts';

// A broker answers CONCURRENT_TRANSACTIONS for some milliseconds after each commit. The pauses add up to about two
// seconds.
const pauseMsMin = 5;
const pauseMsMax = 1_000;
const repeatsMax = 10;

/** Dependencies of the requests. */
export interface KafkajsRequestSettings {
  readonly cluster: Cluster;
  readonly manager: TransactionManager;
  readonly topic: string;
  /** How long the broker may wait for replicas, milliseconds. */
  readonly timeoutMs: number;
  /** Null: an idempotent producer without transactions. */
  readonly transactionalId: string | null;
}

/** The used parts of a kafkajs error. */
interface ClientError extends Error {
  readonly retriable?: boolean;
  readonly type?: string;
  readonly host?: string;
  readonly port?: number;
}

/** Requests through kafkajs. */
export class KafkajsRequests implements KafkaRequests {
  readonly #settings: KafkajsRequestSettings;
  readonly failureOf = kafkajsFailure;

  constructor(settings: KafkajsRequestSettings) {
    this.#settings = settings;
  }

  async partitions(): Promise<readonly Led[]> {
    const { cluster, topic } = this.#settings;
    return await this.#repeated(async () => {
      await cluster.addMultipleTargetTopics([topic]);
      await cluster.refreshMetadataIfNecessary();
      const found = cluster.findTopicPartitionMetadata(topic);
      if (found.length > 0) {
        return found.map(({ partitionId, leader }) => ({ partition: partitionId, leader }));
      }
      const message = `the brokers name no partition of ${topic}`;
      const failure = new KafkaFailure('passing', message, { answered: true });
      throw Object.assign(failure, { retriable: true });
    });
  }

  async join(partitions: readonly number[]): Promise<void> {
    const { manager, topic, transactionalId } = this.#settings;
    if (transactionalId === null) return;
    const added = [{ topic, partitions: partitions.map((partition) => ({ partition })) }];
    await this.#repeated(() => manager.addPartitionsToTransaction(added));
  }

  async producer() {
    const { manager } = this.#settings;
    return {
      producerId: BigInt(manager.getProducerId().toString()),
      producerEpoch: manager.getProducerEpoch(),
    };
  }

  async produce(
    leader: number,
    batches: readonly PartitionBatch[],
  ): Promise<ReadonlyMap<number, bigint>> {
    const { cluster, topic, timeoutMs, transactionalId } = this.#settings;
    const broker = await cluster.findBroker({ nodeId: leader });
    const { topics } = await broker.produce({
      ...{ acks: -1, timeout: timeoutMs, transactionalId },
      topicData: [{ topic, partitions: batches }],
    });
    return new Map(
      topics.flatMap(({ partitions }) =>
        partitions.map(({ partition, baseOffset }) => [partition, BigInt(baseOffset)] as const),
      ),
    );
  }

  async refresh(error: unknown): Promise<void> {
    const { cluster } = this.#settings;
    const { name, host, port } = error as ClientError;
    if (name === 'KafkaJSConnectionClosedError' && host !== undefined && port !== undefined) {
      cluster.removeBroker({ host, port });
    }
    try {
      if (!cluster.isConnected()) await cluster.connect();
      await cluster.refreshMetadata();
    } catch {
      // A failure shows at the next request.
    }
  }

  /** Repeats a request without records after a pause, while its error is temporary. */
  async #repeated<T>(request: () => Promise<T>): Promise<T> {
    for (let repeats = 0; ; repeats += 1) {
      try {
        return await request();
      } catch (error) {
        const { retriable, type } = error as ClientError;
        if (retriable !== true || repeats === repeatsMax) throw error;
        await delay(Math.min(pauseMsMin * 2 ** repeats, pauseMsMax));
        if (type !== 'CONCURRENT_TRANSACTIONS') await this.refresh(error);
      }
    }
  }
}

// The kafkajs requests for sending.ts, and the unexported parts of kafkajs that they need. Kafkajs's own producer is not
// used: as soon as one leader rejects a request, it repeats requests that are still in flight to others, with new
// sequence numbers.

import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import type { Kafka, Logger } from 'kafkajs';
import { KafkaFailure, kafkajsFailure } from './failure.ts';
import type { PartitionBatch } from './record-batch.ts';
import type { KafkaRequests, Led } from './sending.ts';

// A broker answers CONCURRENT_TRANSACTIONS for some milliseconds after each commit. The pauses add up to about two
// seconds.
const pauseMsMin = 5;
const pauseMsMax = 1_000;
const repeatsMax = 10;

/** Dependencies of the requests. */
interface KafkajsRequestSettings {
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

// Unexported parts of kafkajs 2.2.4 with which the driver sends: a cluster's connections and the transaction manager,
// typed as far as they are used.

const load = createRequire(import.meta.url);
const metadataMsMax = 300_000;

/** A topic's partition, as in the metadata. */
interface PartitionMetadata {
  readonly partitionId: number;
  /** Node id; -1: the partition has no leader at the moment. */
  readonly leader: number;
}

/** A batch in a produce request. */
interface ProducePartition {
  readonly partition: number;
  readonly batch: Buffer;
}

/** A broker's response to a produce request; errors in it are thrown instead. */
interface ProduceResponse {
  readonly topics: readonly {
    readonly partitions: readonly { readonly partition: number; readonly baseOffset: string }[];
  }[];
}

/** One broker's connection. */
interface Broker {
  /** Sends one request, once. */
  produce(request: {
    readonly acks: -1;
    /** Milliseconds. */
    readonly timeout: number;
    readonly transactionalId: string | null;
    readonly topicData: readonly {
      readonly topic: string;
      readonly partitions: readonly ProducePartition[];
    }[];
  }): Promise<ProduceResponse>;
}

/** The coordinator of a group: its private method that sends one request, under a symbol (kafkajs-position.ts). */
export interface GroupCoordinator {
  readonly [hidden: symbol]: ((request: object) => Promise<unknown>) | undefined;
}

/** A cluster's metadata and connections. */
export interface Cluster {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  isConnected(): boolean;
  addMultipleTargetTopics(topics: readonly string[]): Promise<void>;
  refreshMetadata(): Promise<void>;
  refreshMetadataIfNecessary(): Promise<void>;
  findTopicPartitionMetadata(topic: string): readonly PartitionMetadata[];
  findBroker(which: { readonly nodeId: number }): Promise<Broker>;
  findGroupCoordinator(of: { readonly groupId: string }): Promise<GroupCoordinator>;
  removeBroker(which: { readonly host: string; readonly port: number }): void;
}

/** The producer id and transactions of one producer. */
export interface TransactionManager {
  initProducerId(): Promise<void>;
  /** A 64-bit number, of a class of kafkajs. */
  getProducerId(): { toString(): string };
  getProducerEpoch(): number;
  beginTransaction(): void;
  /** Sends one request for the partitions that are not in the transaction yet. */
  addPartitionsToTransaction(
    topics: readonly {
      readonly topic: string;
      readonly partitions: readonly { readonly partition: number }[];
    }[],
  ): Promise<void>;
  sendOffsets(offsets: {
    readonly consumerGroupId: string;
    readonly topics: readonly {
      readonly topic: string;
      readonly partitions: readonly {
        readonly partition: number;
        readonly offset: string;
        readonly metadata: string;
      }[];
    }[];
  }): Promise<void>;
  commit(): Promise<void>;
  abort(): Promise<void>;
}

type MakeCluster = (options: {
  readonly metadataMaxAge: number;
  readonly allowAutoTopicCreation: boolean;
  readonly maxInFlightRequests: number;
}) => Cluster;

type MakeManager = (options: {
  readonly logger: Logger;
  readonly cluster: Cluster;
  readonly transactional: boolean;
  readonly transactionalId: string | undefined;
  readonly transactionTimeout: number | undefined;
}) => TransactionManager;

/** Creates the connections of one client, one request at a time on each. */
export function clusterOf(kafka: Kafka): Cluster {
  const hidden = Object.getOwnPropertySymbols(kafka).find(
    ({ description }) => description === 'private:Kafka:createCluster',
  );
  const make = (kafka as unknown as Record<symbol, MakeCluster | undefined>)[hidden ?? Symbol()];
  if (make === undefined) throw new Error('this kafkajs makes its clusters in another way');
  return make({
    metadataMaxAge: metadataMsMax,
    allowAutoTopicCreation: true,
    maxInFlightRequests: 1,
  });
}

/** Creates a manager; without transactions, for an idempotent producer. */
export function managerOf(
  kafka: Kafka,
  cluster: Cluster,
  transactions: { readonly id: string; readonly timeoutMs: number } | undefined,
): TransactionManager {
  const make = load('kafkajs/src/producer/eosManager') as MakeManager;
  return make({
    ...{ logger: kafka.logger(), cluster, transactional: transactions !== undefined },
    ...{ transactionalId: transactions?.id, transactionTimeout: transactions?.timeoutMs },
  });
}

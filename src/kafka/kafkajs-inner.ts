// Unexported parts of kafkajs 2.2.4 with which the driver sends: a cluster's connections and the transaction manager,
// typed as far as they are used. Kafkajs's own producer is not used: it repeats requests that are still in flight, with
// new sequence numbers (kafkajs-requests.ts).

import { createRequire } from 'node:module';
import type { Kafka, Logger } from 'kafkajs';

const load = createRequire(import.meta.url);
const metadataMsMax = 300_000;

/** A topic's partition, as in the metadata. */
export interface PartitionMetadata {
  readonly partitionId: number;
  /** Node id; -1: the partition has no leader at the moment. */
  readonly leader: number;
}

/** A batch in a produce request. */
export interface ProducePartition {
  readonly partition: number;
  readonly batch: Buffer;
}

/** A broker's response to a produce request; errors in it are thrown instead. */
export interface ProduceResponse {
  readonly topics: readonly {
    readonly partitions: readonly { readonly partition: number; readonly baseOffset: string }[];
  }[];
}

/** One broker's connection. */
export interface Broker {
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

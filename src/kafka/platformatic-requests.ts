// The @platformatic/kafka requests for sending.ts. Versions are fixed: all brokers that the library supports (3.5 and
// newer) know them.

import { createAPI, ProduceAcks, produceV8, Writer } from '@platformatic/kafka';
import { KafkaFailure } from './failure.ts';
import type { Client } from './platformatic-client.ts';
import { kafkaFailureOf } from './platformatic-errors.ts';
import { type PartitionBatch, requestOfBatches } from './record-batch.ts';
import type { KafkaRequests, Led } from './sending.ts';

type BatchSettings = Omit<Parameters<typeof requestOfBatches>[1], 'acks'>;
type ProduceAsked = [batches: readonly PartitionBatch[], settings: BatchSettings];

const produce = createAPI<ProduceAsked, produceV8.ProduceResponse>(
  ...([0, 8] as const),
  (batches, settings) =>
    Writer.create().append(requestOfBatches(batches, { ...settings, acks: ProduceAcks.ALL })),
  ...([produceV8.parseResponse, false, false] as const),
);

/** Dependencies of the requests. */
export interface PlatformaticRequestSettings {
  readonly client: Client;
  readonly topic: string;
  /** How long the broker may wait for replicas, milliseconds. */
  readonly timeoutMs: number;
  /** Null: an idempotent producer without transactions. */
  readonly transactionalId: string | null;
}

/** Requests through @platformatic/kafka. */
export class PlatformaticRequests implements KafkaRequests {
  readonly #settings: PlatformaticRequestSettings;
  readonly failureOf = kafkaFailureOf;

  constructor(settings: PlatformaticRequestSettings) {
    this.#settings = settings;
  }

  async partitions(): Promise<readonly Led[]> {
    const { topic, client } = this.#settings;
    const { topics } = await client.metadata({ topics: [topic] });
    const found = topics.get(topic)?.partitions ?? [];
    if (found.length > 0) {
      return Array.from(found, (one, partition) => ({ partition, leader: one?.leader ?? -1 }));
    }
    const message = `the brokers name no partition of ${topic}`;
    throw new KafkaFailure('passing', message, { answered: true });
  }

  async join(partitions: readonly number[]): Promise<void> {
    const { client, topic } = this.#settings;
    await client.joinPartitions(topic, partitions);
  }

  async producer() {
    return await this.#settings.client.identity();
  }

  async produce(
    leader: number,
    batches: readonly PartitionBatch[],
  ): Promise<ReadonlyMap<number, bigint>> {
    const { client, timeoutMs, transactionalId } = this.#settings;
    const connection = await client.connectionTo(leader);
    const { responses } = await produce.async(connection, batches, { timeoutMs, transactionalId });
    return new Map(
      responses.flatMap(({ partitionResponses }) =>
        partitionResponses.map(({ index, baseOffset }) => [index, baseOffset] as const),
      ),
    );
  }

  async refresh(): Promise<void> {
    const { client, topic } = this.#settings;
    await client.metadata({ topics: [topic], forceUpdate: true }).catch(() => undefined);
  }
}

// The driver for @platformatic/kafka 2.12.1. Only this file and the files named platformatic-… use the library; they
// are loaded when a Kafka sink with `driver: platformatic` opens. Workarounds: the library would begin a transaction
// with producer id 0, which the broker assigns to another producer; a failed transaction stays open in it, so one
// failure ends the producer (port.ts); it repeats a leader's requests by itself (sending.ts sends instead).

import { crc32c, createAPI, ProduceAcks, produceV8, Writer } from '@platformatic/kafka';
import { invariant } from '../contracts/index.ts';
import { KafkaFailure, kafkaFailureOf, rejecting } from './failure.ts';
import { Client, type Transaction } from './platformatic-client.ts';
import type {
  CommittedPosition,
  KafkaDriver,
  KafkaOptions,
  KafkaProducer,
  KafkaRecord,
  WrittenOffsets,
} from './port.ts';
import { type PartitionBatch, requestOfBatches } from './record-batch.ts';
import { readableSasl } from './sasl.ts';
import { type KafkaRequests, type Led, PartitionSender } from './sending.ts';

const connectTimeoutMsMax = 10_000;
const retries = 7;
const metadataMsMax = 300_000;

/** Creates producers of @platformatic/kafka. */
export const platformaticDriver: KafkaDriver = (options) => new PlatformaticProducer(options);

class PlatformaticProducer implements KafkaProducer {
  readonly #options: KafkaOptions;
  readonly #client: Client;
  readonly #sending: PartitionSender;
  /** Of other topics than the options'. Each keeps its sequence numbers as long as the producer lives. */
  readonly #sendings = new Map<string, PartitionSender>();
  #transaction: Transaction | null = null;
  #hasBegun = false;
  #hasToken = false;

  constructor(options: KafkaOptions) {
    this.#options = options;
    this.#client = clientOf(options);
    this.#sending = this.#senderOf(options.topic);
  }

  #senderOf(topic: string): PartitionSender {
    const { compression, timeoutMs, transactions, sendTurn } = this.#options;
    const transactionalId = transactions?.id ?? null;
    return new PartitionSender(
      new PlatformaticRequests({ client: this.#client, topic, timeoutMs, transactionalId }),
      { topic, compression, transactionalId, sendTurn, crc32c },
    );
  }

  #sendingTo(topic: string): PartitionSender {
    if (topic === this.#options.topic) return this.#sending;
    return this.#sendings.getOrInsertComputed(topic, () => this.#senderOf(topic));
  }

  async produce(records: readonly KafkaRecord[], topic = this.#options.topic): Promise<void> {
    await this.#identify();
    await this.#sendingTo(topic).send(records);
  }

  async transact(
    requests: readonly (readonly KafkaRecord[])[],
    place: CommittedPosition,
  ): Promise<WrittenOffsets> {
    const { transaction, written } = await this.#sendInTransaction(requests, place);
    await rejecting(transaction.commit(), 'the outcome of the commit is not known');
    this.#transaction = null;
    return written;
  }

  async tryOut(requests: readonly (readonly KafkaRecord[])[]): Promise<void> {
    const { transaction } = await this.#sendInTransaction(requests, null);
    await rejecting(transaction.abort());
    this.#transaction = null;
  }

  /** When it resolves, the transaction is open. Without `place`, no position is committed. */
  async #sendInTransaction(
    requests: readonly (readonly KafkaRecord[])[],
    place: CommittedPosition | null,
  ): Promise<{ readonly transaction: Transaction; readonly written: WrittenOffsets }> {
    const transaction = await this.#begin();
    const written = new Map<number, bigint>();
    try {
      for (const records of requests) await this.#sending.send(records, written);
      if (place !== null) await this.#client.commitPosition(this.#place, place);
      return { transaction, written };
    } catch (error) {
      const failure = kafkaFailureOf(error);
      // Without an abort, readers wait until the next producer begins; the abort may fail. If a request may still
      // arrive, only the next producer ends the transaction: its new epoch rejects the late request.
      if (failure.answered && failure.kind !== 'fenced') await transaction.abort().catch(() => {});
      throw failure;
    }
  }

  async committed(): Promise<CommittedPosition | null> {
    await this.#begin();
    return await rejecting(this.#client.fetchPosition(this.#place));
  }

  async checkTopic(topic: string | null = this.#options.topic): Promise<void> {
    await this.#identify();
    await rejecting(
      this.#client.metadata({
        topics: topic === null ? [] : [topic],
        autocreateTopics: false,
        retries: 0,
      }),
    );
  }

  async close(): Promise<void> {
    await this.#client.disconnect();
  }

  destroy(): void {
    this.#client.cut();
  }

  get #place() {
    const { topic, transactions } = this.#options;
    invariant(transactions !== undefined, 'the producer has transactions');
    return { topic, group: transactions.group };
  }

  // Later tokens are for new connections and reauthentication, which request them.
  async #identify(): Promise<void> {
    const { sasl } = this.#options;
    if (this.#hasToken) return;
    await readableSasl(sasl);
    this.#hasToken = sasl?.mechanism === 'oauthbearer';
  }

  // The first call fetches the producer id, which ends transactions that an older producer left open.
  async #begin(): Promise<Transaction> {
    await this.#identify();
    const { transactions } = this.#options;
    if (!this.#hasBegun) await transactions?.confirm?.();
    this.#transaction ??= await rejecting(this.#client.beginTransaction());
    if (!this.#hasBegun) await transactions?.confirm?.();
    this.#hasBegun = true;
    return this.#transaction;
  }
}

function clientOf({ brokers, clientId, timeoutMs, sasl, tls, transactions }: KafkaOptions): Client {
  return new Client({
    brokers,
    connections: {
      clientId,
      tls,
      sasl,
      connection: {
        connectTimeout: Math.min(timeoutMs, connectTimeoutMsMax),
        requestTimeout: timeoutMs,
      },
    },
    producer: {
      clientId,
      retries,
      // From 20 ms: a broker answers CONCURRENT_TRANSACTIONS for a while after each commit.
      retryDelay: (_client, _what, attempt) => Math.min(10 * 2 ** attempt, 1_000),
      metadataMaxAge: metadataMsMax,
      autocreateTopics: true,
      idempotent: true,
      // Both are for the broker: how long to wait for replicas, and for a transaction's end.
      timeout: transactions?.timeoutMs ?? timeoutMs,
      producerId: -1n,
      producerEpoch: -1,
      ...(transactions === undefined ? {} : { transactionalId: transactions.id }),
    },
  });
}

// The @platformatic/kafka requests for sending.ts. Versions are fixed: all brokers that the library supports (3.5 and
// newer) know them.

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

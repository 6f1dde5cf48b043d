// The driver for @platformatic/kafka 2.12.1. Only this file and the files named platformatic-… use the library; they
// are loaded when a Kafka sink with `driver: platformatic` opens. Workarounds: the library would begin a transaction
// with producer id 0, which the broker assigns to another producer; a failed transaction stays open in it, so one
// failure ends the producer (port.ts); it repeats a leader's requests by itself (sending.ts sends instead).

import { crc32c } from '@platformatic/kafka';
import { invariant } from '../contracts/index.ts';
import { Client, type Transaction } from './platformatic-client.ts';
import { kafkaFailureOf, rejecting } from './platformatic-errors.ts';
import { PlatformaticRequests } from './platformatic-requests.ts';
import type {
  CommittedPosition,
  KafkaDriver,
  KafkaOptions,
  KafkaProducer,
  KafkaRecord,
  WrittenOffsets,
} from './port.ts';
import { readableSasl } from './sasl.ts';
import { PartitionSender } from './sending.ts';

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

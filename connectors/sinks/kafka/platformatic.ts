// The driver for @platformatic/kafka 2.12.1: with the two files beside it the only one that touches
// the library, loaded when a Kafka sink with `driver: platformatic` opens. What is written around:
// it would begin a transaction with a producer id of 0, which the broker takes for somebody else's;
// a failed transaction stays open in it, so one failure ends the producer (port.ts); and it
// compresses at levels that cost more than they save.

import { constants, zstdCompressSync } from 'node:zlib';
import { compressionsAlgorithms, ProduceAcks } from '@platformatic/kafka';
import { invariant } from '../../../src/contracts/errors.ts';
import { compressed } from '../../shared/compression.ts';
import { behind, checkAnswers, choosePartition } from './partition.ts';
import { Client, type Transaction } from './platformatic-client.ts';
import { failureOf } from './platformatic-errors.ts';
import { messageOf } from './platformatic-requests.ts';
import type {
  Committed,
  KafkaDriver,
  KafkaOptions,
  KafkaProducer,
  KafkaRecord,
  KafkaSasl,
  WrittenOffsets,
} from './port.ts';

const connectTimeoutMsMax = 10_000;
const retries = 7;
const metadataMsMax = 300_000;
const mechanisms = {
  plain: 'PLAIN',
  'scram-sha-256': 'SCRAM-SHA-256',
  'scram-sha-512': 'SCRAM-SHA-512',
} as const;

/** Makes producers of @platformatic/kafka. */
export const platformaticDriver: KafkaDriver = (options) => {
  prepareLibrary();
  return new PlatformaticProducer(options);
};

class PlatformaticProducer implements KafkaProducer {
  readonly #options: KafkaOptions;
  readonly #client: Client;
  #transaction: Transaction | null = null;
  #hasBegun = false;
  #turn = 0;

  constructor(options: KafkaOptions) {
    this.#options = options;
    this.#client = clientOf(options);
  }

  async produce(records: readonly KafkaRecord[]): Promise<void> {
    this.#options.sasl?.password.reveal(); // a secret that cannot be read says so itself
    await told(this.#send(this.#client, records));
  }

  async transact(
    requests: readonly (readonly KafkaRecord[])[],
    place: Committed,
  ): Promise<WrittenOffsets> {
    const transaction = await this.#begin();
    const written = new Map<number, bigint>();
    try {
      for (const records of requests) await this.#send(transaction, records, written);
      await this.#client.commitPosition(this.#place, place);
    } catch (error) {
      const failure = failureOf(error);
      // Else readers wait for the transaction's end until it times out. It need not work.
      if (failure.answered && failure.kind !== 'fenced') await transaction.abort().catch(() => {});
      throw failure;
    }
    await told(transaction.commit(), 'the outcome of the commit is not known');
    this.#transaction = null;
    return written;
  }

  async committed(): Promise<Committed | null> {
    await this.#begin();
    return await told(this.#client.fetchPosition(this.#place));
  }

  async checkTopic(): Promise<void> {
    const { topic, sasl } = this.#options;
    sasl?.password.reveal();
    await told(this.#client.metadata({ topics: [topic], autocreateTopics: false, retries: 0 }));
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

  // The first time it fetches the producer id, which ends what an older user left open.
  async #begin(): Promise<Transaction> {
    this.#options.sasl?.password.reveal();
    const { transactions } = this.#options;
    if (!this.#hasBegun) await transactions?.confirm?.();
    this.#transaction ??= await told(this.#client.beginTransaction());
    if (!this.#hasBegun) await transactions?.confirm?.();
    this.#hasBegun = true;
    return this.#transaction;
  }

  async #send(
    sender: Pick<Client, 'send'> | Transaction,
    records: readonly KafkaRecord[],
    written = new Map<number, bigint>(),
  ): Promise<void> {
    const { topic, compression } = this.#options;
    this.#turn += 1;
    const partitions = await this.#partitions();
    const messages = records.map((record) => {
      record.partition ??= choosePartition(record.key, this.#turn, partitions);
      return messageOf(record, topic, record.partition);
    });
    const { offsets = [] } = await sender.send({ messages, compression, acks: ProduceAcks.ALL });
    checkAnswers(
      records,
      offsets.map(({ partition }) => partition),
    );
    for (const { partition, offset } of offsets) {
      written.set(partition, behind(offset, partition, records));
    }
  }

  async #partitions() {
    const { topic } = this.#options;
    const { topics } = await this.#client.metadata({ topics: [topic] });
    const found = topics.get(topic)?.partitions ?? [];
    const led = [...found.keys()].filter((partition) => (found[partition]?.leader ?? -1) >= 0);
    return { count: found.length, led };
  }
}

function clientOf({ brokers, clientId, timeoutMs, sasl, tls, transactions }: KafkaOptions): Client {
  return new Client({
    brokers,
    connections: {
      clientId,
      tls,
      connection: {
        connectTimeout: Math.min(timeoutMs, connectTimeoutMsMax),
        requestTimeout: timeoutMs,
        ...(sasl === undefined ? {} : { sasl: saslOf(sasl) }),
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
      // Both for the broker: how long to wait for replicas, and for a transaction's end.
      timeout: transactions?.timeoutMs ?? timeoutMs,
      producerId: -1n,
      producerEpoch: -1,
      ...(transactions === undefined ? {} : { transactionalId: transactions.id }),
    },
  });
}

function saslOf({ mechanism, username, password }: KafkaSasl) {
  return { mechanism: mechanisms[mechanism], username, password: () => password.reveal() };
}

async function told<T>(promise: Promise<T>, what?: string): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw failureOf(error, what);
  }
}

let prepared = false;

// The levels that other sinks use, for the whole process: gzip on the thread pool, zstd where the
// library calls it.
function prepareLibrary(): void {
  if (prepared) return;
  prepared = true;
  Object.assign(compressionsAlgorithms.gzip, {
    compress: async (bytes: Buffer) => Buffer.from(await compressed(bytes, 'gzip')),
  });
  Object.assign(compressionsAlgorithms.zstd, {
    compressSync: (bytes: Buffer) =>
      zstdCompressSync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: 1 } }),
  });
}

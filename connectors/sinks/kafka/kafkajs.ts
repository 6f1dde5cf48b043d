// The driver for kafkajs 2.2.4: with kafkajs-patches.ts and read-back.ts all that touches it,
// loaded when a Kafka sink opens. Retries inside kafkajs stay short; the engine has the long ones.
// What is written around: its idempotent producer rolls sequence numbers back after a failed
// request, so one failure ends the producer (port.ts); a repeated request asks the partitioner
// again, so partitions are chosen once; a request whose partition moved to a broker that had
// answered already is skipped, so the answers are checked against the records; and its sockets are
// ours, so that nothing hangs on a dead broker.

import type {
  Kafka,
  KafkaConfig,
  Message,
  PartitionerArgs,
  Producer,
  SASLOptions,
  Transaction,
} from 'kafkajs';
import { ExportError, invariant } from '../../../src/contracts/errors.ts';
import type { Log } from '../../../src/contracts/tools.ts';
import type { Compression } from '../../shared/compression.ts';
import { KafkaFailure } from './failure.ts';
import { failureOf } from './kafkajs-errors.ts';
import { kafkajs, prepareKafkajs } from './kafkajs-patches.ts';
import { behind, checkAnswers, choosePartition } from './partition.ts';
import type {
  Committed,
  KafkaDriver,
  KafkaOptions,
  KafkaProducer,
  KafkaRecord,
  KafkaSasl,
  WrittenOffsets,
} from './port.ts';
import { rangesFrom, uidsIn } from './read-back.ts';
import { Sockets } from './sockets.ts';
import type { TopicReader } from './standing.ts';

const { CompressionTypes, logLevel } = kafkajs;

const connectTimeoutMsMax = 10_000;
// From 20 ms, since a broker answers CONCURRENT_TRANSACTIONS for some milliseconds after each
// commit.
const retry = { initialRetryTime: 20, multiplier: 2, factor: 0.1, maxRetryTime: 1_000, retries: 7 };
const compressionTypes: Readonly<Record<Compression, number>> = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  zstd: CompressionTypes.ZSTD,
};

/** Makes kafkajs producers. */
export const kafkajsDriver: KafkaDriver = (options) => {
  prepareKafkajs();
  return new KafkajsProducer(options);
};

class KafkajsProducer implements KafkaProducer {
  readonly #options: KafkaOptions;
  readonly #sockets: Sockets;
  readonly #kafka: Kafka;
  readonly #producer: Producer;
  #connected = false;
  #transaction: Transaction | null = null;
  #committed: Committed | null = null;
  #turn = 0;

  constructor(options: KafkaOptions) {
    this.#options = options;
    this.#sockets = new Sockets(options.tls);
    this.#kafka = new kafkajs.Kafka(configOf(options, this.#sockets));
    const { transactions } = options;
    this.#producer = this.#kafka.producer({
      maxInFlightRequests: 1,
      createPartitioner: () => (args) => this.#partitionOf(args),
      ...(transactions === undefined
        ? { idempotent: true }
        : { transactionalId: transactions.id, transactionTimeout: transactions.timeoutMs }),
    });
  }

  async produce(records: readonly KafkaRecord[]): Promise<void> {
    await this.#connect();
    await told(this.#send(this.#producer, records));
  }

  async transact(
    requests: readonly (readonly KafkaRecord[])[],
    place: Committed,
  ): Promise<WrittenOffsets> {
    await this.#connect();
    const { topic, transactions } = this.#options;
    const transaction = this.#transaction;
    invariant(transaction !== null && transactions !== undefined, 'the producer has transactions');
    const written = new Map<number, bigint>();
    try {
      for (const records of requests) await this.#send(transaction, records, written);
      const { position, note } = place;
      // Written as it is (protocol/requests/txnOffsetCommit), though it is not among the types.
      const partitions = [{ partition: 0, offset: String(position), metadata: note }];
      const topics = [{ topic, partitions }];
      await transaction.sendOffsets({ consumerGroupId: transactions.group, topics });
    } catch (error) {
      const failure = failureOf(error);
      // Else readers wait for the transaction's end until it times out. It need not work.
      if (failure.answered && failure.kind !== 'fenced') await transaction.abort().catch(() => {});
      throw failure;
    }
    await told(transaction.commit(), 'the outcome of the commit is not known');
    this.#committed = place;
    this.#transaction = await told(this.#producer.transaction());
    return written;
  }

  async committed(): Promise<Committed | null> {
    const { topic, transactions } = this.#options;
    invariant(transactions !== undefined, 'the producer has transactions');
    await this.#connect();
    // Right after a commit the group may still show the position before it.
    if (this.#committed !== null) return this.#committed;
    const admin = this.#kafka.admin();
    try {
      await told(admin.connect());
      // Of all topics: asking for one topic's partitions would fail where it does not exist yet.
      const found = await told(admin.fetchOffsets({ groupId: transactions.group }));
      const partitions = found.find((each) => each.topic === topic)?.partitions ?? [];
      const { offset = -1, metadata } = partitions.find((each) => each.partition === 0) ?? {};
      return Number(offset) < 0 ? null : { position: Number(offset), note: metadata ?? '' };
    } finally {
      await admin.disconnect().catch(() => {});
    }
  }

  async checkTopic(): Promise<void> {
    const { topic, sasl } = this.#options;
    sasl?.password.reveal();
    const admin = this.#kafka.admin();
    try {
      await told(admin.connect());
      await told(admin.fetchTopicMetadata({ topics: [topic] }));
    } finally {
      await admin.disconnect().catch(() => {});
    }
  }

  async close(): Promise<void> {
    await told(this.#producer.disconnect());
  }

  destroy(): void {
    this.#sockets.cut();
    this.#producer.disconnect().catch(() => {});
  }

  async #connect(): Promise<void> {
    if (this.#connected) return;
    this.#options.sasl?.password.reveal(); // a secret that cannot be read says so itself
    const { transactions } = this.#options;
    await transactions?.confirm?.();
    await told(this.#producer.connect());
    if (transactions !== undefined) {
      // Fetches the producer id, which ends what an older user of the transactional id left open.
      this.#transaction = await told(this.#producer.transaction());
    }
    await transactions?.confirm?.();
    this.#connected = true;
  }

  async #send(
    sender: Pick<Producer, 'send'>,
    records: readonly KafkaRecord[],
    written = new Map<number, bigint>(),
  ): Promise<void> {
    const { topic, compression, timeoutMs } = this.#options;
    this.#turn += 1;
    const answers = await sender.send({
      topic,
      // The requests are made by kafkajs-patches.ts, which knows them.
      messages: records as unknown as Message[],
      acks: -1,
      timeout: timeoutMs,
      compression: compressionTypes[compression],
    });
    checkAnswers(
      records,
      answers.map(({ partition }) => partition),
    );
    for (const { partition, baseOffset = '0' } of answers) {
      written.set(partition, behind(BigInt(baseOffset), partition, records));
    }
  }

  #partitionOf({ message, partitionMetadata }: PartitionerArgs): number {
    const record: { partition?: number } = message;
    if (record.partition === undefined) {
      const led = partitionMetadata.filter(({ leader }) => leader >= 0);
      record.partition = choosePartition(keyOf(message.key), this.#turn, {
        count: partitionMetadata.length,
        led: led.map(({ partitionId }) => partitionId),
      });
    }
    return record.partition;
  }
}

/** Reads the topic back, for whichever driver writes. */
export function kafkajsReader(options: KafkaOptions): TopicReader {
  prepareKafkajs();
  const { topic, transactions } = options;
  const group = transactions?.group ?? 'sluice';
  const using = async <T>(work: (kafka: Kafka) => Promise<T>) => {
    options.sasl?.password.reveal();
    const sockets = new Sockets(options.tls);
    try {
      return await told(work(new kafkajs.Kafka(configOf(options, sockets))));
    } finally {
      sockets.cut();
    }
  };
  return {
    rangesFrom: async (offsets) => {
      try {
        return await using((kafka) => rangesFrom(kafka, topic, offsets));
      } catch (error) {
        if (error instanceof KafkaFailure && error.kind === 'topic_missing') return {};
        throw error;
      }
    },
    uidsIn: (ranges, signal) => using((kafka) => uidsIn(kafka, ranges, { topic, group, signal })),
  };
}

function keyOf(key: PartitionerArgs['message']['key']): Uint8Array | null {
  return typeof key === 'string' ? Buffer.from(key) : (key ?? null);
}

function configOf(options: KafkaOptions, sockets: Sockets): KafkaConfig {
  const { brokers, clientId, timeoutMs, sasl, tls, log } = options;
  return {
    // kafkajs cuts addresses at the first colon, which an IPv6 address is full of.
    brokers: brokers.map(({ host, port }) => `${encodeURIComponent(host)}:${port}`),
    clientId,
    connectionTimeout: Math.min(timeoutMs, connectTimeoutMsMax),
    requestTimeout: timeoutMs,
    retry,
    ssl: tls !== undefined,
    ...(sasl === undefined ? {} : { sasl: saslOf(sasl) }),
    socketFactory: ({ host, port, onConnect }) =>
      sockets.connect(decodeURIComponent(host), port, onConnect),
    logLevel: logLevel.WARN,
    logCreator: () => (entry) => tell(log, entry.namespace, entry.log),
  };
}

// kafkajs keeps this object and reads it at each authentication, so the getter hands out the secret
// as it is then.
function saslOf({ mechanism, username, password }: KafkaSasl): SASLOptions {
  return {
    mechanism,
    username,
    get password() {
      return password.reveal();
    },
  };
}

// At debug: whatever matters to an operator comes back as the outcome of a send, once, with what to
// do about it.
function tell(log: Log, part: string, entry: Readonly<Record<string, unknown>>): void {
  const { message, broker } = entry;
  log.debug('kafkajs says', {
    part,
    message: String(message),
    ...(typeof broker === 'string' ? { broker } : {}),
  });
}

async function told<T>(promise: Promise<T>, what?: string): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof ExportError) throw error;
    throw failureOf(error, what);
  }
}

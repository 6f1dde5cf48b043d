// The driver for kafkajs 2.2.4. Only this file, the files named kafkajs-… and read-back.ts use kafkajs; they are loaded
// when a Kafka sink opens. Retries inside kafkajs stay short; the engine has the long ones. Workarounds: its producer
// repeats requests in flight and rolls sequence numbers back (sending.ts sends instead); one failure ends the producer
// (port.ts); the sockets belong to the driver, so no call hangs on a dead broker.

import type { Kafka, KafkaConfig, Mechanism, SASLOptions } from 'kafkajs';
import { ExportError, invariant, type Log, untilAborted } from '../contracts/index.ts';
import { KafkaFailure, kafkajsFailure } from './failure.ts';
import { crc32c, kafkajs, prepareKafkajs } from './kafkajs-patches.ts';
import { fetchPosition } from './kafkajs-position.ts';
import {
  type Cluster,
  clusterOf,
  KafkajsRequests,
  managerOf,
  type TransactionManager,
} from './kafkajs-requests.ts';
import type {
  CommittedPosition,
  KafkaDriver,
  KafkaOptions,
  KafkaPassword,
  KafkaProducer,
  KafkaRecord,
  KafkaToken,
  TopicReader,
  WrittenOffsets,
} from './port.ts';
import { rangesFrom, uidsIn } from './read-back.ts';
import { bearerMessage, readableSasl, rejectionIn } from './sasl.ts';
import { PartitionSender } from './sending.ts';
import { Sockets } from './sockets.ts';

const { logLevel } = kafkajs;

const connectTimeoutMsMax = 10_000;
// From 20 ms, because a broker answers CONCURRENT_TRANSACTIONS for some milliseconds after each commit.
const retry = { initialRetryTime: 20, multiplier: 2, factor: 0.1, maxRetryTime: 1_000, retries: 7 };

/** Creates kafkajs producers. */
export const kafkajsDriver: KafkaDriver = (options) => {
  prepareKafkajs();
  return new KafkajsProducer(options);
};

class KafkajsProducer implements KafkaProducer {
  readonly #options: KafkaOptions;
  readonly #sockets: Sockets;
  readonly #kafka: Kafka;
  readonly #cluster: Cluster;
  readonly #manager: TransactionManager;
  readonly #sending: PartitionSender;
  /** Of other topics than the options'. Each keeps its sequence numbers as long as the producer lives. */
  readonly #sendings = new Map<string, PartitionSender>();
  #connected = false;

  constructor(options: KafkaOptions) {
    this.#options = options;
    const { transactions } = options;
    this.#sockets = new Sockets(options.tls);
    this.#kafka = new kafkajs.Kafka(configOf(options, this.#sockets));
    this.#cluster = clusterOf(this.#kafka);
    this.#manager = managerOf(this.#kafka, this.#cluster, transactions);
    this.#sending = this.#senderOf(options.topic);
  }

  #senderOf(topic: string): PartitionSender {
    const { compression, timeoutMs, transactions, sendTurn } = this.#options;
    const transactionalId = transactions?.id ?? null;
    const connected = { cluster: this.#cluster, manager: this.#manager };
    return new PartitionSender(
      new KafkajsRequests({ ...connected, topic, timeoutMs, transactionalId }),
      { topic, compression, transactionalId, sendTurn, crc32c },
    );
  }

  #sendingTo(topic: string): PartitionSender {
    if (topic === this.#options.topic) return this.#sending;
    return this.#sendings.getOrInsertComputed(topic, () => this.#senderOf(topic));
  }

  async produce(records: readonly KafkaRecord[], topic = this.#options.topic): Promise<void> {
    await this.#connect();
    await this.#sendingTo(topic).send(records);
  }

  async transact(
    requests: readonly (readonly KafkaRecord[])[],
    place: CommittedPosition,
  ): Promise<WrittenOffsets> {
    const written = await this.#sendInTransaction(requests, place);
    await rejecting(this.#manager.commit(), 'the outcome of the commit is not known');
    return written;
  }

  async tryOut(requests: readonly (readonly KafkaRecord[])[]): Promise<void> {
    await this.#sendInTransaction(requests, null);
    await rejecting(this.#manager.abort());
  }

  /** When it resolves, the transaction is open. Without `place`, no position is committed. */
  async #sendInTransaction(
    requests: readonly (readonly KafkaRecord[])[],
    place: CommittedPosition | null,
  ): Promise<WrittenOffsets> {
    await this.#connect();
    const { topic, transactions } = this.#options;
    invariant(transactions !== undefined, 'the producer has transactions');
    const written = new Map<number, bigint>();
    this.#manager.beginTransaction();
    try {
      for (const records of requests) await this.#sending.send(records, written);
      if (place === null) return written;
      const { position, note } = place;
      const partitions = [{ partition: 0, offset: String(position), metadata: note }];
      const topics = [{ topic, partitions }];
      await this.#manager.sendOffsets({ consumerGroupId: transactions.group, topics });
    } catch (error) {
      const failure = kafkajsFailure(error);
      // Without an abort, readers wait until the next producer begins; the abort may fail. If a request may still
      // arrive, only the next producer ends the transaction: its new epoch rejects the late request.
      if (failure.answered && failure.kind !== 'fenced')
        await this.#manager.abort().catch(() => {});
      throw failure;
    }
    return written;
  }

  async committed(): Promise<CommittedPosition | null> {
    const { topic, transactions } = this.#options;
    invariant(transactions !== undefined, 'the producer has transactions');
    await this.#connect();
    return await rejecting(fetchPosition(this.#cluster, { group: transactions.group, topic }));
  }

  async checkTopic(topic: string | null = this.#options.topic): Promise<void> {
    await readableSasl(this.#options.sasl);
    const admin = this.#kafka.admin();
    try {
      await rejecting(admin.connect());
      await rejecting(admin.fetchTopicMetadata({ topics: topic === null ? [] : [topic] }));
    } finally {
      await admin.disconnect().catch(() => {});
    }
  }

  async close(): Promise<void> {
    await rejecting(this.#cluster.disconnect());
  }

  destroy(): void {
    this.#sockets.cut();
    this.#cluster.disconnect().catch(() => {});
  }

  async #connect(): Promise<void> {
    if (this.#connected) return;
    await readableSasl(this.#options.sasl);
    const { transactions } = this.#options;
    await transactions?.confirm?.();
    await rejecting(this.#cluster.connect());
    // With transactions, this ends transactions that an older producer with the id left open.
    await rejecting(this.#manager.initProducerId());
    await transactions?.confirm?.();
    this.#connected = true;
  }
}

/** Reads the topic back, for either driver. */
export function kafkajsReader(options: KafkaOptions, digits: number): TopicReader {
  prepareKafkajs();
  const { topic, transactions } = options;
  const group = transactions?.group ?? 'sluice';
  // Kafkajs's consumer and admin can wait for ever for a broker that has gone; a signal alone does not end that.
  const using = async <T>(signal: AbortSignal, work: (kafka: Kafka) => Promise<T>) => {
    await readableSasl(options.sasl);
    const sockets = new Sockets(options.tls);
    try {
      const found = work(new kafkajs.Kafka(configOf(options, sockets)));
      return await rejecting(untilAborted(found, signal));
    } finally {
      sockets.cut();
    }
  };
  return {
    rangesFrom: async (offsets, signal) => {
      try {
        return await using(signal, (kafka) => rangesFrom(kafka, topic, offsets));
      } catch (error) {
        if (error instanceof KafkaFailure && error.kind === 'topic_missing') return {};
        throw error;
      }
    },
    uidsIn: (ranges, signal) =>
      using(signal, (kafka) => uidsIn(kafka, ranges, { topic, group, digits, signal })),
  };
}

function configOf(options: KafkaOptions, sockets: Sockets): KafkaConfig {
  const { brokers, clientId, timeoutMs, sasl, tls, log } = options;
  return {
    // kafkajs cuts addresses at the first colon, which breaks IPv6 addresses.
    brokers: brokers.map(({ host, port }) => `${encodeURIComponent(host)}:${port}`),
    clientId,
    connectionTimeout: Math.min(timeoutMs, connectTimeoutMsMax),
    requestTimeout: timeoutMs,
    retry,
    ssl: tls !== undefined,
    ...(sasl === undefined
      ? {}
      : { sasl: sasl.mechanism === 'oauthbearer' ? bearerOf(sasl) : passwordOf(sasl) }),
    socketFactory: ({ host, port, onConnect }) =>
      sockets.connect(decodeURIComponent(host), port, onConnect),
    logLevel: logLevel.WARN,
    logCreator: () => (entry) => logAtDebug(log, entry.namespace, entry.log),
  };
}

// kafkajs keeps this object and reads it at each authentication, so the getter returns the current secret.
function passwordOf({ mechanism, username, password }: KafkaPassword): SASLOptions {
  return {
    mechanism,
    username,
    get password() {
      return password.reveal();
    },
  };
}

// The library's own would take a rejected token for an accepted one (sasl.ts). Texts here begin with their length.
function bearerOf(sasl: KafkaToken): Mechanism {
  return {
    mechanism: 'oauthbearer',
    authenticationProvider: ({ saslAuthenticate }) => ({
      async authenticate() {
        const message = bearerMessage(await sasl.token());
        const length = Buffer.alloc(4);
        length.writeInt32BE(message.length);
        const rejection = await saslAuthenticate({
          request: { encode: () => Buffer.concat([length, message]) },
          response: { decode: (reply: Buffer) => reply.subarray(4), parse: rejectionIn },
        });
        if (!rejection) return;
        const failure = new KafkaFailure('denied', rejection, { answered: true });
        // Its type lacks the cause.
        throw Object.assign(new kafkajs.KafkaJSNonRetriableError(failure), { cause: failure });
      },
    }),
  };
}

// At debug level: the send result reports each relevant failure once, with its next step.
function logAtDebug(log: Log, part: string, entry: Readonly<Record<string, unknown>>): void {
  const { message, broker } = entry;
  log.debug('kafka_client_line', 'kafkajs says', {
    part,
    message: String(message),
    ...(typeof broker === 'string' ? { broker } : {}),
  });
}

async function rejecting<T>(promise: Promise<T>, what?: string): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof ExportError) throw error;
    throw kafkajsFailure(error, what);
  }
}

/** Creates topics with the brokers' partitions and replicas; returns those that did not exist. Throws a KafkaFailure. */
export async function makeTopics(
  options: KafkaOptions,
  topics: readonly string[],
): Promise<readonly string[]> {
  prepareKafkajs();
  await readableSasl(options.sasl);
  const sockets = new Sockets(options.tls);
  const admin = new kafkajs.Kafka(configOf(options, sockets)).admin();
  try {
    await rejecting(admin.connect());
    const known = new Set(await rejecting(admin.listTopics()));
    const missing = topics.filter((topic) => !known.has(topic));
    if (missing.length > 0) {
      // By the time of a clock that is behind, brokers delete new records as too old.
      const configEntries = [{ name: 'message.timestamp.type', value: 'LogAppendTime' }];
      const requested = missing.map((topic) => ({ topic, configEntries }));
      await rejecting(admin.createTopics({ topics: requested, waitForLeaders: true }));
    }
    return missing;
  } finally {
    await admin.disconnect().catch(() => {});
    sockets.cut();
  }
}

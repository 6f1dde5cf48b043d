// Kafka for the tests: the one broker that all test files share, making topics, and reading a topic
// back to its end. The reading is what exactly-once claims are checked against, so it reads
// everything that a consumer of that isolation level may see up to the end of the topic at that
// moment: a record too many is seen as surely as one too few.
import { randomUUID } from 'node:crypto';
import { type Admin, type IHeaders, Kafka, logLevel } from 'kafkajs';
import { prepareKafkajs } from '../../src/kafka/kafkajs-patches.ts';
import { type KafkaAddresses, makeSharedKafka } from './kafka-broker.ts';
import { oncePerRun } from './once-per-run.ts';
import { patienceMs, waitUntil } from './temp.ts';

export {
  type KafkaAddresses,
  type KafkaBroker,
  type KafkaOptions,
  startKafka,
  startKafkaCluster,
} from './kafka-broker.ts';
export { kafkaAccount } from './kafka-files.ts';

/**
 * The broker that all tests of this run share, started at the first request (call it in `beforeAll`: the first time on
 * a machine it is downloaded). With KAFKA_BROKERS set that one is used, and its `protected` is null. Use topic names of
 * your own (`newTopic`).
 */
export function sharedKafka(): Promise<KafkaAddresses> {
  return oncePerRun('kafka', makeSharedKafka);
}

/** The bootstrap brokers of `sharedKafka`, without protection. */
export async function kafkaBrokers(): Promise<readonly string[]> {
  return (await sharedKafka()).plain.split(',');
}

export interface TopicOptions {
  readonly partitions?: number;
  /** Topic settings, for example `{ 'max.message.bytes': '2000' }`. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Creates a topic whose name starts with `prefix` and is unique; resolves to the name. */
export async function newTopic(prefix: string, options: TopicOptions = {}): Promise<string> {
  const topic = `${prefix}-${randomUUID()}`;
  await createTopic(await kafkaBrokers(), topic, options);
  return topic;
}

/** Makes a topic on the given brokers; resolves when it can be written to. */
export async function createTopic(
  brokers: readonly string[],
  topic: string,
  options: TopicOptions = {},
): Promise<void> {
  const { partitions: numPartitions = 1, settings = {} } = options;
  const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }));
  const admin = testClient(brokers).admin();
  await admin.connect();
  try {
    const topics = [{ topic, numPartitions, configEntries }];
    await admin.createTopics({ topics, waitForLeaders: false });
    await waitUntil(() => isLed(admin, topic, numPartitions), { what: `leaders of ${topic}` });
  } finally {
    await admin.disconnect();
  }
}

// A broker may not know a topic yet that it has just created, and then answers that there is none.
async function isLed(admin: Admin, topic: string, partitions: number): Promise<boolean> {
  try {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
    const led = topics.flatMap((found) => found.partitions).filter(({ leader }) => leader >= 0);
    return led.length === partitions;
  } catch (error) {
    if ((error as { readonly type?: unknown }).type === 'UNKNOWN_TOPIC_OR_PARTITION') return false;
    throw error;
  }
}

/** A record as a consumer sees it. */
export interface ReadRecord {
  readonly partition: number;
  readonly offset: bigint;
  readonly key: string | null;
  readonly value: string;
  /** A header that occurs more than once is joined with commas. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timestampMs: number;
}

export interface ReadOptions {
  /** Default: the shared broker. */
  readonly brokers?: readonly string[];
  /** Default `read_committed`: records of aborted and unfinished transactions are not seen. */
  readonly isolation?: 'read_committed' | 'read_uncommitted';
  /**
   * Wait for this number of records, or until this returns true; then read on to the end at that time. Undefined: read
   * to the end as it is now.
   */
  readonly until?: number | ((records: readonly ReadRecord[]) => boolean);
  /** Default 20 seconds. */
  readonly timeoutMs?: number;
}

/**
 * Everything in the topic, in order within each partition. Rejects when it takes longer than
 * `timeoutMs`, which also happens at `read_committed` while a transaction stays open.
 */
export async function consumeAll(
  topic: string,
  options: ReadOptions = {},
): Promise<readonly ReadRecord[]> {
  const { until = 0, timeoutMs = patienceMs } = options;
  prepareKafkajs();
  const client = testClient(options.brokers ?? (await kafkaBrokers()));
  const end = performance.now() + timeoutMs;
  const reader = new TopicReader(client, topic);
  try {
    await reader.open(options.isolation ?? 'read_committed', timeoutMs);
    const enough = () =>
      typeof until === 'number' ? reader.records.length >= until : until(reader.records);
    const left = () => Math.max(0, end - performance.now());
    const got = () => `${reader.records.length} records read`;
    await waitUntil(enough, {
      what: () => `${topic} to hold what the test waits for; ${got()}`,
      timeoutMs: left(),
    });
    const ends = await reader.ends();
    await waitUntil(() => reader.hasReached(ends), {
      what: () => `the end of ${topic} (is a transaction open?); ${got()}`,
      timeoutMs: left(),
    });
    return [...reader.records];
  } finally {
    await reader.close();
  }
}

function testClient(brokers: readonly string[]): Kafka {
  return new Kafka({
    clientId: 'sluice-test-reader',
    brokers: [...brokers],
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 50, retries: 8 },
  });
}

type PartitionEnds = ReadonlyMap<number, bigint>;

class TopicReader {
  readonly #client: Kafka;
  readonly #topic: string;
  readonly #admin;
  readonly #nextOffsets = new Map<number, bigint>();
  readonly records: ReadRecord[] = [];
  #consumer: ReturnType<Kafka['consumer']> | undefined;

  constructor(client: Kafka, topic: string) {
    this.#client = client;
    this.#topic = topic;
    this.#admin = client.admin();
  }

  async open(isolation: 'read_committed' | 'read_uncommitted', timeoutMs: number): Promise<void> {
    await this.#admin.connect();
    await waitUntil(async () => (await this.#admin.listTopics()).includes(this.#topic), {
      what: `the topic ${this.#topic} to exist`,
      timeoutMs,
      everyMs: 100,
    });
    const consumer = this.#client.consumer({
      groupId: `sluice-test-${randomUUID()}`,
      readUncommitted: isolation === 'read_uncommitted',
      maxWaitTimeInMs: 50,
      allowAutoTopicCreation: false,
    });
    this.#consumer = consumer;
    // Called also for batches of which a consumer sees nothing: aborted records and transaction marks.
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
      this.#nextOffsets.set(payload.partition, BigInt(payload.lastOffset) + 1n);
    });
    await consumer.connect();
    await consumer.subscribe({ topics: [this.#topic], fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachBatch: async ({ batch }) => {
        for (const message of batch.messages) {
          this.records.push({
            partition: batch.partition,
            offset: BigInt(message.offset),
            key: message.key?.toString() ?? null,
            value: message.value?.toString() ?? '',
            headers: headerText(message.headers ?? {}),
            timestampMs: Number(message.timestamp),
          });
        }
      },
    });
  }

  async ends(): Promise<PartitionEnds> {
    const offsets = await this.#admin.fetchTopicOffsets(this.#topic);
    const filled = offsets.filter(({ low, high }) => low !== high);
    return new Map(filled.map(({ partition, high }) => [partition, BigInt(high)]));
  }

  hasReached(ends: PartitionEnds): boolean {
    return [...ends].every(([partition, end]) => (this.#nextOffsets.get(partition) ?? 0n) >= end);
  }

  async close(): Promise<void> {
    await this.#consumer?.disconnect();
    await this.#admin.disconnect();
  }
}

function headerText(headers: IHeaders): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, [value ?? ''].flat().join(',')]),
  );
}

// The requests that reading a log needs, each sent directly (Kafka protocol guide): the library's own consumer filters
// aborted records wrongly (committed.ts). Versions are fixed: all brokers that the library supports (3.5 and newer) know
// them. After a temporary error, such as a moved leader, the request is sent again to the new leader.

import {
  type Broker,
  type Connection,
  deleteRecordsV2,
  fetchV15,
  listOffsetsV8,
  metadataV12,
  ResponseError,
} from '@platformatic/kafka';
import { type Clock, ExportError } from '../../contracts/index.ts';
import { KafkaFailure } from '../../kafka/index.ts';
import { Connections, kafkaFailureOf } from '../../kafka/log-client.ts';
import { type CommittedRecords, committedIn, type LogRecord } from './committed.ts';
import { connectionOf, type StateLogSettings } from './settings.ts';

/** A partition of a topic. */
export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

const fetchBytesMax = 8 * 1024 * 1024;
/** How long attempts are repeated. */
const patienceMs = 30_000;
const pauseMsMin = 20;
const pauseMsMax = 1_000;
/** `timestamp` of a request for the end of a log. */
const latest = -1n;
/** The same for its start. */
const earliest = -2n;
/** How long a broker waits for records of a reading. */
const readWaitMs = 500;
const readUncommitted = 0;
const readCommitted = 1;

/** Reads partitions of the cluster. */
export class LogClient {
  readonly #connections: Connections;
  readonly #bootstrap: readonly Broker[];
  readonly #clock: Clock;
  #isClosed = false;
  #known: { readonly brokers: ReadonlyMap<number, Broker>; readonly topics: Topics } | null = null;

  constructor(settings: StateLogSettings, clock: Clock) {
    this.#bootstrap = settings.brokers;
    this.#clock = clock;
    this.#connections = new Connections(connectionOf(settings));
  }

  /**
   * The end of all records of a partition, committed or not. The end of the committed records only
   * would exclude newer ones while a transaction before them is open.
   */
  end(of: TopicPartition): Promise<bigint> {
    return this.#offset(of, latest);
  }

  /** The end of the readable records: before the first open transaction of any producer. */
  stableEnd(of: TopicPartition): Promise<bigint> {
    return this.#offset(of, latest, readCommitted);
  }

  /** The first offset that still exists. */
  start(of: TopicPartition): Promise<bigint> {
    return this.#offset(of, earliest);
  }

  /** The committed records from `position` on; waits up to `waitMs` for the first one. */
  async fetch(
    { topic, partition }: TopicPartition,
    position: bigint,
    waitMs: number,
  ): Promise<CommittedRecords> {
    return await this.#ask({ topic, partition }, async ({ connection, topicId }) => {
      const asked = {
        partition,
        currentLeaderEpoch: -1,
        fetchOffset: position,
        lastFetchedEpoch: -1,
        partitionMaxBytes: fetchBytesMax,
      };
      // Epoch -1 of the session: no session is created.
      const { async: send } = fetchV15.api;
      const topics = [{ topicId, partitions: [asked] }];
      const session = [0, -1] as const;
      const how = [waitMs, 1, fetchBytesMax, readCommitted, ...session] as const;
      const { responses } = await send(connection, ...how, topics, [], '');
      const found = responses[0]?.partitions[0];
      if (found === undefined) throw passing(`Kafka answered nothing about ${topic}`);
      return committedIn(found, position);
    });
  }

  /** Deletes the records before an offset. */
  async deleteBefore({ topic, partition }: TopicPartition, offset: bigint): Promise<void> {
    await this.#ask({ topic, partition }, async ({ connection }) => {
      const partitions = [{ partitionIndex: partition, offset }];
      await deleteRecordsV2.api.async(connection, [{ name: topic, partitions }], patienceMs);
    });
  }

  /** Whether a topic exists and this account may see it. */
  async has(topic: string): Promise<boolean> {
    return await this.#again(`reading ${topic}`, async () =>
      (await this.#knowing([topic])).topics.has(topic),
    );
  }

  /** Which of these topics do not exist, or are hidden from this account; by one new request. */
  async missing(topics: readonly string[]): Promise<readonly string[]> {
    this.#known = null;
    return await this.#again(`reading ${topics.join(', ')}`, async () => {
      const { topics: had } = await this.#knowing(topics);
      return topics.filter((topic) => !had.has(topic));
    });
  }

  /** Number of partitions of a topic; 0: the topic does not exist. */
  async partitionsOf(topic: string): Promise<number> {
    return await this.#again(`reading ${topic}`, async () => {
      const { topics } = await this.#knowing([topic]);
      return topics.get(topic)?.leaders.size ?? 0;
    });
  }

  /** Resolves after a new topic has leaders. */
  async appearance(topic: string): Promise<void> {
    await this.#again(`waiting for ${topic}`, async () => {
      const leaders = (await this.#knowing([topic])).topics.get(topic)?.leaders.values();
      const isLed = leaders?.every((leader) => leader >= 0) ?? false;
      if (!isLed) throw passing(`${topic} is not there yet`);
    });
  }

  /** Sends a request that any broker can answer. */
  async anywhere<T>(doing: string, request: (of: Connection) => Promise<T>): Promise<T> {
    return await this.#again(doing, async () => await request(await this.#anyConnection()));
  }

  /** Cuts all connections: open requests reject. */
  close(): void {
    this.#isClosed = true;
    this.#connections.cut();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #offset(
    { topic, partition }: TopicPartition,
    timestamp: bigint,
    isolation: 0 | 1 = readUncommitted,
  ): Promise<bigint> {
    return this.#ask({ topic, partition }, async ({ connection }) => {
      const asked = [{ partitionIndex: partition, currentLeaderEpoch: -1, timestamp }];
      const { async: send } = listOffsetsV8.api;
      const topics = [{ name: topic, partitions: asked }];
      const answer = await send(connection, -1, isolation, topics);
      return answer.topics[0]?.partitions[0]?.offset ?? 0n;
    });
  }

  /** Sends a request to a partition's leader, again while errors are temporary. */
  async #ask<T>(of: TopicPartition, request: (leader: Leader) => Promise<T>): Promise<T> {
    const doing = `reading ${of.topic}, partition ${of.partition}`;
    return await this.#again(doing, async () => {
      const leader = await this.#leaderOf(of);
      return await request(leader).catch((error) => {
        throw failureOfLeader(error);
      });
    });
  }

  async #again<T>(doing: string, attempt: () => Promise<T>): Promise<T> {
    const deadline = this.#clock.monotonic() + patienceMs;
    for (let pauseMs = pauseMsMin; ; pauseMs = Math.min(pauseMs * 2, pauseMsMax)) {
      try {
        return await attempt();
      } catch (error) {
        this.#known = null;
        const failure = kafkaFailureOf(error, doing);
        const isOver = this.#isClosed || this.#clock.monotonic() > deadline;
        if (failure.kind !== 'passing' || isOver) throw failure;
        await this.#clock.sleep(pauseMs);
      }
    }
  }

  async #leaderOf({ topic, partition }: TopicPartition): Promise<Leader> {
    const { brokers, topics } = await this.#knowing([topic]);
    const found = topics.get(topic);
    if (found === undefined) {
      throw new KafkaFailure('topic_missing', `there is no topic ${topic}`, { answered: true });
    }
    const leader = found.leaders.get(partition);
    if (leader === undefined) throw passing(`${topic} has no partition ${partition} to read`);
    return { connection: await this.#connections.to(brokers.get(leader)), topicId: found.id };
  }

  async #knowing(names: readonly string[]) {
    const had: Topics = this.#known?.topics ?? new Map();
    if (this.#known !== null && names.every((name) => had.has(name))) return this.#known;
    const answer = await described(
      await this.#anyConnection(),
      names.filter((name) => !had.has(name)),
    );
    const brokers = new Map(answer.brokers.map((broker) => [broker.nodeId, broker]));
    const led = answer.topics.filter(({ errorCode }) => errorCode === 0);
    const learned = led.map(({ name, topicId, partitions }): [string, Topic] => [
      name ?? '',
      {
        id: topicId,
        leaders: new Map(
          partitions.map(({ partitionIndex, leaderId }) => [partitionIndex, leaderId]),
        ),
      },
    ]);
    this.#known = { brokers, topics: new Map([...had, ...learned]) };
    return this.#known;
  }

  async #anyConnection(): Promise<Connection> {
    let last: unknown;
    for (const broker of this.#bootstrap) {
      try {
        return await this.#connections.to(broker);
      } catch (error) {
        last = error;
      }
    }
    throw last;
  }
}

interface Topic {
  readonly id: string;
  readonly leaders: ReadonlyMap<number, number>;
}

type Topics = ReadonlyMap<string, Topic>;

interface Leader {
  readonly connection: Connection;
  readonly topicId: string;
}

/** Options of reading. */
export interface LogReading {
  readonly clock: Clock;
  /** The first offset to read; default: the first that exists. */
  readonly from?: bigint;
  /** Reads up to before this offset; default: the present end of the log. */
  readonly end?: bigint;
  /** Limit without progress. */
  readonly stalledMs: number;
}

/**
 * The committed records of a partition up to the end of its log, in order, some at a time. Throws `sink_unreachable` if
 * nothing more can be read before the end for `stalledMs`: a transaction is open, or the end went back. Throws a
 * KafkaFailure if the cluster refuses.
 */
export async function* committedRecords(
  client: LogClient,
  of: TopicPartition,
  { clock, stalledMs, ...given }: LogReading,
): AsyncGenerator<readonly LogRecord[]> {
  const end = given.end ?? (await client.end(of));
  let position = given.from ?? (await client.start(of));
  let movedAt = clock.monotonic();
  while (position < end) {
    const fetched = await client.fetch(of, position, readWaitMs);
    if (fetched.records.length > 0) yield fetched.records;
    if (fetched.position > position) movedAt = clock.monotonic();
    else if (clock.monotonic() - movedAt > stalledMs) throw stalled(of, position, end);
    position = fetched.position;
  }
}

function stalled({ topic, partition }: TopicPartition, position: bigint, end: bigint): ExportError {
  return new ExportError(
    'sink_unreachable',
    `reading ${topic}, partition ${partition}: nothing after offset ${position} can be read, and ${end} was to be reached`,
    {
      next: 'Look for a transaction that hangs (kafka-transactions.sh find-hanging) and for an unclean change of leader; nothing was written.',
    },
  );
}

/** The brokers name it as the leader, so it only does not know its new partition yet. */
function failureOfLeader(error: unknown): KafkaFailure {
  const failure = kafkaFailureOf(error);
  return failure.kind === 'topic_missing' ? passing(failure.message) : failure;
}

function passing(what: string): KafkaFailure {
  return new KafkaFailure('passing', what, { answered: true });
}

/** Metadata of topics. For a missing topic the library throws the whole response. */
async function described(connection: Connection, topics: string[]) {
  try {
    return await metadataV12.api.async(connection, topics, false);
  } catch (error) {
    if (!(error instanceof ResponseError)) throw error;
    return error.response as metadataV12.MetadataResponse;
  }
}

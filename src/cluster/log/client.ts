// The requests that reading a log takes, each sent as it is (Kafka protocol guide): the library's
// own consumer filters aborted records wrongly (committed.ts). Versions are fixed: all brokers that
// the library supports (3.5 and newer) know them. What passes, such as a leader that has moved, is
// asked again of whoever leads then.

import {
  type Broker,
  type Connection,
  deleteRecordsV2,
  fetchV15,
  listOffsetsV8,
  metadataV12,
  ResponseError,
} from '@platformatic/kafka';
import type { Clock } from '../../contracts/index.ts';
import { KafkaFailure } from '../../kafka/index.ts';
import { Connections, kafkaFailureOf } from '../../kafka/log-client.ts';
import { type CommittedRecords, committedIn } from './committed.ts';
import { connectionOf, type StateLogSettings } from './settings.ts';

/** A partition of a topic. */
export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

const fetchBytesMax = 8 * 1024 * 1024;
/** One attempt after the other, for as long. */
const patienceMs = 30_000;
const pauseMsMin = 20;
const pauseMsMax = 1_000;
/** `timestamp` of a question for the end of a log. */
const latest = -1n;
/** As well, for its start. */
const earliest = -2n;
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
   * The end of all that was written to a partition, committed or not. A bound that counts
   * committed records only would stop short of newer ones while a transaction before them is open.
   */
  end(of: TopicPartition): Promise<bigint> {
    return this.#offset(of, latest);
  }

  /** The end of what can be read now: before a transaction that is open, whoever has left it so. */
  stableEnd(of: TopicPartition): Promise<bigint> {
    return this.#offset(of, latest, readCommitted);
  }

  /** The first offset that is still there. */
  start(of: TopicPartition): Promise<bigint> {
    return this.#offset(of, earliest);
  }

  /** What is committed from `position` on; waits up to `waitMs` where there is nothing yet. */
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
      // Epoch -1 of the session: none is made.
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

  /** Deletes what stands before an offset. */
  async deleteBefore({ topic, partition }: TopicPartition, offset: bigint): Promise<void> {
    await this.#ask({ topic, partition }, async ({ connection }) => {
      const partitions = [{ partitionIndex: partition, offset }];
      await deleteRecordsV2.api.async(connection, [{ name: topic, partitions }], patienceMs);
    });
  }

  /** Whether the cluster has a topic that we may see. */
  async has(topic: string): Promise<boolean> {
    return await this.#again(`reading ${topic}`, async () =>
      (await this.#knowing(topic)).topics.has(topic),
    );
  }

  /** Which of these topics the cluster does not have any more, asked anew. */
  async missing(topics: readonly string[]): Promise<readonly string[]> {
    this.#known = null;
    const had = await Promise.all(topics.map((topic) => this.has(topic)));
    return topics.filter((_, n) => !had[n]);
  }

  /** How many partitions a topic has; 0 where there is none. */
  async partitionsOf(topic: string): Promise<number> {
    return await this.#again(`reading ${topic}`, async () => {
      const { topics } = await this.#knowing(topic);
      return topics.get(topic)?.leaders.size ?? 0;
    });
  }

  /** Resolves once a topic that was made has leaders. */
  async appearance(topic: string): Promise<void> {
    await this.#again(`waiting for ${topic}`, async () => {
      const leaders = (await this.#knowing(topic)).topics.get(topic)?.leaders.values();
      const isLed = leaders?.every((leader) => leader >= 0) ?? false;
      if (!isLed) throw passing(`${topic} is not there yet`);
    });
  }

  /** Asks any broker what each can answer. */
  async anywhere<T>(doing: string, request: (of: Connection) => Promise<T>): Promise<T> {
    return await this.#again(doing, async () => await request(await this.#anyConnection()));
  }

  /** Cuts all connections: whatever waits for an answer rejects. */
  close(): void {
    this.#isClosed = true;
    this.#connections.cut();
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

  /** Asks a partition's leader, and again while what goes wrong is what passes. */
  async #ask<T>(of: TopicPartition, request: (leader: Leader) => Promise<T>): Promise<T> {
    const doing = `reading ${of.topic}, partition ${of.partition}`;
    return await this.#again(doing, async () => await request(await this.#leaderOf(of)));
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
    const { brokers, topics } = await this.#knowing(topic);
    const found = topics.get(topic);
    if (found === undefined) {
      throw new KafkaFailure('topic_missing', `there is no topic ${topic}`, { answered: true });
    }
    const leader = found.leaders.get(partition);
    if (leader === undefined) throw passing(`${topic} has no partition ${partition} to read`);
    return { connection: await this.#connections.to(brokers.get(leader)), topicId: found.id };
  }

  async #knowing(topic: string) {
    if (this.#known?.topics.has(topic)) return this.#known;
    const requested = [...new Set([...(this.#known?.topics.keys() ?? []), topic])];
    const answer = await described(await this.#anyConnection(), requested);
    const brokers = new Map(answer.brokers.map((broker) => [broker.nodeId, broker]));
    const led = answer.topics.filter(({ errorCode }) => errorCode === 0);
    const topics: Topics = new Map(
      led.map(({ name, topicId, partitions }) => [
        name ?? '',
        {
          id: topicId,
          leaders: new Map(
            partitions.map(({ partitionIndex, leaderId }) => [partitionIndex, leaderId]),
          ),
        },
      ]),
    );
    this.#known = { brokers, topics };
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

type Topics = ReadonlyMap<
  string,
  { readonly id: string; readonly leaders: ReadonlyMap<number, number> }
>;

interface Leader {
  readonly connection: Connection;
  readonly topicId: string;
}

function passing(what: string): KafkaFailure {
  return new KafkaFailure('passing', what, { answered: true });
}

/** What is known of topics. A topic that is not there makes the library throw the whole answer. */
async function described(connection: Connection, topics: string[]) {
  try {
    return await metadataV12.api.async(connection, topics, false);
  } catch (error) {
    if (!(error instanceof ResponseError)) throw error;
    return error.response as metadataV12.MetadataResponse;
  }
}

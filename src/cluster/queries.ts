// Single requests to a cluster for commands that only look: the brokers, and the rights of this account to a topic, a group
// or a transactional id. Invariant: nothing is changed there.

import {
  type Broker,
  ConfigResourceTypes,
  type Connection,
  createTopicsV7,
  describeConfigsV4,
  describeGroupsV5,
  FindCoordinatorKeyTypes,
  findCoordinatorV4,
  initProducerIdV4,
  metadataV12,
  ResponseError,
} from '@platformatic/kafka';
import type { HostPort } from '../contracts/config.ts';
import type { Clock } from '../contracts/index.ts';
import { KafkaFailure } from '../kafka/index.ts';
import { Connections, kafkaFailureOf } from '../kafka/log-client.ts';
import { clusterError } from './failure.ts';
import { connectionOf, type StateLogSettings } from './log/settings.ts';

/** A topic as a broker describes it. */
export type DescribedTopic = metadataV12.MetadataResponseTopic;
/** A group as its coordinator describes it. */
export type DescribedGroup = describeGroupsV5.DescribeGroupsResponseGroup;

/** Errors of a coordinator that is being found or loaded; they are temporary. */
const passing = ['COORDINATOR_NOT_AVAILABLE', 'COORDINATOR_LOAD_IN_PROGRESS', 'NOT_COORDINATOR'];
/** The same as codes (https://kafka.apache.org/protocol.html#protocol_error_codes). */
const coordinatorCodes = [15, 14, 16];
/** GROUP_AUTHORIZATION_FAILED. */
const groupDenied = 30;
const pauseMs = 200;
const createMsMax = 10_000;
/** How long a coordinator may take to be there. */
const patienceMs = 10_000;
const transactionMs = 30_000;

/** Sends requests until it is closed. */
export class OwnerQuery {
  readonly #connections: Connections;
  readonly #brokers: readonly HostPort[];
  readonly #clock: Clock;

  constructor(settings: StateLogSettings, clock: Clock) {
    this.#connections = new Connections(connectionOf(settings));
    this.#brokers = settings.brokers;
    this.#clock = clock;
  }

  /** Resolves after a broker has accepted the connection. */
  async reach(broker: HostPort): Promise<void> {
    await this.#connections.to(broker);
  }

  /** The brokers, and the topics with the rights of this account, also missing topics. */
  async cluster(topics: readonly string[]): Promise<metadataV12.MetadataResponse> {
    const { async: send } = metadataV12.api;
    return await answered(send(await this.#any(), [...topics], false, true));
  }

  /** Settings of a topic, by Kafka's names. */
  async configs(
    topic: string,
    names: readonly string[],
  ): Promise<ReadonlyMap<string, string | null | undefined>> {
    const { async: send } = describeConfigsV4.api;
    const asked = { resourceType: ConfigResourceTypes.TOPIC, resourceName: topic };
    const requested = [{ ...asked, configurationKeys: [...names] }];
    const { results } = await send(await this.#any(), requested, false, false);
    return new Map(results[0]?.configs.map(({ name, value }) => [name, value]));
  }

  /** Resolves if a topic could be created. It is not created. */
  async couldMake(topic: createTopicsV7.CreateTopicsRequestTopic): Promise<void> {
    await createTopicsV7.api.async(await this.#any(), [topic], createMsMax, true);
  }

  /** A group; one without members if it does not exist. */
  async group(id: string): Promise<DescribedGroup | null> {
    return await this.#withCoordinator(FindCoordinatorKeyTypes.GROUP, id, async (coordinator) => {
      const answer = await answered(describeGroupsV5.api.async(coordinator, [id], true));
      const group = answer.groups[0] ?? null;
      // On a new cluster the coordinator is still loading, and names no rights although the account may have them.
      const name = passing[coordinatorCodes.indexOf(group?.errorCode ?? 0)];
      if (name === undefined) return group;
      const message = `Kafka answered ${name} (the group ${id})`;
      throw new KafkaFailure('passing', message, { answered: true });
    });
  }

  /** Members of a group; null: this account may not read it. Throws `sink_unreachable` or `sink_refused` otherwise. */
  async memberCount(id: string): Promise<number | null> {
    try {
      const group = await this.group(id);
      return group?.errorCode === groupDenied ? null : (group?.members.length ?? 0);
    } catch (error) {
      const failure = error instanceof KafkaFailure ? error : kafkaFailureOf(error);
      if (failure.kind === 'denied') return null;
      throw clusterError(failure, `reading the group ${id}`);
    }
  }

  /**
   * Resolves if this account may write under a transactional id. The request names an epoch without its producer: brokers
   * check the rights first and then refuse the request, so the present writer is not fenced.
   */
  async mayWriteUnder(transactionalId: string): Promise<void> {
    const type = FindCoordinatorKeyTypes.TRANSACTION;
    await this.#withCoordinator(type, transactionalId, async (coordinator) => {
      const { async: send } = initProducerIdV4.api;
      try {
        await send(coordinator, transactionalId, transactionMs, -1n, 0);
      } catch (error) {
        if (!isAnswer(error, 'INVALID_REQUEST')) throw error;
      }
    });
  }

  /** Cuts all connections: open requests reject. */
  close(): void {
    this.#connections.cut();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #withCoordinator<T>(
    type: 0 | 1,
    key: string,
    ask: (coordinator: Connection) => Promise<T>,
  ): Promise<T> {
    const deadline = this.#clock.monotonic() + patienceMs;
    for (;;) {
      try {
        const { async: find } = findCoordinatorV4.api;
        const { coordinators } = await find(await this.#any(), type, [key]);
        return await ask(await this.#connections.to(coordinators[0]));
      } catch (error) {
        const passes = passing.some((answer) => isAnswer(error, answer));
        if (!passes || this.#clock.monotonic() > deadline) throw error;
        await this.#clock.sleep(pauseMs);
      }
    }
  }

  async #any(): Promise<Connection> {
    let last: unknown;
    for (const broker of this.#brokers) {
      try {
        return await this.#connections.to(broker satisfies Broker);
      } catch (error) {
        last = error;
      }
    }
    throw last;
  }
}

/** True for a protocol error of that name. */
function isAnswer(error: unknown, name: string): boolean {
  return kafkaFailureOf(error).message.includes(`Kafka answered ${name} `);
}

/** A response with errors in some parts, which the library throws; returned unchanged. */
async function answered<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof ResponseError)) throw error;
    return error.response as T;
  }
}

// The producer of @platformatic/kafka 2.12.1 as the driver needs it: over the driver's connections, with some changed
// requests, and with the two requests for a position without a consumer. Versions of requests sent here are fixed: all
// brokers that the library supports (3.5 and newer) know them.

import {
  type API,
  addOffsetsToTxnV3,
  addPartitionsToTxnV3,
  apiVersionsV3,
  type Broker,
  type Callback,
  type CallbackWithPromise,
  type Connection,
  clientSoftwareName,
  clientSoftwareVersion,
  FindCoordinatorKeyTypes,
  findCoordinatorV4,
  kGetApi,
  kGetBootstrapConnection,
  kGetConnection,
  kListApis,
  kPerformWithRetry,
  type MessageRecord,
  MultipleErrors,
  offsetFetchV8,
  Producer,
  type ProducerOptions,
  txnOffsetCommitV3,
} from '@platformatic/kafka';
import { invariant } from '../contracts/index.ts';
import { Connections, type ConnectionsOptions } from './platformatic-connections.ts';
import type { CommittedPosition } from './port.ts';

/** Where a position in the spool is stored: a consumer group's offset of partition 0. */
export interface PositionPlace {
  readonly group: string;
  readonly topic: string;
}

/** Dependencies of a client. */
export interface ClientOptions {
  readonly brokers: readonly Broker[];
  readonly producer: Omit<ProducerOptions<Buffer, Buffer, Buffer, Buffer>, 'bootstrapBrokers'>;
  readonly connections: ConnectionsOptions;
}

/** A transaction of the library, from its begin to commit or abort. */
export type Transaction = NonNullable<Producer['transaction']>;

type ApiVersionsResponseApi = apiVersionsV3.ApiVersionsResponseApi;

/** The library's producer, extended. */
export class Client extends Producer {
  readonly #brokers: readonly Broker[];
  readonly #connections: Connections;
  /** By key type: there is one transactional id and one group. */
  readonly #coordinators = new Map<number, Broker>();

  constructor({ brokers, producer, connections }: ClientOptions) {
    super({
      ...{ ...producer, bootstrapBrokers: [...brokers] },
      // See kPerformWithRetry.
      repeatOnStaleMetadata: producer.transactionalId === undefined,
    });
    this.#brokers = brokers;
    this.#connections = new Connections(connections);
  }

  /** Adds partitions to the open transaction, if there is one. Repeats its request while the error is temporary. */
  async joinPartitions(topic: string, partitions: readonly number[]): Promise<void> {
    const { transaction } = this;
    if (transaction === undefined) return;
    const metadata = await this.metadata({ topics: [topic] });
    const parts = partitions.map((partition) => ({ topic, partition }) as MessageRecord);
    await transaction.addPartitions(metadata, parts);
  }

  /** The producer's id; without a transaction it is fetched at the first use. */
  async identity(): Promise<{ readonly producerId: bigint; readonly producerEpoch: number }> {
    if (this.producerId === undefined) await this.initIdempotentProducer({});
    const { producerId, producerEpoch } = this;
    invariant(producerId !== undefined && producerEpoch !== undefined, 'the producer has an id');
    return { producerId, producerEpoch };
  }

  /** The connection to a broker. */
  async connectionTo(nodeId: number): Promise<Connection> {
    const { brokers } = await this.metadata({ topics: [] });
    return await this.#connections.to(brokers.get(nodeId));
  }

  /** Commits `position` as part of the open transaction. */
  async commitPosition(
    { group, topic }: PositionPlace,
    { position, note }: CommittedPosition,
  ): Promise<void> {
    const { producerId, producerEpoch } = this;
    const id = this.transaction?.id;
    invariant(
      id !== undefined && producerId !== undefined && producerEpoch !== undefined,
      'a transaction is open',
    );
    const { TRANSACTION, GROUP } = FindCoordinatorKeyTypes;
    const partitions = [
      {
        partitionIndex: 0,
        committedOffset: BigInt(position),
        committedLeaderEpoch: -1,
        committedMetadata: note,
      },
    ];
    const topics = [{ name: topic, partitions }];
    await this.#request('AddOffsetsToTxn', async () => {
      const coordinator = await this.#coordinatorOf(TRANSACTION, id);
      await addOffsetsToTxnV3.api.async(coordinator, id, producerId, producerEpoch, group);
    });
    await this.#request('TxnOffsetCommit', async () => {
      const coordinator = await this.#coordinatorOf(GROUP, group);
      const { async: send } = txnOffsetCommitV3.api;
      // Generation -1 and no member: a group without members.
      await send(coordinator, id, group, producerId, producerEpoch, -1, '', null, topics);
    });
  }

  /** The position of the last finished transaction. Null: there is none. */
  async fetchPosition({ group, topic }: PositionPlace): Promise<CommittedPosition | null> {
    const asked = {
      groupId: group,
      memberEpoch: -1,
      topics: [{ name: topic, partitionIndexes: [0] }],
    };
    const { groups } = await this.#request('OffsetFetch', async () => {
      const coordinator = await this.#coordinatorOf(FindCoordinatorKeyTypes.GROUP, group);
      return await offsetFetchV8.api.async(coordinator, [asked], true);
    });
    const { committedOffset = -1n, metadata } = groups[0]?.topics[0]?.partitions[0] ?? {};
    return committedOffset < 0 ? null : { position: Number(committedOffset), note: metadata ?? '' };
  }

  /** Closes all connections cleanly. */
  async disconnect(): Promise<void> {
    await this.close(true);
    await this.#connections.close();
  }

  /** Cuts all connections; requests in flight reject, and nothing is retried. */
  cut(): void {
    void this.close(true);
    this.#connections.cut();
  }

  override [kGetConnection](broker: Broker, callback: Callback<Connection>): void {
    answer(this.#connections.to(broker), callback);
  }

  override [kGetBootstrapConnection](callback: Callback<Connection>, attempt = 0): void {
    answer(this.#anyConnection(attempt), callback);
  }

  override [kGetApi]<Asked extends unknown[], Answer>(
    name: string,
    callback: Callback<API<Asked, Answer>>,
  ): void {
    // From version 4 on, the request needs rights on the whole cluster.
    const { api } = addPartitionsToTxnV3;
    if (name === 'AddPartitionsToTxn') callback(null, api as unknown as API<Asked, Answer>);
    else super[kGetApi](name, callback);
  }

  // In a transaction no request with records is repeated: a failed transaction is aborted, and another producer sends
  // the records again. The library would repeat it with the same sequence numbers, but for all partitions to the leader
  // of the first one.
  override [kPerformWithRetry]<T>(
    what: string,
    request: (callback: Callback<T>, attempt: number) => void,
    callback: CallbackWithPromise<T>,
    attempt = 0,
    errors: Error[] = [],
    ...[shouldSkip, retriesMax]: [skip?: (error: Error) => boolean, retriesMax?: number]
  ): Promise<T> | undefined {
    const max = what === 'produce' && this.transaction !== undefined ? 0 : retriesMax;
    const asked = super[kPerformWithRetry](
      what,
      request,
      callback,
      attempt,
      errors,
      shouldSkip,
      max,
    );
    return asked ?? undefined;
  }

  // The library would retry this several times within each of its own attempts.
  override [kListApis](callback: CallbackWithPromise<ApiVersionsResponseApi[]>): void {
    answer(this.#apis(), callback);
  }

  async #apis(): Promise<ApiVersionsResponseApi[]> {
    const { async: ask } = apiVersionsV3.api;
    const asked = await this.#anyConnection(0);
    const { apiKeys } = await ask(asked, clientSoftwareName, clientSoftwareVersion);
    return apiKeys;
  }

  async #anyConnection(attempt: number): Promise<Connection> {
    const brokers = [...this.#brokers, ...(this.currentMetadata?.brokers.values() ?? [])];
    const errors: Error[] = [];
    for (let i = 0; i < brokers.length; i++) {
      try {
        return await this.#connections.to(brokers[(attempt + i) % brokers.length]);
      } catch (error) {
        errors.push(error as Error); // the library throws nothing else
      }
    }
    throw new MultipleErrors('no broker can be reached', errors);
  }

  async #coordinatorOf(keyType: number, key: string): Promise<Connection> {
    const known = this.#coordinators.get(keyType);
    if (known !== undefined) return await this.#connections.to(known);
    const asked = await this.#anyConnection(0);
    const { coordinators } = await findCoordinatorV4.api.async(asked, keyType, [key]);
    const [found] = coordinators;
    if (found !== undefined) this.#coordinators.set(keyType, found);
    return await this.#connections.to(found);
  }

  /** Requests as the library does: repeated after a pause while the error is temporary. */
  #request<T>(what: string, request: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const settle: Callback<T> = (error, result) => {
        if (error === null) resolve(result as T);
        else reject(error);
      };
      const attempt = async () => {
        try {
          return await request();
        } catch (error) {
          this.#coordinators.clear(); // it may be another broker by now
          throw error;
        }
      };
      void this[kPerformWithRetry]<T>(what, (callback) => answer(attempt(), callback), settle);
    });
  }
}

// The library handles no errors thrown outside of a call: they would show as a missing response.
function answer<T>(promise: Promise<T>, callback: Callback<T>): void {
  promise
    .then(
      (value) => callback(null, value),
      (error) => callback(error),
    )
    .catch(() => undefined);
}

// Replaces @platformatic/kafka in a simulated cluster: the same names. The requests of src/cluster reach the
// modelled brokers over a network that delays, loses and cuts. Invariant: a request without a response may have
// been executed, and may be executed after its sender has given up.

import { EventEmitter } from 'node:events';
import { NetworkError } from '../../../node_modules/@platformatic/kafka/dist/index.js';
import { type Brokers, type Log, type Producing, refused, type Sent } from './broker.ts';
import type { Course, Life } from './course.ts';
import type { Groups, Joining } from './group.ts';

export * from '../../../node_modules/@platformatic/kafka/dist/index.js';

/** The target of a process's connections. */
export interface Network {
  readonly course: Course;
  readonly brokers: Brokers;
  readonly groups: Groups;
  readonly life: Life;
  /** Brokers receive the instance names of processes; otherwise each start is another member. */
  readonly hearsNames: boolean;
  isTroubled(): boolean;
}

/** By the host name by which a process knows its broker. */
export const networks = new Map<string, Network>();

const port = 9092;
/** Interval of a long poll's checks. */
const lookEveryMs = 100;

class Line {
  readonly network: Network;
  readonly #cuts = new Set<(error: Error) => void>();
  isCut = false;

  constructor(host: string) {
    const network = networks.get(host);
    if (network === undefined) throw new Error(`nobody has made a network for ${host}`);
    this.network = network;
  }

  cut(): void {
    this.isCut = true;
    for (const reject of this.#cuts) reject(new NetworkError('the connection was closed'));
    this.#cuts.clear();
  }

  /** Executes a request on the brokers. */
  call<T>(carryOut: () => T | Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const end = (error: Error) => {
        this.#cuts.delete(end);
        reject(error);
      };
      if (this.isCut) return reject(new NetworkError('the connection was closed'));
      this.#cuts.add(end);
      const answered = (value: T) => {
        this.#cuts.delete(end);
        resolve(value);
      };
      this.#send(carryOut, answered, end);
    });
  }

  #send<T>(carryOut: () => T | Promise<T>, answer: (value: T) => void, fail: (e: Error) => void) {
    const { course, brokers, life, isTroubled } = this.network;
    const { random } = course;
    const lost = () => fail(new NetworkError('no answer came'));
    const isLost = isTroubled() && random.chance(0.01);
    if (isLost || brokers.isOut || life.cutFromKafkaUntil > course.now) {
      course.after(500 + random.below(3_000), life, lost);
      // The request may only have been slow.
      const isLate = isLost && random.chance(0.5);
      if (isLate) course.after(random.below(5_000), null, () => void attempt(carryOut));
      return;
    }
    const carry = async () => {
      const { value, error } = await attempt(carryOut);
      const isAnswerLost = isTroubled() && random.chance(0.01);
      const ms = isAnswerLost ? 500 + random.below(3_000) : 1 + random.below(5);
      course.after(ms, life, () => {
        if (isAnswerLost || life.cutFromKafkaUntil > course.now) lost();
        else if (error !== undefined) fail(error);
        else answer(value as T);
      });
    };
    course.after(1 + random.below(5), null, () => void carry());
  }
}

async function attempt<T>(carryOut: () => T | Promise<T>) {
  try {
    return { value: await carryOut() };
  } catch (error) {
    return { error: error as Error };
  }
}

/** A connection. */
export class Connection extends EventEmitter {
  line: Line | null = null;
  socket = { destroy: () => this.line?.cut() };
  readonly requestMsMax: number;

  constructor(_clientId: string, { requestTimeout = 30_000 }: { requestTimeout?: number }) {
    super();
    this.requestMsMax = requestTimeout;
  }

  connect(host: string): Promise<void> {
    this.line = new Line(host);
    return this.line.call(() => undefined);
  }

  async close(): Promise<void> {
    this.line?.cut();
  }
}

function lineOf({ line }: Connection): Line {
  if (line === null) throw new NetworkError('not connected');
  return line;
}

function hostOf({ network: { life } }: Line) {
  return { nodeId: 0, host: life.name, port, rack: null };
}

/** A request in the form of the library. */
function api<Args extends unknown[], T>(
  carryOut: (network: Network, line: Line, ...args: Args) => T | Promise<T>,
) {
  return {
    api: {
      async: async (connection: Connection, ...args: Args): Promise<T> => {
        const line = lineOf(connection);
        return await line.call(() => carryOut(line.network, line, ...args));
      },
    },
  };
}

export const findCoordinatorV4 = api((_network, line) => ({ coordinators: [hostOf(line)] }));

export const metadataV12 = api(({ brokers }, line, names: string[]) => {
  const topics = names.map((name) => {
    const partitions = brokers
      .partitionsOf(name)
      .map((partitionIndex) => ({ partitionIndex, leaderId: 0 }));
    const errorCode = partitions.length > 0 ? 0 : 3;
    return { errorCode, name, topicId: name, partitions };
  });
  return { brokers: [hostOf(line)], topics };
});

export const describeConfigsV4 = api((_network, _line, asked: { resourceName: string }[]) => {
  const results = asked.map(({ resourceName }) => {
    const isState = !/\.(?:pages|shards)$/.test(resourceName);
    const configs = isState
      ? [['cleanup.policy', 'compact'] as const]
      : [
          ['cleanup.policy', 'delete'] as const,
          ['retention.ms', '-1'] as const,
          ['retention.bytes', '-1'] as const,
        ];
    return { resourceName, configs: configs.map(([name, value]) => ({ name, value })) };
  });
  return { results };
});

export const createTopicsV7 = api(() => {
  throw refused(36);
});

export const listOffsetsV8 = api(
  (
    { brokers },
    _line,
    _replica: number,
    isolation: number,
    [topic]: { name: string; partitions: { partitionIndex: number; timestamp: bigint }[] }[],
  ) => {
    const log = brokers.log(topic?.name ?? '', topic?.partitions[0]?.partitionIndex);
    const end = isolation === 1 ? log.stable : log.end;
    const offset = topic?.partitions[0]?.timestamp === -2n ? log.start : end;
    return { topics: [{ partitions: [{ offset: BigInt(offset) }] }] };
  },
);

export const deleteRecordsV2 = api(
  (
    { brokers },
    _line,
    [topic]: { name: string; partitions: { partitionIndex: number; offset: bigint }[] }[],
    _patience: number,
  ) => {
    const log = brokers.log(topic?.name ?? '', topic?.partitions[0]?.partitionIndex);
    log.start = Math.max(log.start, Number(topic?.partitions[0]?.offset ?? 0n));
    log.batches = log.batches.filter(({ last }) => last >= log.start);
  },
);

export const fetchV15 = api(
  async (
    { brokers, course },
    _line,
    waitMs: number,
    ...[, , , , , topics]: [
      number,
      number,
      number,
      number,
      number,
      { topicId: string; partitions: { partition: number; fetchOffset: bigint }[] }[],
    ]
  ) => {
    const asked = topics[0]?.partitions[0];
    const log = brokers.log(topics[0]?.topicId ?? '', asked?.partition);
    const from = Number(asked?.fetchOffset);
    if (from < log.start) throw refused(1);
    for (let waited = 0; from >= log.stable && waited < waitMs; waited += lookEveryMs) {
      await course.wait(lookEveryMs, null);
    }
    const most = 1 + course.random.below(8);
    return { responses: [{ partitions: [fetched(log, from, most)] }] };
  },
);

/** With read_committed: no record after the first open transaction, and a list of the aborted ones. */
function fetched(log: Log, from: number, most: number) {
  const { stable } = log;
  const batches = log.batches
    .filter(({ first, last }) => last >= from && first < stable)
    .slice(0, most);
  const until = batches.at(-1)?.last ?? from;
  return {
    abortedTransactions: log.aborted
      .filter(({ first, last }) => last >= from && first <= until)
      .map(({ producerId, first }) => ({ producerId, firstOffset: BigInt(first) })),
    records: batches.map(({ first, last, producerId, commits, records }) => ({
      firstOffset: BigInt(first),
      lastOffsetDelta: last - first,
      attributes: 16 | (commits === null ? 0 : 32),
      producerId,
      records:
        commits === null
          ? records.map(({ offset, ...record }) => ({ offsetDelta: offset - first, ...record }))
          : [{ offsetDelta: 0, key: Buffer.from([0, 0, 0, commits ? 1 : 0]), value: null }],
    })),
  };
}

/** A request that waits for others: an older request of the same member may get the response. */
function waiting<Args extends unknown[], T>(
  carryOut: (network: Network, line: Line, ...args: Args) => Promise<T>,
) {
  const { async: send } = api(carryOut).api;
  const within = (connection: Connection, ...args: Args) =>
    new Promise<T>((resolve, reject) => {
      const { course, life } = lineOf(connection).network;
      const late = () => reject(new NetworkError('no answer came in time'));
      course.after(connection.requestMsMax, life, late);
      send(connection, ...args).then(resolve, reject);
    });
  return { api: { async: async (...given: [Connection, ...Args]) => await within(...given) } };
}

export const joinGroupV9 = waiting(
  (
    { groups, hearsNames, life },
    _line,
    ...args: [string, number, number, string, string | null, string, { metadata: Buffer }[]]
  ) => {
    const [id, sessionMs, , memberId, name, , protocols] = args;
    const instance = hearsNames ? name : null;
    const metadata = protocols[0]?.metadata ?? Buffer.alloc(0);
    const joining: Joining = { who: life.name, sessionMs, memberId, instance, metadata };
    return groups.of(id).join(joining);
  },
);

export const syncGroupV5 = waiting(
  async (
    { groups },
    _line,
    ...args: [
      string,
      number,
      string,
      string | null,
      string,
      string,
      { memberId: string; assignment: Buffer }[],
    ]
  ) => {
    const [id, generation, memberId, , , , given] = args;
    return { assignment: await groups.of(id).sync(generation, memberId, given) };
  },
);

export const heartbeatV4 = api(
  ({ groups }, _line, id: string, generation: number, memberId: string) =>
    groups.of(id).heartbeat(generation, memberId),
);

export const leaveGroupV5 = api(({ groups }, _line, id: string, [who]: { memberId: string }[]) =>
  groups.of(id).leave(who?.memberId ?? ''),
);

export const describeGroupsV5 = api(({ groups }, _line, [id = '']: string[]) => ({
  groups: [{ groupId: id, members: groups.of(id).described() }],
}));

interface ProducerOptions {
  readonly bootstrapBrokers: readonly { readonly host: string }[];
  readonly transactionalId: string;
}

interface Message extends Sent {
  readonly topic: string;
  readonly partition: number;
}

/** A producer with transactions. It retries nothing: its user must. */
export class Producer {
  readonly #line: Line;
  readonly #id: string;
  #by: Producing | null = null;

  constructor({ bootstrapBrokers, transactionalId }: ProducerOptions) {
    this.#line = new Line(bootstrapBrokers[0]?.host ?? '');
    this.#id = transactionalId;
  }

  async beginTransaction() {
    const { brokers } = this.#line.network;
    // The library keeps its records until an end is refused.
    this.#by ??= await this.#line.call(() => brokers.begin(this.#id));
    const by = this.#by;
    return {
      send: ({ messages }: { messages: readonly Message[] }) => this.#produce(by, messages),
      commit: () => this.#line.call(() => brokers.commit(by)),
    };
  }

  async #produce(by: Producing, messages: readonly Message[]) {
    const { brokers } = this.#line.network;
    // All records belong to one shard, so to one partition of each topic.
    const topics = [...Map.groupBy(messages, ({ topic }) => topic).values()];
    const logs = topics.map(([first]) => brokers.log(first?.topic ?? '', first?.partition));
    await this.#line.call(() => brokers.addPartitions(by, logs));
    // Each partition has its own leader.
    const offsets = await Promise.all(
      topics.map(async (own, n) => {
        const log = logs[n] as Log;
        const records = own.map(({ key, value }) => ({ key, value }));
        const offset = await this.#line.call(() => brokers.produce(by, log, records));
        return { topic: log.topic, partition: log.partition, offset: BigInt(offset) };
      }),
    );
    return { offsets };
  }

  async close(): Promise<void> {
    this.#line.cut();
  }
}

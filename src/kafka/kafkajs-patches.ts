// Patches of kafkajs 2.2.4 for the whole process: codecs, requests with batches that sluice has encoded, no timer without
// pending requests, the end of a topic for readers of all records, no aborted record for readers of committed ones, and
// short sessions.

import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { gunzip, zstdDecompress } from 'node:zlib';
import { type Compression, compressed } from '../contracts/config.ts';
import { type PartitionBatch, requestOfBatches } from './record-batch.ts';

// Unexported parts of kafkajs have no types; the version is pinned, and tests detect a change.
const load = createRequire(import.meta.url);
/** kafkajs with its public types. */
export const kafkajs = load('kafkajs') as typeof import('kafkajs');
const { CompressionCodecs, CompressionTypes } = kafkajs;
/** The checksum of record batches (CRC-32C). */
export const crc32c = load('kafkajs/src/protocol/recordBatch/crc32C') as (
  bytes: Uint8Array,
) => number;

interface BrokerRequests {
  listOffsets(fields: object): Promise<unknown>;
  fetch(fields: object): Promise<{
    readonly responses: readonly { readonly partitions: readonly KafkajsPartition[] }[];
  }>;
}

interface ProduceFields {
  readonly acks: number;
  readonly timeout: number;
  readonly transactionalId?: string | null;
  readonly topicData: readonly {
    readonly topic: string;
    readonly partitions: readonly { readonly partition: number; readonly batch?: Buffer }[];
  }[];
}

interface ProduceRequest {
  encode(): Promise<object>;
}

interface Connection {
  readonly authenticatedAt: [seconds: number, nanoseconds: number] | null;
  /** Milliseconds; 0: without an end. */
  readonly sessionLifetime: { toNumber(): number };
  isAuthenticated(): boolean;
}

/** Kafkajs authenticates again after this share of a session. */
const sessionShare = 0.8;

type MakeProduceRequest = (fields: ProduceFields) => ProduceRequest;

interface SocketRequest {
  readonly requestTimeout: number;
  send(): void;
  timeoutRequest(): void;
}

interface RequestQueue {
  readonly enforceRequestTimeout: boolean;
  readonly requestTimeout: number;
  readonly maxInFlightRequests: number | null;
  readonly inflight: ReadonlyMap<number, SocketRequest>;
  readonly pending: readonly unknown[];
  /** Monotonic milliseconds, by these patches. */
  throttledUntil: number;
  throttleCheckTimeoutId: NodeJS.Timeout | null;
  requestTimeoutIntervalId: NodeJS.Timeout | null;
  readonly isConnected: () => boolean;
  destroy(): void;
  checkPendingRequests(): void;
  maybeThrottle(ms: number | null): void;
  canSendSocketRequestImmediately(): boolean;
  scheduleCheckPendingRequests(): void;
  scheduleRequestTimeoutCheck(): void;
}

/** A request may be sent that waits for no throttle. */
const pendingEveryMs = 10;
const timeoutEveryMs = 100;

/** Versions of the produce request that use the record batch format of record-batch.ts. */
const produceVersions = [3, 4, 5, 6, 7];

let prepared = false;

/** Applies the patches, once for the process. */
export function prepareKafkajs(): void {
  if (prepared) return;
  prepared = true;
  // zstd, and gzip at the level that other sinks use.
  CompressionCodecs[CompressionTypes.GZIP] = () => codecOf('gzip', promisify(gunzip));
  CompressionCodecs[CompressionTypes.ZSTD] = () => codecOf('zstd', promisify(zstdDecompress));
  // Patch each version: a version that was loaded earlier keeps the version 3 that it found.
  for (const version of produceVersions) {
    putIn(`kafkajs/src/protocol/requests/produce/v${version}/request`, produceRequests);
  }
  measureByMonotonicClock();
  // Kafkajs authenticates again 10 s before the end of a session (KIP-368): of a session of 10 s or less, at each request,
  // which brokers refuse with ILLEGAL_SASL_STATE if it comes within a second.
  const connection = load('kafkajs/src/network/connection').prototype as Connection;
  connection.isAuthenticated = function isInSession(this: Connection): boolean {
    const { authenticatedAt } = this;
    if (authenticatedAt === null) return false;
    const sessionMs = this.sessionLifetime.toNumber() * sessionShare;
    if (sessionMs === 0) return true;
    const [seconds, nanoseconds] = process.hrtime(authenticatedAt);
    return seconds * 1e3 + nanoseconds / 1e6 < sessionMs;
  };
  // By default kafkajs reads the offset of the oldest unfinished transaction as the end of a topic, and a transaction
  // acknowledged as committed may not be finished yet.
  const requests = load('kafkajs/src/broker').prototype as BrokerRequests;
  const list = requests.listOffsets;
  requests.listOffsets = function listAll(this: BrokerRequests, fields) {
    return list.call(this, { ...fields, isolationLevel: 0 });
  };
  const fetch = requests.fetch;
  requests.fetch = async function fetchCommitted(this: BrokerRequests, fields) {
    const response = await fetch.call(this, fields);
    for (const { partitions } of response.responses) partitions.forEach(hideAborted);
    return response;
  };
}

/**
 * Kafkajs measures the throttle and the timeouts of requests by the wall clock. If that is set back by an hour, no request is
 * sent, or none times out, for an hour.
 */
function measureByMonotonicClock(): void {
  const sentMs = new WeakMap<SocketRequest, number>();
  const request = load('kafkajs/src/network/requestQueue/socketRequest').prototype as SocketRequest;
  const send = request.send;
  request.send = function sendTimed(this: SocketRequest): void {
    send.call(this);
    sentMs.set(this, performance.now());
  };
  const queue = load('kafkajs/src/network/requestQueue').prototype as RequestQueue;
  queue.scheduleRequestTimeoutCheck = function checkTimeouts(this: RequestQueue): void {
    if (!this.enforceRequestTimeout) return;
    this.destroy();
    const check = () => {
      const now = performance.now();
      for (const sent of this.inflight.values()) {
        if (now - (sentMs.get(sent) ?? now) > sent.requestTimeout) sent.timeoutRequest();
      }
      if (!this.isConnected()) this.destroy();
    };
    this.requestTimeoutIntervalId = setInterval(
      check,
      Math.min(this.requestTimeout, timeoutEveryMs),
    );
  };
  queue.maybeThrottle = function throttle(this: RequestQueue, ms: number | null): void {
    if (ms !== null && ms > 0)
      this.throttledUntil = Math.max(performance.now() + ms, this.throttledUntil);
  };
  queue.canSendSocketRequestImmediately = function canSend(this: RequestQueue): boolean {
    const most = this.maxInFlightRequests ?? Number.POSITIVE_INFINITY;
    return this.inflight.size < most && this.throttledUntil <= performance.now();
  };
  // Kafkajs sets a timer for a moment in the past after every response, about which Node warns (tulios/kafkajs issue 1751).
  // Without waiting requests the timer has nothing to do.
  queue.scheduleCheckPendingRequests = function checkPending(this: RequestQueue): void {
    if (this.pending.length === 0 || this.throttleCheckTimeoutId !== null) return;
    const waitMs = Math.max(this.throttledUntil - performance.now(), pendingEveryMs);
    this.throttleCheckTimeoutId = setTimeout(() => {
      this.throttleCheckTimeoutId = null;
      this.checkPendingRequests();
    }, waitMs);
  };
}

/**
 * Replaces the exports of a module. Kafkajs requires these modules at each use, so the loading order does not matter.
 */
function putIn<T>(path: string, made: (of: T) => T): void {
  const found = load(path) as T;
  const module = load.cache[load.resolve(path)];
  if (module !== undefined) module.exports = made(found);
}

/** Makes produce requests from batches that are already encoded (sending.ts). Kafkajs makes all other requests. */
function produceRequests(make: MakeProduceRequest): MakeProduceRequest {
  const Encoder = load('kafkajs/src/protocol/encoder') as new (
    bytes: number,
  ) => { writeBuffer(bytes: Buffer): object };
  return (fields) => {
    const batches = batchesOf(fields);
    if (batches === null) return make(fields);
    const encode = async () => {
      const { acks, timeout: timeoutMs, transactionalId = null } = fields;
      const bytes = requestOfBatches(batches, { acks, timeoutMs, transactionalId });
      return new Encoder(bytes.length).writeBuffer(bytes);
    };
    return { ...make(fields), encode };
  };
}

/** Null if a part of the request was not encoded here. */
function batchesOf({ topicData }: ProduceFields): readonly PartitionBatch[] | null {
  const parts = topicData.flatMap(({ topic, partitions }) =>
    partitions.map(({ partition, batch }) =>
      batch === undefined ? null : { topic, partition, batch },
    ),
  );
  return parts.every((part) => part !== null) ? parts : null;
}

function codecOf(method: Compression, decompress: (bytes: Buffer) => Promise<Buffer>) {
  return {
    compress: async ({ buffer }: { readonly buffer: Buffer }) =>
      Buffer.from(await compressed(buffer, method)),
    decompress,
  };
}

// Hides the records of aborted transactions in a fetch response of kafkajs 2.2.4, by the rule of Apache's Java client
// (`CompletedFetch`). Kafkajs's own filter takes aborted transactions in the order of the response, and at most one per record.
// A broker lists them in the order of their ends. So records of several writers that were killed together, and whose
// transactions ended in another order than they began, passed as committed. Invariant: a consumer of committed records gets a
// record if and only if its transaction was committed.

/** One partition's part of a fetch response, as far as it is used. Offsets and producer ids are decimal. */
export interface KafkajsPartition {
  /** Absent or null: the consumer reads uncommitted records too. */
  abortedTransactions?:
    | readonly { readonly producerId: string; readonly firstOffset: string }[]
    | null;
  readonly messages: readonly KafkajsRecord[];
}

/** A record of a fetch response. */
export interface KafkajsRecord {
  readonly offset: string;
  readonly key: Buffer | null;
  /** Consumers of kafkajs get no such record, and continue after it. */
  isControlRecord?: boolean;
  /** Absent: a record of an old format, which has no transactions. */
  readonly batchContext?: { readonly producerId: string; readonly inTransaction: boolean };
}

/** The type of a control record that ends an aborted transaction: the second 16 bits of its key. */
const abortMarker = 0;

/** Marks the records of aborted transactions as control records, and empties the list that kafkajs filters by. */
export function hideAborted(partition: KafkajsPartition): void {
  const aborted = (partition.abortedTransactions ?? []).toSorted((a, b) =>
    BigInt(a.firstOffset) < BigInt(b.firstOffset) ? -1 : 1,
  );
  if (aborted.length === 0) return;
  const open = new Set<string>();
  for (const record of partition.messages) {
    const offset = BigInt(record.offset);
    for (let [first] = aborted; first && BigInt(first.firstOffset) <= offset; [first] = aborted) {
      open.add(first.producerId);
      aborted.shift();
    }
    const { producerId = '', inTransaction = false } = record.batchContext ?? {};
    if (record.isControlRecord === true) {
      if (record.key?.readInt16BE(2) === abortMarker) open.delete(producerId);
    } else if (inTransaction && open.has(producerId)) record.isControlRecord = true;
  }
  partition.abortedTransactions = [];
}

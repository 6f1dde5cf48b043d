// What kafkajs 2.2.4 lacks and is put into it, for the whole process: codecs, requests of our records
// in few pieces, a timer that it sets for nothing, and the end of a topic as every record has it.

import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { gunzip, zstdDecompress } from 'node:zlib';
import { type Compression, compressed } from '../../shared/compression.ts';
import type { KafkaRecord } from './port.ts';
import { produceRequest } from './record-batch.ts';

// What is not exported by kafkajs is without a type; the version is pinned, and tests see when this
// stops working.
const load = createRequire(import.meta.url);
putIn('kafkajs/src/producer/groupMessagesPerPartition', () => groupedByPartition);
/** kafkajs, loaded after what it takes in while it is loaded. */
export const kafkajs = load('kafkajs') as typeof import('kafkajs');
const { CompressionCodecs, CompressionTypes } = kafkajs;

interface OffsetLister {
  listOffsets(asked: object): Promise<unknown>;
}

interface ProduceAsked {
  readonly acks: number;
  readonly timeout: number;
  readonly compression: number;
  readonly transactionalId?: string | null;
  /** A number in 64 bits, of a class of its own. */
  readonly producerId: { toString(): string };
  readonly producerEpoch: number;
  readonly topicData: readonly {
    readonly topic: string;
    readonly partitions: readonly {
      readonly partition: number;
      readonly firstSequence: number;
      readonly messages: readonly object[];
    }[];
  }[];
}

interface ProduceRequest {
  encode(): Promise<object>;
}

type MakeProduceRequest = (asked: ProduceAsked) => ProduceRequest;

interface RequestQueue {
  readonly pending: readonly unknown[];
  scheduleCheckPendingRequests(): void;
}

let prepared = false;

/** Puts in what is missing, once for the process. */
export function prepareKafkajs(): void {
  if (prepared) return;
  prepared = true;
  // zstd, and gzip at the level that other sinks use.
  CompressionCodecs[CompressionTypes.GZIP] = () => codecOf('gzip', promisify(gunzip));
  CompressionCodecs[CompressionTypes.ZSTD] = () => codecOf('zstd', promisify(zstdDecompress));
  putIn('kafkajs/src/protocol/requests/produce/v3/request', produceRequests);
  // After every answer it sets a timer for a moment in the past, of which Node warns
  // (tulios/kafkajs issue 1751): without requests that wait there is nothing that the timer would
  // look for.
  const queue = load('kafkajs/src/network/requestQueue').prototype as RequestQueue;
  const schedule = queue.scheduleCheckPendingRequests;
  queue.scheduleCheckPendingRequests = function scheduleIfPending(this: RequestQueue): void {
    if (this.pending.length > 0) schedule.call(this);
  };
  // The end of a topic as kafkajs asks for it is where the oldest unfinished transaction begins,
  // and one that was answered as committed may not be finished yet.
  const lister = load('kafkajs/src/broker').prototype as OffsetLister;
  const list = lister.listOffsets;
  lister.listOffsets = function listAll(this: OffsetLister, asked) {
    return list.call(this, { ...asked, isolationLevel: 0 });
  };
}

/** Puts another thing in a module's place, before others load it. */
function putIn<T>(path: string, made: (of: T) => T): void {
  const found = load(path) as T;
  const module = load.cache[load.resolve(path)];
  if (module !== undefined) module.exports = made(found);
}

interface Grouping {
  readonly topic: string;
  readonly partitionMetadata: readonly object[];
  readonly messages: readonly object[];
  readonly partitioner: (of: object) => number;
}

/** What kafkajs does by copying all records that a partition has with each one that it gets. */
function groupedByPartition({ messages, partitioner, ...of }: Grouping) {
  if (of.partitionMetadata.length === 0) return {};
  const grouped = Map.groupBy(messages, (message) => partitioner({ ...of, message }));
  return Object.fromEntries(grouped);
}

/**
 * Makes requests to produce that have records of ours only; others kafkajs makes. It is asked for
 * version 3, of which kafkajs makes the later ones, and which it loads when it first needs it.
 */
function produceRequests(make: MakeProduceRequest): MakeProduceRequest {
  const Encoder = load('kafkajs/src/protocol/encoder') as new (
    bytes: number,
  ) => { writeBuffer(bytes: Buffer): object };
  const crc32c = load('kafkajs/src/protocol/recordBatch/crc32C') as (bytes: Uint8Array) => number;
  const encode = async (asked: ProduceAsked) => {
    const parts = asked.topicData.flatMap(({ topic, partitions }) =>
      partitions.map(({ messages, ...part }) => ({
        ...{ topic, ...part },
        records: messages as readonly KafkaRecord[],
      })),
    );
    const { acks, timeout, transactionalId = null, producerId, producerEpoch } = asked;
    const bytes = await produceRequest(parts, {
      ...{ acks, timeoutMs: timeout, transactionalId, producerEpoch, crc32c },
      compression: nameOf(asked.compression),
      producerId: BigInt(producerId.toString()),
    });
    return new Encoder(bytes.length).writeBuffer(bytes);
  };
  return (asked) =>
    isOfOurs(asked) ? { ...make(asked), encode: () => encode(asked) } : make(asked);
}

function isOfOurs({ topicData }: ProduceAsked): boolean {
  // Not by its class: the library is patched once, and our modules may be loaded again (as by a test runner).
  const isOurs = (message: object) => 'uid' in message;
  return topicData.every(({ partitions }) =>
    partitions.every(({ messages }) => messages.every(isOurs)),
  );
}

function nameOf(compression: number): Compression {
  if (compression === CompressionTypes.ZSTD) return 'zstd';
  return compression === CompressionTypes.GZIP ? 'gzip' : 'none';
}

function codecOf(method: Compression, decompress: (bytes: Buffer) => Promise<Buffer>) {
  return {
    compress: async ({ buffer }: { readonly buffer: Buffer }) =>
      Buffer.from(await compressed(buffer, method)),
    decompress,
  };
}

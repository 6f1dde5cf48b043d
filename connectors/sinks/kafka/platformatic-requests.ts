// The requests that @platformatic/kafka makes for us otherwise than it would: partitions are asked
// for as a client may, and a request to produce records of ours is written in few pieces. What must
// stay true: the library counts messages for its sequence numbers, so each record is one of them.

import {
  addPartitionsToTxnV3,
  crc32c,
  createAPI,
  type MessageRecord,
  ProduceAcks,
  produceV8,
  Writer,
} from '@platformatic/kafka';
import type { Compression } from '../../shared/compression.ts';
import { KafkaRecord } from './port.ts';
import { produceRequest } from './record-batch.ts';

/** A record on its way through the library, which counts it and looks at its place only. */
export function messageOf(record: KafkaRecord, topic: string, partition: number) {
  return { topic, partition, value: record as unknown as Buffer };
}

/** By their names. Versions are fixed: all brokers that the library supports (3.5 and newer) know them. */
export const ownRequests: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  // From version 4 on it asks for rights on the whole cluster.
  ['AddPartitionsToTxn', addPartitionsToTxnV3.api],
  ['Produce', createAPI(0, 8, requestOf, produceV8.parseResponse, false, false)],
]);

/** A request to produce; one of records that are not ours is made by the library. */
function requestOf(...asked: produceV8.ProduceRequest): Writer | Promise<Writer> {
  const [, , messages] = asked;
  return messages.every(({ value }) => (value as unknown) instanceof KafkaRecord)
    ? ourRequest(...asked)
    : produceV8.createRequest(...asked);
}

async function ourRequest(...asked: produceV8.ProduceRequest): Promise<Writer> {
  const [acks = ProduceAcks.ALL, timeoutMs = 0, messages, options = {}] = asked;
  const { sequences, transactionalId = null, producerId = -1n, producerEpoch = 0 } = options;
  const parts = Array.from(Map.groupBy(messages, placeOf), ([place, some]) => ({
    topic: some[0]?.topic ?? '',
    partition: some[0]?.partition ?? 0,
    firstSequence: sequences?.get(place) ?? 0,
    records: some.map(({ value }) => value as unknown as KafkaRecord),
  }));
  const settings = { acks, timeoutMs, transactionalId, producerId, producerEpoch, crc32c };
  // The sink's own setting, on its way through the library.
  const compression = (options.compression ?? 'none') as Compression;
  return Writer.create().append(await produceRequest(parts, { ...settings, compression }));
}

/** As the library keeps sequence numbers. */
function placeOf({ topic, partition }: MessageRecord): string {
  return `${topic}:${partition}`;
}

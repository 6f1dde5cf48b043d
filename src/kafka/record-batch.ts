// Encodes a record batch of one partition (Kafka protocol guide, "Record Batch") into one buffer. Clients create
// several objects and buffers per record, which takes more time than all earlier steps for an event. Invariant: records
// are in the batch in the order of the list, because offsets and sequence numbers count them.

import { type Compression, compressed } from '../contracts/config.ts';
import type { KafkaRecord } from './port.ts';

/** How batches are encoded. */
export interface BatchSettings {
  readonly compression: Compression;
  readonly transactionalId: string | null;
  readonly producerId: bigint;
  readonly producerEpoch: number;
  readonly crc32c: (bytes: Uint8Array) => number;
}

/** One partition's part of a request. */
export interface PartitionRecords {
  readonly topic: string;
  readonly partition: number;
  /** The sequence number of the first record. */
  readonly firstSequence: number;
  readonly records: readonly KafkaRecord[];
}

/** Bytes of a batch before its records. */
export const batchHeadBytes = 61;
/**
 * A record adds at most 5 + 1 + 10 + 5 bytes for length, attributes, timestamp and offset, 5 each for the lengths of
 * key and value, and for the header its count, its name and two lengths.
 */
const recordOverhead = 48;
const codecs: Readonly<Record<Compression, number>> = { none: 0, gzip: 1, zstd: 4 };
const transactionalBit = 1 << 4;
const magic = 2;
/** The checksum covers all later bytes. */
const checkedFrom = 21;
const uidName = Buffer.from('uid');

/** Upper bound of a record's bytes before compression; not less than the broker counts. */
export function recordBytes({ key, value, uid }: KafkaRecord): number {
  return recordOverhead + (key?.length ?? 0) + value.length + uid.length;
}

/** An encoded record batch: a repeated request sends the same bytes. */
export interface PartitionBatch {
  readonly topic: string;
  readonly partition: number;
  readonly batch: Buffer;
}

/** A produce request, version 3 to 8, without its header. */
export function requestOfBatches(
  batches: readonly PartitionBatch[],
  {
    transactionalId,
    acks,
    timeoutMs,
  }: Pick<BatchSettings, 'transactionalId'> & { readonly acks: number; readonly timeoutMs: number },
): Buffer {
  const pieces = [
    transactionalId === null ? int16(-1) : text(transactionalId),
    int16(acks),
    int32(timeoutMs),
    int32(batches.length),
  ];
  for (const { topic, partition, batch } of batches) {
    pieces.push(text(topic), int32(1), int32(partition), int32(batch.length), batch);
  }
  return Buffer.concat(pieces);
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function text(value: string): Buffer {
  return Buffer.concat([int16(Buffer.byteLength(value)), Buffer.from(value)]);
}

/** The batch of one partition's records, as in a request and in the log. */
export async function recordBatch(
  { records, firstSequence }: Pick<PartitionRecords, 'records' | 'firstSequence'>,
  settings: BatchSettings,
): Promise<Buffer> {
  const { compression } = settings;
  const whole = written(records);
  const head = { ...settings, firstSequence, count: records.length };
  if (compression === 'none') return withHead(whole, head);
  const packed = await compressed(whole.subarray(batchHeadBytes), compression);
  const batch = Buffer.allocUnsafe(batchHeadBytes + packed.length);
  batch.set(packed, batchHeadBytes);
  return withHead(batch, head);
}

interface BatchHead extends BatchSettings {
  readonly firstSequence: number;
  readonly count: number;
}

function withHead(batch: Buffer, head: BatchHead): Buffer {
  const { compression, transactionalId, producerId, producerEpoch, firstSequence, count } = head;
  const now = BigInt(Date.now());
  batch.writeBigInt64BE(0n, 0); // first offset: the broker's to say
  batch.writeInt32BE(batch.length - 12, 8);
  batch.writeInt32BE(0, 12); // epoch of the leader: the broker's to say
  batch.writeInt8(magic, 16);
  batch.writeInt16BE(
    codecs[compression] | (transactionalId === null ? 0 : transactionalBit),
    checkedFrom,
  );
  batch.writeInt32BE(count - 1, 23); // last offset
  batch.writeBigInt64BE(now, 27); // of the first record
  batch.writeBigInt64BE(now, 35); // of the newest one
  batch.writeBigInt64BE(producerId, 43);
  batch.writeInt16BE(producerEpoch, 51);
  batch.writeInt32BE(firstSequence, 53);
  batch.writeInt32BE(count, 57);
  batch.writeUInt32BE(head.crc32c(batch.subarray(checkedFrom)), 17);
  return batch;
}

/** The records, after space for the head. */
function written(records: readonly KafkaRecord[]): Buffer {
  const bytesMax = records.reduce((sum, record) => sum + recordBytes(record), batchHeadBytes);
  const batch = Buffer.allocUnsafe(bytesMax);
  let at = batchHeadBytes;
  for (let i = 0; i < records.length; i += 1)
    at = writeRecord(batch, at, records[i] as KafkaRecord, i);
  return batch.subarray(0, at);
}

function writeRecord(batch: Buffer, from: number, record: KafkaRecord, offset: number): number {
  const { key, value, uid } = record;
  // Attributes and timestamp are a byte each: all records have the batch's time.
  const length =
    2 +
    varintBytes(offset) +
    (key === null ? 1 : varintBytes(key.length) + key.length) +
    varintBytes(value.length) +
    value.length +
    (1 + 1 + uidName.length + varintBytes(uid.length) + uid.length);
  let at = writeVarint(batch, from, length);
  batch[at] = 0;
  batch[at + 1] = 0;
  at = writeVarint(batch, at + 2, offset);
  at = key === null ? writeVarint(batch, at, -1) : writeBytes(batch, at, key);
  at = writeBytes(batch, at, value);
  at = writeVarint(batch, at, 1); // headers
  at = writeBytes(batch, at, uidName);
  at = writeVarint(batch, at, uid.length);
  return at + batch.write(uid, at, 'latin1');
}

function writeBytes(batch: Buffer, from: number, bytes: Uint8Array): number {
  const at = writeVarint(batch, from, bytes.length);
  batch.set(bytes, at);
  return at + bytes.length;
}

/** Small numbers of either sign use few bytes (zigzag), with seven bits each. */
function writeVarint(batch: Buffer, from: number, value: number): number {
  let at = from;
  let left = ((value << 1) ^ (value >> 31)) >>> 0;
  for (; left > 0x7f; left >>>= 7) {
    batch[at] = (left & 0x7f) | 0x80;
    at += 1;
  }
  batch[at] = left;
  return at + 1;
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let left = value << 1; left > 0x7f; left >>>= 7) bytes += 1;
  return bytes;
}

// Record batches as they are written into a request, as clients that know the protocol read and write them.

import { createRequire } from 'node:module';
import { crc32c, Reader, readRecordsBatch } from '@platformatic/kafka';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Compression } from '../../src/contracts/compression.ts';
import { KafkaRecord } from '../../src/kafka/port.ts';
import {
  type BatchSettings,
  type PartitionRecords,
  recordBatch,
  requestOfBatches,
} from '../../src/kafka/record-batch.ts';

const settings = {
  ...{ transactionalId: 'once', producerId: 7n, producerEpoch: 3, acks: -1, timeoutMs: 1_000 },
  crc32c,
};

const record = fc
  .record({
    key: fc.option(fc.uint8Array({ maxLength: 80 })),
    value: fc.uint8Array({ maxLength: 300 }),
    uid: fc.stringMatching(/^[0-9a-f]{0,64}$/),
  })
  .map(({ key, value, uid }) => new KafkaRecord(key && Buffer.from(key), value, uid));

/** A request with a batch for each of these partitions. */
async function produceRequest(
  parts: readonly PartitionRecords[],
  given: BatchSettings & { readonly acks: number; readonly timeoutMs: number },
): Promise<Buffer> {
  const batches = parts.map(async ({ topic, partition, ...part }) => ({
    ...{ topic, partition },
    batch: await recordBatch(part, given),
  }));
  return requestOfBatches(await Promise.all(batches), given);
}

/** What a request has for each partition, in its order. */
function partsOf(request: Buffer, transactionalId: string) {
  const reader = Reader.from(request);
  expect(reader.readNullableString(false)).toBe(transactionalId);
  expect([reader.readInt16(), reader.readInt32()]).toEqual([-1, 1_000]);
  return reader.readArray(
    (r) => ({
      topic: r.readString(false),
      partitions: r.readArray(
        (r) => ({ partition: r.readInt32(), bytes: r.readBytes(false) }),
        false,
        false,
      ),
    }),
    false,
    false,
  );
}

test.each<Compression>(['none', 'gzip', 'zstd'])(
  '%s: reads as it was written',
  async (compression) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(record, { minLength: 1, maxLength: 150 }), {
          minLength: 1,
          maxLength: 3,
        }),
        fc.nat(),
        async (lists, firstSequence) => {
          const parts = lists.map((records, partition) => ({
            ...{ topic: 'events', partition, firstSequence, records },
          }));
          const request = await produceRequest(parts, { ...settings, compression });
          const read = partsOf(request, 'once');
          expect(read.map(({ topic }) => topic)).toEqual(parts.map(() => 'events'));
          for (const [index, { partitions }] of read.entries()) {
            const [{ partition, bytes } = { partition: -1, bytes: Buffer.of() }] = partitions;
            const batch = readRecordsBatch(Reader.from(bytes));
            const records = lists[index] ?? [];
            expect(partition).toBe(index);
            expect(batch.crc).toBe(crc32c(bytes.subarray(21)));
            expect(batch).toMatchObject({
              ...{ length: bytes.length - 12, magic: 2, producerId: 7n, producerEpoch: 3 },
              ...{ firstSequence, lastOffsetDelta: records.length - 1 },
              ...{ attributes: 16 | { none: 0, gzip: 1, zstd: 4 }[compression] },
            });
            expect(
              batch.records.map(({ offsetDelta, timestampDelta, key, value, headers }) => ({
                ...{ offsetDelta, timestampDelta, key, value: value && Buffer.from(value) },
                headers: headers.map((pair) => pair.map(String)),
              })),
            ).toEqual(
              records.map(({ key, value, uid }, offsetDelta) => ({
                ...{ offsetDelta, timestampDelta: 0n, key, value: value && Buffer.from(value) },
                headers: [['uid', uid]],
              })),
            );
          }
        },
      ),
      { numRuns: 30 },
    );
  },
);

test('records are written as kafkajs writes them', async () => {
  const load = createRequire(import.meta.url);
  const Record = load('kafkajs/src/protocol/recordBatch/record/v0');
  const records = Array.from(
    { length: 200 },
    (_, n) => new KafkaRecord(n % 2 ? Buffer.from('k') : null, Buffer.alloc(n * 97, n), 'ab'),
  );
  const part = { topic: 't', partition: 0, firstSequence: 0, records };
  const request = await produceRequest([part], { ...settings, compression: 'none' });
  const theirs = records.map(
    ({ key, value, uid }, offsetDelta) =>
      Record({ offsetDelta, key, value, headers: { uid } }).buffer,
  );
  expect(request.subarray(-Buffer.concat(theirs).length).equals(Buffer.concat(theirs))).toBe(true);
});

// The partitioner against Kafka's Java client (its own test vectors) and against kafkajs's port of the same algorithm.

import fc from 'fast-check';
import { Partitioners } from 'kafkajs';
import { describe, expect, test } from 'vitest';
import { choosePartition, murmur2 } from '../../src/kafka/sending.ts';

describe('murmur2', () => {
  // org.apache.kafka.common.utils.UtilsTest.testMurmur2
  test.each([
    ['21', -973932308],
    ['foobar', -790332482],
    ['a-little-bit-long-string', -985981536],
    ['a-little-bit-longer-string', -1486304829],
    ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
    ['abc', 479470107],
  ])('hashes %s as the Java client does', (text, hash) => {
    expect(murmur2(Buffer.from(text))).toBe(hash);
  });

  test('reads a key that lies anywhere in a larger buffer', () => {
    const configEnv = Buffer.from('..foobar..');

    expect(murmur2(configEnv.subarray(2, 8))).toBe(-790332482);
  });
});

describe('choosePartition', () => {
  test('puts any key where kafkajs puts it', () => {
    const theirs = Partitioners.DefaultPartitioner();
    fc.assert(
      fc.property(fc.uint8Array(), fc.integer({ min: 1, max: 200 }), (bytes, count) => {
        const key = Buffer.from(bytes);
        const partitionMetadata = Array.from({ length: count }, (_, partitionId) => ({
          partitionId,
          leader: 1,
          partitionErrorCode: 0,
          replicas: [1],
          isr: [1],
        }));

        const ours = choosePartition(key, 0, { count, led: [] });

        expect(ours).toBe(theirs({ topic: 't', partitionMetadata, message: { key, value: null } }));
      }),
    );
  });

  test('without a key rotates through the partitions that have a leader, one a turn', () => {
    const partitions = { count: 4, led: [0, 1, 3] };

    const chosen = [0, 1, 2, 3].map((turn) => choosePartition(null, turn, partitions));

    expect(chosen).toEqual([0, 1, 3, 0]);
  });

  test('without a key and without leaders still names a partition', () => {
    expect(choosePartition(null, 5, { count: 4, led: [] })).toBe(1);
  });
});

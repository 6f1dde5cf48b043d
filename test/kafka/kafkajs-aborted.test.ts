// The filter of aborted records for kafkajs, on fetch responses as brokers give them.

import { expect, test } from 'vitest';
import { hideAborted, type KafkajsRecord } from '../../src/kafka/kafkajs-patches.ts';

const record = (offset: number, producerId: string): KafkajsRecord => ({
  offset: String(offset),
  key: Buffer.from('k'),
  isControlRecord: false,
  batchContext: { producerId, inTransaction: producerId !== '-1' },
});
const marker = (offset: number, producerId: string, type: 0 | 1): KafkajsRecord => ({
  ...record(offset, producerId),
  key: Buffer.from([0, 0, 0, type]),
  isControlRecord: true,
});
const aborted = (producerId: string, firstOffset: number) => ({
  producerId,
  firstOffset: String(firstOffset),
});

function seen(
  messages: readonly KafkajsRecord[],
  abortedTransactions: ReturnType<typeof aborted>[],
) {
  const partition = { messages, abortedTransactions };
  hideAborted(partition);
  expect(partition.abortedTransactions).toEqual([]);
  return messages.filter((one) => one.isControlRecord !== true).map(({ offset }) => Number(offset));
}

test('aborted records are hidden in whatever order their transactions ended', () => {
  const log = () => [
    ...[record(0, 'a'), record(1, 'b'), record(2, 'c'), record(3, '-1'), record(4, 'a')],
    ...[marker(5, 'c', 0), marker(6, 'b', 0), marker(7, 'a', 0)],
  ];
  expect(seen(log(), [aborted('c', 2), aborted('b', 1), aborted('a', 0)])).toEqual([3]);
  expect(seen(log(), [aborted('a', 0), aborted('b', 1), aborted('c', 2)])).toEqual([3]);
});

test('aborted records are hidden if a fetch begins within several transactions', () => {
  const log = [record(12, 'c'), record(13, 'd'), marker(14, 'c', 0)];
  expect(seen(log, [aborted('a', 1), aborted('b', 2), aborted('c', 3)])).toEqual([13]);
});

test('committed records of a writer with an aborted transaction stay', () => {
  const log = [
    ...[record(0, 'a'), marker(1, 'a', 1), record(2, 'a'), marker(3, 'a', 0)],
    ...[record(4, 'a'), marker(5, 'a', 1)],
  ];
  expect(seen(log, [aborted('a', 2)])).toEqual([0, 4]);
});

test('without aborted transactions nothing is hidden', () => {
  const log = [record(0, 'a'), marker(1, 'a', 1), { ...record(2, '-1'), batchContext: undefined }];
  expect(seen(log as KafkajsRecord[], [])).toEqual([0, 2]);
});

test('a record without a transaction stays, although its writer has an aborted one', () => {
  const outside: KafkajsRecord = {
    ...record(1, 'a'),
    batchContext: { producerId: 'a', inTransaction: false },
  };
  expect(seen([record(0, 'a'), outside, marker(2, 'a', 0)], [aborted('a', 0)])).toEqual([1]);
});

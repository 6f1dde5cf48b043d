// Sending to several leaders, over requests that the test answers: how many requests each leader gets, and when, and that a
// repeat has the bytes of the first. A sender that repeats what is in flight, or encodes again, fails here.

import { crc32c } from '@platformatic/kafka';
import { expect, test } from 'vitest';
import { KafkaFailure } from '../../src/kafka/failure.ts';
import { KafkaRecord } from '../../src/kafka/port.ts';
import type { PartitionBatch } from '../../src/kafka/record-batch.ts';
import {
  type KafkaRequests,
  PartitionSender,
  type SendingSettings,
} from '../../src/kafka/sending.ts';

/** A produce request that was sent and waits for the test's response. */
interface Sent {
  readonly leader: number;
  readonly partitions: readonly number[];
  readonly bytes: readonly Buffer[];
  readonly answer: PromiseWithResolvers<ReadonlyMap<number, bigint>>;
}

const moved = new KafkaFailure('passing', 'NOT_LEADER_OR_FOLLOWER', { answered: true });
const lost = new KafkaFailure('passing', 'connection closed', { answered: false });
const tooLarge = new KafkaFailure('records', 'MESSAGE_TOO_LARGE', { answered: true });

/** Six partitions, by default led by three brokers in turn. */
function aCluster(settings: Partial<SendingSettings> = {}) {
  const leaders = [1, 2, 3, 1, 2, 3];
  const sent: Sent[] = [];
  const joined: (readonly number[])[] = [];
  const requests: KafkaRequests = {
    partitions: async () => leaders.map((leader, partition) => ({ leader, partition })),
    join: async (partitions) => void joined.push(partitions),
    producer: async () => ({ producerId: 5n, producerEpoch: 1 }),
    produce: async (leader, batches) => {
      const answer = Promise.withResolvers<ReadonlyMap<number, bigint>>();
      sent.push({ leader, answer, ...partsOf(batches) });
      return await answer.promise;
    },
    refresh: async () => undefined,
    failureOf: (error) => error as KafkaFailure,
  };
  const sending = new PartitionSender(requests, {
    ...{ topic: 'events', compression: 'gzip', transactionalId: 'once', crc32c, ...settings },
  });
  return { leaders, sent, joined, sending };
}

const partsOf = (batches: readonly PartitionBatch[]) => ({
  partitions: batches.map(({ partition }) => partition),
  bytes: batches.map(({ batch }) => batch),
});

const records = () =>
  Array.from({ length: 60 }, (_, i) => {
    const record = new KafkaRecord(Buffer.from(`${i}`), Buffer.from(`value ${i}`), `${i}`);
    record.partition = i % 6;
    return record;
  });

const accept = ({ partitions, answer }: Sent) =>
  answer.resolve(new Map(partitions.map((partition) => [partition, 100n])));

/** Waits until so many requests were sent in all. */
async function requestsSent(sent: readonly Sent[], count: number): Promise<readonly Sent[]> {
  while (sent.length < count) await new Promise(setImmediate);
  return sent;
}

/** Time for what must not happen. */
const later = () => new Promise((resolve) => setTimeout(resolve, 50));

/** The sequence number that a batch begins with (Kafka protocol guide, "Record Batch"). */
const sequenceOf = (batch: Buffer | undefined) => batch?.readInt32BE(53);

test('each leader gets one request, and one that refuses is sent nothing before all have answered', async () => {
  const { sent, joined, sending } = aCluster();
  const written = new Map<number, bigint>();
  const done = sending.send(records(), written);
  const [one, two, three] = await requestsSent(sent, 3);

  two?.answer.reject(moved);
  await later();
  expect(sent.map(({ leader }) => leader)).toEqual([1, 2, 3]);
  if (one !== undefined) accept(one);
  await later();
  expect(sent).toHaveLength(3);
  if (three !== undefined) accept(three);
  const again = (await requestsSent(sent, 4))[3];
  expect(again).toMatchObject({ leader: 2, partitions: [1, 4] });
  expect(again?.bytes).toEqual(two?.bytes);
  if (again !== undefined) accept(again);
  await done;

  expect(joined).toEqual([[0, 1, 2, 3, 4, 5]]);
  expect(sent).toHaveLength(4);
  expect(Object.fromEntries(written)).toEqual(
    Object.fromEntries([0, 1, 2, 3, 4, 5].map((partition) => [partition, 110n])),
  );
});

test.each([
  { transactionalId: null, before: 0 },
  { transactionalId: 'once', before: 3 },
])(
  'a process that loses its turn while it encodes sends nothing until that is granted, unless a transaction fences it ($transactionalId)',
  async ({ transactionalId, before }) => {
    const granted = Promise.withResolvers<void>();
    const sendTurn = { isGiven: () => false, wait: () => granted.promise };
    const { sent, sending } = aCluster({ transactionalId, sendTurn });
    const done = sending.send(records());
    await later();

    expect(sent).toHaveLength(before);

    granted.resolve();
    for (const request of await requestsSent(sent, 3)) accept(request);
    await done;
    expect(sent).toHaveLength(3);
  },
);

test('a batch whose leader has moved goes to the new one with the same bytes, also after a lost response', async () => {
  const { leaders, sent, sending } = aCluster();
  const done = sending.send(records());
  const [one, two, three] = await requestsSent(sent, 3);
  leaders[1] = 3;

  two?.answer.reject(lost);
  for (const request of [one, three]) if (request !== undefined) accept(request);
  const [toThree, toTwo] = (await requestsSent(sent, 5)).slice(3);
  for (const request of [toThree, toTwo]) if (request !== undefined) accept(request);
  await done;

  expect([toThree, toTwo].map((request) => [request?.leader, request?.partitions])).toEqual([
    [3, [1]],
    [2, [4]],
  ]);
  expect([...(toThree?.bytes ?? []), ...(toTwo?.bytes ?? [])]).toEqual(two?.bytes);
});

test('sequence numbers continue from request to request', async () => {
  const { sent, sending } = aCluster();
  const first = sending.send(records());
  for (const request of await requestsSent(sent, 3)) accept(request);
  await first;
  const second = sending.send(records());
  for (const request of (await requestsSent(sent, 6)).slice(3)) accept(request);
  await second;

  expect(sent.map(({ bytes }) => bytes.map(sequenceOf))).toEqual([
    ...Array.from({ length: 3 }, () => [0, 0]),
    ...Array.from({ length: 3 }, () => [10, 10]),
  ]);
});

test('a request that fails is a failure once all have ended, and reports whether it may still arrive', async () => {
  const { sent, sending } = aCluster();
  const answers = async (other: (request: Sent) => void) => {
    const from = sent.length;
    const done = sending.send(records());
    done.catch(() => undefined);
    const [one, two, three] = (await requestsSent(sent, from + 3)).slice(from);
    one?.answer.reject(tooLarge);
    if (two !== undefined) accept(two);
    await later();
    if (three !== undefined) other(three);
    return await done.catch((error: KafkaFailure) => error);
  };

  const answered = await answers(accept);
  const unanswered = await answers(({ answer }) => answer.reject(lost));

  expect(answered).toMatchObject({ kind: 'records', answered: true });
  expect(unanswered).toMatchObject({ kind: 'records', answered: false });
  expect(sent).toHaveLength(6);
});

test('a response without one of the partitions is a failure', async () => {
  const { sent, sending } = aCluster();
  const done = sending.send(records());
  done.catch(() => undefined);

  const [one, two, three] = await requestsSent(sent, 3);
  for (const request of [one, three]) if (request !== undefined) accept(request);
  two?.answer.resolve(new Map([[1, 100n]]));

  await expect(done).rejects.toMatchObject({
    kind: 'passing',
    message: expect.stringContaining('partition 4 did not answer'),
  });
});

test('is given up after some repeats', async () => {
  const { sent, sending } = aCluster();
  const done = sending.send(records().filter(({ partition }) => partition === 0));
  done.catch(() => undefined);
  let isOver = false;
  const refuse = async () => {
    for (let next = 0; !isOver; ) {
      await new Promise(setImmediate);
      for (; next < sent.length; next += 1) sent[next]?.answer.reject(moved);
    }
  };
  done
    .catch(() => undefined)
    .finally(() => {
      isOver = true;
    });
  const refusing = refuse();

  await expect(done).rejects.toMatchObject({ kind: 'passing', answered: true });
  await refusing;
  expect(new Set(sent.map(({ bytes }) => bytes[0]?.toString('hex'))).size).toBe(1);
});

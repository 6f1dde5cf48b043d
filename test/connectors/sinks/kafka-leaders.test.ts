// The Kafka sink where partitions have several leaders: a cluster of three brokers, six partitions and small batches,
// without a fault and while leaders move, freeze and restart. With exactly_once a consumer of committed records sees each
// event once; without it, none is lost.

import { setTimeout as delay } from 'node:timers/promises';
import { type Admin, Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { kafkaSink } from '../../../connectors/sinks/kafka.ts';
import {
  consumeAll,
  createTopic,
  type KafkaBroker,
  startKafkaCluster,
} from '../../support/kafka.ts';
import { testSome } from '../../support/long.ts';
import { openSink, someEvents } from '../../support/sink-opening.ts';
import { waitUntil } from '../../support/temp.ts';
import { committedOf, type Driver, deliver, drivers } from './kafka-engine.ts';

const partitions = 6;
const batchEvents = 24;

let cluster: readonly KafkaBroker[] = [];
let brokers: readonly string[] = [];
beforeAll(async () => {
  cluster = await startKafkaCluster(3);
  brokers = cluster.map(({ addresses }) => addresses.plain);
}, 300_000);
afterAll(async () => {
  await Promise.all(cluster.map((broker) => broker.kill()));
});

const batches = (count: number) =>
  Array.from({ length: count }, (_, i) => someEvents(batchEvents, i * batchEvents));

/** Each event is in the topic; `repeats` counts the records beyond one for each. */
async function countsIn(topic: string, events: number) {
  const records = await consumeAll(topic, { brokers, timeoutMs: 120_000 });
  const known = new Set(records.map(({ headers }) => headers.uid));
  const missing = someEvents(events).filter(({ uid }) => !known.has(uid)).length;
  return { missing, repeats: records.length - known.size };
}

async function withAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}

/** By partition. */
async function leadersOf(topic: string): Promise<readonly number[]> {
  return (await partitionsOf(topic)).map(({ leader }) => leader);
}

async function partitionsOf(topic: string) {
  return await withAdmin(async (admin) => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
    const found = topics[0]?.partitions ?? [];
    return found.toSorted((a, b) => a.partitionId - b.partitionId);
  });
}

/** Gives each partition another leader: the present one loses its replica, and gets it back. */
async function moveLeaders(topic: string): Promise<void> {
  const before = await leadersOf(topic);
  const others = (leader: number) => [1, 2, 3].filter((node) => node !== leader);
  for (const replicasOf of [others, (leader: number) => [...others(leader), leader]]) {
    const partitionAssignment = before.map((leader, partition) => ({
      ...{ partition, replicas: replicasOf(leader) },
    }));
    const topics = [{ topic, partitionAssignment }];
    await withAdmin((admin) => admin.alterPartitionReassignments({ topics }));
    const isDone = async () =>
      (await partitionsOf(topic)).every(
        ({ leader, isr }, partition) =>
          leader >= 0 &&
          leader !== before[partition] &&
          isr.length === replicasOf(before[partition] ?? 0).length,
      );
    const what = `leaders of ${topic} to move`;
    await waitUntil(isDone, { what, everyMs: 200, timeoutMs: 120_000 });
  }
}

const open = (topic: string, driver: Driver, exactly_once: boolean) =>
  openSink(
    kafkaSink,
    { driver, brokers, topic, key: 'uid', exactly_once, timeout: '5s' },
    { spoolId: topic },
  );

describe.each(drivers)('kafkaSink over %s and three leaders', (driver) => {
  testSome(1, [true, false])(
    'each event once without a fault, with exactly_once: %s',
    async (exactly_once) => {
      const topic = `calm-${driver}-${exactly_once}`;
      await createTopic(brokers, topic, { partitions });
      const opened = await open(topic, driver, exactly_once);
      const all = batches(30);

      for (const batch of all) await deliver(opened, batch);

      expect(new Set(await leadersOf(topic)).size).toBeGreaterThan(1);
      expect(await countsIn(topic, all.flat().length)).toEqual({ missing: 0, repeats: 0 });
      if (exactly_once) expect(await committedOf(opened)).toBe(all.flat().length);
    },
  );

  test('a repeating sender is noticed: this check fails where a request is sent twice', async () => {
    const topic = `twice-${driver}`;
    await createTopic(brokers, topic, { partitions });
    const opened = await open(topic, driver, false);
    await deliver(opened, someEvents(batchEvents));
    await opened.sink.send(opened.batch(someEvents(batchEvents)), new AbortController().signal);

    expect(await countsIn(topic, batchEvents)).toEqual({ missing: 0, repeats: batchEvents });
  });
});

const variants = drivers.flatMap((driver) =>
  [true, false].map((exactly_once) => ({
    driver,
    exactly_once,
    topic: `${driver}-${exactly_once}`,
  })),
);

// All variants at once: what takes the time are the brokers.
test('leaders that move, freeze, stop in order and are killed: exactly_once repeats nothing, and no sink loses an event', {
  tags: ['long'],
}, async () => {
  const sinks = await Promise.all(
    variants.map(async ({ topic, driver, exactly_once }) => {
      await createTopic(brokers, topic, { partitions });
      return { topic, exactly_once, opened: await open(topic, driver, exactly_once), sent: 0 };
    }),
  );
  let isOver = false;
  const sending = Promise.all(
    sinks.map(async (sink) => {
      while (!isOver) {
        await deliver(sink.opened, someEvents(batchEvents, sink.sent * batchEvents));
        sink.sent += 1;
        await delay(100); // what the test waits for are leaders: more batches prove nothing more
      }
    }),
  );
  /** Each sink delivers so many batches from now on. */
  const progress = async (count: number) => {
    const targets = sinks.map(({ sent }) => sent + count);
    while (sinks.some(({ sent }, i) => sent < (targets[i] ?? 0))) {
      await Promise.race([delay(20), sending]);
    }
  };
  const [first, second, third] = cluster;

  await progress(5);
  await Promise.all(sinks.map(({ topic }) => moveLeaders(topic)));
  process.kill(second?.pid ?? 0, 'SIGSTOP');
  await progress(5).finally(() => process.kill(second?.pid ?? 0, 'SIGCONT'));
  await progress(5);
  await third?.stop();
  await progress(5);
  await third?.start();
  await progress(5);
  await first?.kill();
  await progress(5);
  await first?.start();
  await progress(5);
  isOver = true;
  await sending;

  for (const { topic, exactly_once, opened, sent } of sinks) {
    const { missing, repeats } = await countsIn(topic, sent * batchEvents);
    expect(missing, topic).toBe(0);
    if (!exactly_once) continue;
    expect(repeats, topic).toBe(0);
    expect(await committedOf(opened)).toBe(sent * batchEvents);
  }
});

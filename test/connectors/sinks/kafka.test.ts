// The Kafka sink as it comes, without exactly_once, over each client against a real Apache Kafka: what arrives and how,
// what Kafka will not take, and where a client alone would lose or repeat records.

import { beforeAll, describe, expect, test } from 'vitest';
import { lineAt } from '../../../connectors/shared/lines.ts';
import { kafkaSink } from '../../../connectors/sinks/kafka.ts';
import { formatsOf } from '../../../formats/index.ts';
import { anEvent } from '../../support/an-event.ts';
import { consumeAll, kafkaBrokers, type ReadRecord } from '../../support/kafka.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';
import {
  aTopic,
  batchOf,
  connectionClosed,
  deliver,
  drivers,
  goOn,
  instead,
} from './kafka-engine.ts';

let brokers: readonly string[] = [];
beforeAll(async () => {
  brokers = await kafkaBrokers();
});

const uidsOf = (records: readonly { readonly headers: Readonly<Record<string, string>> }[]) =>
  records.map(({ headers }) => headers.uid);
const sorted = (texts: readonly (string | undefined)[]) => [...texts].sort();

/** The answer to a produce request, of either client, as if it did not speak of partition 1. */
function withoutPartition1(answer: unknown): unknown {
  if (Array.isArray(answer)) {
    const others = answer.filter((each) => (each.partition ?? each.index) !== 1);
    return others.map(withoutPartition1);
  }
  if (typeof answer !== 'object' || answer === null) return answer;
  const parts = Object.entries(answer).map(([name, part]) => [name, withoutPartition1(part)]);
  return Object.fromEntries(parts);
}

/** How the record batches in partition 0 are compressed, as the broker hands them out. */
async function compressionsIn(topic: string): Promise<readonly string[]> {
  const { Consumer } = await import('@platformatic/kafka');
  const client = { clientId: 'reader', groupId: 'none', bootstrapBrokers: [...brokers] };
  const consumer = new Consumer(client);
  const { topics } = await consumer.metadata({ topics: [topic] });
  const { id: topicId = '', partitions = [] } = topics.get(topic) ?? {};
  const from = { partition: 0, fetchOffset: 0n, currentLeaderEpoch: -1, lastFetchedEpoch: -1 };
  const asked = [{ topicId, partitions: [{ ...from, partitionMaxBytes: 1 << 20 }] }];
  const fetched = await consumer.fetch({ node: partitions[0]?.leader ?? -1, topics: asked });
  await consumer.close();
  const found = fetched.responses.flatMap((response) => response.partitions);
  const batches = found.flatMap(({ records }) => records ?? []);
  return batches.map(
    ({ attributes }) => ['none', 'gzip', 'snappy', 'lz4', 'zstd'][attributes & 7] ?? '',
  );
}

/** An event whose line is longer than `bytes`. */
function largeEvent(offset: number, bytes: number) {
  return anEvent({ offset, ocsf: { message: 'x'.repeat(bytes) } });
}

describe.each(drivers)('kafkaSink over %s', (driver) => {
  test.each([
    { to: 'one topic', pattern: (topic: string) => topic },
    { to: 'a topic of each source', pattern: (topic: string) => `${topic}-{source}` },
  ])(
    'a process that has lost its turn before the request sends nothing to $to',
    async ({ pattern }) => {
      const topic = await aTopic('turn');
      const [asked, granted] = [Promise.withResolvers<string>(), Promise.withResolvers<void>()];
      const wait = () => {
        asked.resolve('asked');
        return granted.promise;
      };
      const sendTurn = { isGiven: () => false, wait };
      const config = { driver, brokers, topic: pattern(topic) };
      const opened = await openSink(kafkaSink, config, { tools: { ...testTools(), sendTurn } });
      const answer = opened.sink.send(batchOf(opened, someEvents(10)), goOn);

      expect(await Promise.race([asked.promise, answer])).toBe('asked');
      granted.resolve();
      expect(await answer).toEqual({ outcome: 'delivered' });
    },
  );

  test('sends each event once, in order, with its uid as header and its stream as key', async () => {
    const topic = await aTopic('plain');
    const opened = await openSink(kafkaSink, { driver, brokers, topic });
    const events = someEvents(300);
    const batch = batchOf(opened, events);

    const answer = await opened.sink.send(batch, goOn);

    expect(answer).toMatchObject({ outcome: 'delivered' });
    const records = await consumeAll(topic);
    expect(uidsOf(records)).toEqual(events.map(({ uid }) => uid));
    expect(new Set(records.map(({ key }) => key))).toEqual(new Set(['audit/c-1']));
    expect(records.map(({ value }) => `${value}\n`).join('')).toBe(
      Buffer.from(batch.lines.bytes).toString(),
    );
  });

  test('carries each of its formats', async () => {
    const topic = await aTopic('format');
    const lines: string[] = [];

    for (const format of formatsOf(kafkaSink)) {
      const opened = await openSink(kafkaSink, { driver, brokers, topic }, { format });
      const batch = batchOf(opened, someEvents(3));
      for (let i = 0; i < 3; i++) lines.push(Buffer.from(lineAt(batch.lines, i)).toString());
      expect(await opened.sink.send(batch, goOn)).toMatchObject({ outcome: 'delivered' });
    }

    const records = await consumeAll(topic);
    expect(records.map(({ value }) => value)).toEqual(lines);
  });

  test('compresses as configured, and a consumer reads it', async () => {
    const topic = await aTopic('compressed');
    const events = someEvents(300);

    for (const [i, compression] of ['none', 'gzip', 'zstd'].entries()) {
      const opened = await openSink(kafkaSink, { driver, brokers, topic, compression });
      await opened.sink.send(batchOf(opened, events.slice(i * 100, i * 100 + 100)), goOn);
    }

    expect(await compressionsIn(topic)).toEqual(['none', 'gzip', 'zstd']);
    expect(uidsOf(await consumeAll(topic))).toEqual(events.map(({ uid }) => uid));
  });

  test('sends events that fit and refuses by uid those larger than max_message', async () => {
    const topic = await aTopic('large');
    const opened = await openSink(kafkaSink, { driver, brokers, topic, max_message: '8KiB' });
    const [first, , third] = someEvents(3);
    const large = largeEvent(1, 8192);
    if (first === undefined || third === undefined) throw new Error('three events were asked for');

    const answer = await opened.sink.send(batchOf(opened, [first, large, third]), goOn);

    expect(answer).toEqual({
      outcome: 'partly',
      refused: [
        {
          uid: large.uid,
          by: 'sink',
          reason: expect.stringMatching(/max_message is 8192 bytes/),
        },
      ],
      again: [],
    });
    expect(uidsOf(await consumeAll(topic))).toEqual([first.uid, third.uid]);
  });

  test('cuts a batch into requests that a topic of that limit takes', async () => {
    const topic = await aTopic('cut', { settings: { 'max.message.bytes': '8192' } });
    const opened = await openSink(kafkaSink, { driver, brokers, topic, max_message: '8KiB' });
    const events = someEvents(100);

    const answer = await opened.sink.send(batchOf(opened, events), goOn);

    expect(answer).toMatchObject({ outcome: 'delivered' });
    expect(uidsOf(await consumeAll(topic))).toEqual(events.map(({ uid }) => uid));
  });

  test('an event that only the broker finds too large is refused as a batch, and alone after it is isolated', async () => {
    const topic = await aTopic('limit', { settings: { 'max.message.bytes': '20000' } });
    const opened = await openSink(kafkaSink, { driver, brokers, topic });
    const large = largeEvent(3, 30_000);
    const events = [...someEvents(3), large, ...someEvents(4, 4)];

    const { dead, troubles } = await deliver(opened, events);

    expect(dead).toEqual([large.uid]);
    expect(troubles[0]).toMatchObject({ outcome: 'refused', scope: 'batch' });
    const others = events.filter((event) => event !== large).map(({ uid }) => uid);
    expect(new Set(uidsOf(await consumeAll(topic)))).toEqual(new Set(others));
  });

  test.each([
    ['uid', (record: ReadRecord) => record.headers.uid],
    ['source', () => 'audit'],
    ['none', () => null],
  ])('key: %s', async (key, expected) => {
    const topic = await aTopic('keys', { partitions: 3 });
    const opened = await openSink(kafkaSink, { driver, brokers, topic, key });
    const events = someEvents(30);

    await opened.sink.send(batchOf(opened, events), goOn);

    const records = await consumeAll(topic, { until: 30 });
    expect(sorted(uidsOf(records))).toEqual(sorted(events.map(({ uid }) => uid)));
    for (const record of records) expect(record.key).toBe(expected(record));
    expect(new Set(records.map(({ partition }) => partition)).size).toBe(key === 'uid' ? 3 : 1);
  });

  test('without key, requests rotate through the partitions', async () => {
    const topic = await aTopic('round', { partitions: 3 });
    const opened = await openSink(kafkaSink, { driver, brokers, topic, key: 'none' });

    for (let i = 0; i < 3; i++) await opened.sink.send(batchOf(opened, someEvents(5, i * 5)), goOn);

    const records = await consumeAll(topic, { until: 15 });
    expect(new Set(records.map(({ partition }) => partition)).size).toBe(3);
  });

  // kafkajs alone distributes records without key again, under sequence numbers that the broker has seen: lost and
  // duplicated.
  test.each(['none', 'uid'])(
    'an answer lost on the way loses and repeats nothing (key: %s)',
    async (key) => {
      const topic = await aTopic('lost-answer', { partitions: 2 });
      const opened = await openSink(kafkaSink, { driver, brokers, topic, key });
      let losses = 1;
      const lose = async (send: () => Promise<unknown>) => {
        const answer = await send();
        if (losses-- > 0) throw connectionClosed(driver);
        return answer;
      };
      instead('produce', lose, driver);
      const events = someEvents(7);

      const { troubles } = await deliver(opened, events);

      expect(troubles).toEqual([]);
      const records = await consumeAll(topic, { until: 7 });
      expect(sorted(uidsOf(records))).toEqual(sorted(events.map(({ uid }) => uid)));
    },
  );

  // After a failure kafkajs takes its sequence numbers back, also for what the broker has: it would drop what comes next.
  test('after a failure, other events are not taken for the ones before', async () => {
    const topic = await aTopic('sequence');
    const opened = await openSink(kafkaSink, { driver, brokers, topic });
    const fail = async (send: () => Promise<unknown>) => {
      await send();
      throw connectionClosed(driver, { again: false });
    };
    const failing = instead('produce', fail, driver);
    const answer = await opened.sink.send(batchOf(opened, someEvents(5)), goOn);
    failing.restore();

    const later = someEvents(5, 5);
    const { troubles } = await deliver(opened, later);

    expect(answer).toMatchObject({ outcome: 'retry' });
    expect(troubles).toEqual([]);
    expect(uidsOf(await consumeAll(topic)).slice(-5)).toEqual(later.map(({ uid }) => uid));
  });

  // kafkajs skips a partition that moves, between two attempts, to a broker that has answered; and reports success.
  test('a partition that did not answer is a retry, whatever the client says', async () => {
    const topic = await aTopic('skipped', { partitions: 2 });
    const opened = await openSink(kafkaSink, { driver, brokers, topic, key: 'uid' });
    const skip = async (send: () => Promise<unknown>) => withoutPartition1(await send());
    const skipping = instead('produce', skip, driver);
    const events = someEvents(20);

    const answer = await opened.sink.send(batchOf(opened, events), goOn);
    skipping.restore();
    await deliver(opened, events);

    expect(answer).toMatchObject({
      outcome: 'retry',
      cause: { message: expect.stringContaining('partition 1 did not answer') },
    });
    const records = await consumeAll(topic, { until: 20 });
    expect(new Set(uidsOf(records))).toEqual(new Set(events.map(({ uid }) => uid)));
  });

  test('makes use of a topic that the broker creates at first use', async () => {
    const topic = `unmade-${crypto.randomUUID()}`;
    const opened = await openSink(kafkaSink, { driver, brokers, topic });

    await deliver(opened, someEvents(10));

    expect(await consumeAll(topic)).toHaveLength(10);
  });

  test('probe accepts a topic, and names one that is not there without creating it', async () => {
    const topic = await aTopic('probed');
    const missing = `missing-${crypto.randomUUID()}`;
    const { tools } = await openSink(kafkaSink, { driver, brokers, topic });
    const probe = (name: string) => {
      const settings = parseSettings(kafkaSink, { driver, brokers, topic: name });
      return kafkaSink.probe(settings, tools, goOn);
    };

    await expect(probe(topic)).resolves.toBeUndefined();
    const refusal = { code: 'sink_refused', next: expect.stringContaining(missing) };
    await expect(probe(missing)).rejects.toMatchObject(refusal);
    await expect(probe(missing)).rejects.toMatchObject(refusal);
  });
});

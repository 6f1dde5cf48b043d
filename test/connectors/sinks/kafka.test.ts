// The Kafka sink as it comes, without exactly_once, against a real Apache Kafka: what arrives and how, what Kafka will
// not take, and where kafkajs alone would lose or repeat records.

import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { kafkaSink } from '../../../connectors/sinks/kafka.ts';
import { anEvent } from '../../support/an-event.ts';
import { consumeAll, kafkaBrokers, type ReadRecord } from '../../support/kafka.ts';
import { openSink, someEvents } from '../../support/sink-opening.ts';
import { aTopic, batchOf, connectionClosed, deliver, goOn, instead } from './kafka-engine.ts';

let brokers: readonly string[] = [];
beforeAll(async () => {
  brokers = await kafkaBrokers();
});

const uidsOf = (records: readonly { readonly headers: Readonly<Record<string, string>> }[]) =>
  records.map(({ headers }) => headers.uid);
const sorted = (texts: readonly (string | undefined)[]) => [...texts].sort();

/** An event whose line is longer than `bytes`. */
function largeEvent(offset: number, bytes: number) {
  return anEvent({ offset, ocsf: { message: 'x'.repeat(bytes) } });
}

describe('kafkaSink', () => {
  test('sends each event once, in order, with its uid as header and its stream as key', async () => {
    const topic = await aTopic('plain');
    const opened = await openSink(kafkaSink, { brokers, topic });
    const events = someEvents(300);
    const batch = batchOf(opened, events);

    const answer = await opened.sink.send(batch, goOn);

    expect(answer).toEqual({ outcome: 'delivered' });
    const records = await consumeAll(topic);
    expect(uidsOf(records)).toEqual(events.map(({ uid }) => uid));
    expect(new Set(records.map(({ key }) => key))).toEqual(new Set(['audit/c-1']));
    expect(records.map(({ value }) => `${value}\n`).join('')).toBe(
      Buffer.from(batch.lines.bytes).toString(),
    );
  });

  test.each(['json', 'cef', 'syslog', 'otel'])('carries %s', async (format) => {
    const topic = await aTopic('format');
    const opened = await openSink(kafkaSink, { brokers, topic }, { format });

    const answer = await opened.sink.send(batchOf(opened, someEvents(3)), goOn);

    expect(answer).toEqual({ outcome: 'delivered' });
    expect(await consumeAll(topic)).toHaveLength(3);
  });

  test.each(['gzip', 'zstd'])('compresses with %s, which a consumer reads', async (compression) => {
    const topic = await aTopic('compressed');
    const opened = await openSink(kafkaSink, { brokers, topic, compression });
    const sizes: number[] = [];
    const requests = instead('produce', async (send, asked) => {
      sizes.push(Number(asked.compression));
      return await send();
    });
    const events = someEvents(200);

    const answer = await opened.sink.send(batchOf(opened, events), goOn);

    requests.restore();
    expect(answer).toEqual({ outcome: 'delivered' });
    expect(sizes).toEqual([{ gzip: 1, zstd: 4 }[compression]]);
    expect(uidsOf(await consumeAll(topic))).toEqual(events.map(({ uid }) => uid));
  });

  test('sends what fits and refuses by uid what is larger than max_message', async () => {
    const topic = await aTopic('large');
    const opened = await openSink(kafkaSink, { brokers, topic, max_message: '8KiB' });
    const [first, , third] = someEvents(3);
    const large = largeEvent(1, 8192);
    if (first === undefined || third === undefined) throw new Error('three events were asked for');

    const answer = await opened.sink.send(batchOf(opened, [first, large, third]), goOn);

    expect(answer).toEqual({
      outcome: 'partly',
      refused: [{ uid: large.uid, reason: expect.stringMatching(/max_message is 8192 bytes/) }],
      again: [],
    });
    expect(uidsOf(await consumeAll(topic))).toEqual([first.uid, third.uid]);
  });

  test('cuts a batch into requests that a topic of that limit takes', async () => {
    const topic = await aTopic('cut', { settings: { 'max.message.bytes': '8192' } });
    const opened = await openSink(kafkaSink, { brokers, topic, max_message: '8KiB' });
    const events = someEvents(100);

    const answer = await opened.sink.send(batchOf(opened, events), goOn);

    expect(answer).toEqual({ outcome: 'delivered' });
    expect(uidsOf(await consumeAll(topic))).toEqual(events.map(({ uid }) => uid));
  });

  test('what only the broker finds too large is refused as a batch, and alone once it is cut', async () => {
    const topic = await aTopic('limit', { settings: { 'max.message.bytes': '20000' } });
    const opened = await openSink(kafkaSink, { brokers, topic });
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
    const opened = await openSink(kafkaSink, { brokers, topic, key });
    const events = someEvents(30);

    await opened.sink.send(batchOf(opened, events), goOn);

    const records = await consumeAll(topic, { until: 30 });
    expect(sorted(uidsOf(records))).toEqual(sorted(events.map(({ uid }) => uid)));
    for (const record of records) expect(record.key).toBe(expected(record));
    expect(new Set(records.map(({ partition }) => partition)).size).toBe(key === 'uid' ? 3 : 1);
  });

  test('without key, requests go round the partitions', async () => {
    const topic = await aTopic('round', { partitions: 3 });
    const opened = await openSink(kafkaSink, { brokers, topic, key: 'none' });

    for (let i = 0; i < 3; i++) await opened.sink.send(batchOf(opened, someEvents(5, i * 5)), goOn);

    const records = await consumeAll(topic, { until: 15 });
    expect(new Set(records.map(({ partition }) => partition)).size).toBe(3);
  });

  // kafkajs alone deals records without key out anew, under sequence numbers that the broker has seen: lost and twice.
  test.each(['none', 'uid'])(
    'an answer lost on the way loses and repeats nothing (key: %s)',
    async (key) => {
      const topic = await aTopic('lost-answer', { partitions: 2 });
      const opened = await openSink(kafkaSink, { brokers, topic, key });
      let losses = 1;
      instead('produce', async (send) => {
        const answer = await send();
        if (losses-- > 0) throw connectionClosed();
        return answer;
      });
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
    const opened = await openSink(kafkaSink, { brokers, topic });
    const failing = instead('produce', async (send) => {
      await send();
      throw Object.assign(new Error('no'), { name: 'KafkaJSNonRetriableError', retriable: false });
    });
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
    const opened = await openSink(kafkaSink, { brokers, topic, key: 'uid' });
    interface TopicData {
      readonly topic: string;
      readonly partitions: readonly { readonly partition: number }[];
    }
    const skipping = instead('produce', (send, { topicData }) => {
      const fewer = (topicData as readonly TopicData[]).map((data) => ({
        ...data,
        partitions: data.partitions.filter(({ partition }) => partition !== 1),
      }));
      return send({ topicData: fewer });
    });
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
    const opened = await openSink(kafkaSink, { brokers, topic });

    await deliver(opened, someEvents(10));

    expect(await consumeAll(topic)).toHaveLength(10);
  });

  test('probe accepts a topic, and names one that is not there without creating it', async () => {
    const topic = await aTopic('probed');
    const missing = `missing-${crypto.randomUUID()}`;
    const { tools } = await openSink(kafkaSink, { brokers, topic });
    const probe = (name: string) => {
      const settings = z.strictObject(kafkaSink.fields).parse({ brokers, topic: name });
      return kafkaSink.probe({ type: 'kafka', ...settings }, tools, goOn);
    };

    await expect(probe(topic)).resolves.toBeUndefined();
    const refusal = { code: 'sink_refused', next: expect.stringContaining(missing) };
    await expect(probe(missing)).rejects.toMatchObject(refusal);
    await expect(probe(missing)).rejects.toMatchObject(refusal);
  });
});

describe('kafkaSink settings', () => {
  const parse = (settings: object) =>
    z
      .strictObject(kafkaSink.fields)
      .safeParse({ brokers: ['k1:9092'], topic: 'events', ...settings });

  test('defaults', () => {
    expect(parse({}).data).toMatchObject({
      exactly_once: false,
      key: 'stream',
      compression: 'none',
      client_id: 'sluice',
      max_message: 1024 * 1024,
      timeout: 30_000,
      driver: 'kafkajs',
    });
  });

  test.each([
    { brokers: [] },
    { brokers: ['k1'] },
    { brokers: ['k1:0'] },
    { brokers: ['k1:70000'] },
    { brokers: ['::1:9092'] },
    { brokers: ['kafka://k1:9092'] },
    { topic: 'a topic' },
    { topic: '..' },
    { topic: 'x'.repeat(250) },
    { key: 'partition' },
    { compression: 'lz4' },
    { sasl: { mechanism: 'gssapi', username: 'a', password: 'b' } },
    { driver: 'other' },
  ])('refuses %j', (settings) => {
    expect(parse(settings).success).toBe(false);
  });

  test.each([['[::1]:9092'], ['10.0.0.1:9092'], ['kafka-1.example:19092']])(
    'takes broker %s',
    (broker) => {
      expect(parse({ brokers: [broker] }).success).toBe(true);
    },
  );

  test('transactional_id without exactly_once is a flaw', () => {
    const settings = { type: 'kafka', ...parse({ transactional_id: 'x' }).data };

    expect(kafkaSink.flaw?.(settings)).toMatch(/exactly_once: true/);
    expect(kafkaSink.flaw?.({ ...settings, exactly_once: true })).toBeNull();
  });

  test('promises each event once only with exactly_once', () => {
    const assurance = (settings: object) =>
      kafkaSink.assurance({ type: 'kafka', ...parse(settings).data });

    expect(assurance({})).toBe('answered');
    expect(assurance({ exactly_once: true })).toBe('once');
  });
});

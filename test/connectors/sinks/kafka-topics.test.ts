// A Kafka topic for each company, over each client against a real Apache Kafka: each event is in the topic of its
// company, a missing topic holds only its own events, and setup creates the topics.

import { randomUUID } from 'node:crypto';
import { afterEach, beforeAll, expect, test, vi } from 'vitest';
import { kafkaSink } from '../../../connectors/sinks/kafka.ts';
import type { Event } from '../../../src/contracts/event.ts';
import { makeFormat } from '../../formats/make-format.ts';
import { anEvent } from '../../support/an-event.ts';
import { consumeAll, kafkaBrokers } from '../../support/kafka.ts';
import { openSink, parseSettings } from '../../support/sink-opening.ts';
import { connectionClosed, drivers, goOn, instead } from './kafka-engine.ts';

let brokers: readonly string[] = [];
beforeAll(async () => {
  brokers = await kafkaBrokers();
});

afterEach(() => vi.useRealTimers());

function eventOf(company: string, offset: number): Event {
  const event = anEvent({ offset });
  return { ...event, context: { ...event.context, company } };
}

const uidsIn = async (topic: string) =>
  (await consumeAll(topic)).map(({ headers }) => headers.uid).toSorted();

test.each(drivers)('%s: each event is in the topic of its company', async (driver) => {
  const begunMs = Date.now() - 60_000;
  const prefix = `companies-${randomUUID()}`;
  const settings = { brokers, topic: `${prefix}.{source}.{company}`, driver };
  const opened = await openSink(kafkaSink, settings);
  const events = ['c-1', 'C-1', 'c-1', 'c-2'].map(eventOf);
  const names = events.map((event) => opened.sink.destinationOf?.(event) ?? '');
  const streams = events.map(({ context }) => context);
  const parsed = parseSettings(kafkaSink, settings);
  const deps = { tools: opened.tools, signal: goOn, streams };
  expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(3);

  const made = await kafkaSink.setup?.(parsed, makeFormat('json'), deps);
  const again = await kafkaSink.setup?.(parsed, makeFormat('json'), deps);
  // By a clock of 1970, whose records would be older than any retention.
  vi.useFakeTimers({ toFake: ['Date'], now: 1_000 });
  const delivery = await opened.sink.send(opened.batch(events), goOn);
  vi.useRealTimers();
  const [stored] = await consumeAll(names[0] ?? '');

  expect(stored?.timestampMs).toBeGreaterThan(begunMs);
  expect(made).toContain(names[0] ?? '?');
  expect(again).toBe('topics exist: 3');
  expect(delivery).toEqual({ outcome: 'delivered' });
  expect(await uidsIn(names[0] ?? '')).toEqual([events[0]?.uid, events[2]?.uid].toSorted());
  expect(await uidsIn(names[1] ?? '')).toEqual([events[1]?.uid]);
  expect(await uidsIn(names[3] ?? '')).toEqual([events[3]?.uid]);
  await opened.sink.close();
});

test.each(drivers)('%s: a topic that Kafka refuses holds only its own events', async (driver) => {
  // A name may have 249 characters: only that of the short company is right.
  const prefix = `company-${randomUUID()}-`.padEnd(240, 'x');
  const opened = await openSink(kafkaSink, { brokers, topic: `${prefix}{company}`, driver });
  const short = eventOf('c-1', 0);
  const long = [1, 2].map((offset) => eventOf('company-of-a-long-name', offset));

  const delivery = await opened.sink.send(opened.batch([...long, short]), goOn);

  expect(delivery).toMatchObject({
    outcome: 'partly',
    refused: long.map(({ uid }) => ({ uid, by: 'destination' })),
    again: [],
  });
  expect(await uidsIn(`${prefix}c-1`)).toEqual([short.uid]);
  await opened.sink.close();
});

test.each(drivers)(
  '%s: events of a topic that Kafka did not accept are sent again',
  async (driver) => {
    const topic = `companies-${randomUUID()}.{company}`;
    const opened = await openSink(kafkaSink, { brokers, topic, driver });
    const events = ['c-1', 'c-2', 'c-1', 'c-2'].map(eventOf);
    const [first, second] = events.map((event) => opened.sink.destinationOf?.(event) ?? '');
    let requests = 0;
    const { restore } = instead(
      'produce',
      async (send) => {
        requests += 1;
        if (requests === 1) return await send();
        throw connectionClosed(driver);
      },
      driver,
    );

    const delivery = await opened.sink.send(opened.batch(events), goOn);
    restore();
    const left = events.filter((_, i) => i % 2 === 1);
    const repeated = await opened.sink.send(opened.batch(left), goOn);

    expect(delivery).toEqual({
      outcome: 'partly',
      refused: [],
      again: left.map(({ uid }) => uid),
    });
    expect(repeated).toEqual({ outcome: 'delivered' });
    expect(await uidsIn(first ?? '')).toEqual([events[0]?.uid, events[2]?.uid].toSorted());
    expect(await uidsIn(second ?? '')).toEqual(left.map(({ uid }) => uid).toSorted());
    await opened.sink.close();
  },
);

test('a topic of companies is refused with exactly_once, and without a separator', () => {
  const flawOf = (settings: object) =>
    kafkaSink.flaw?.(parseSettings(kafkaSink, { brokers: ['k:9092'], ...settings }));

  expect(flawOf({ topic: 'x.{company}', exactly_once: true })).toContain(
    'exactly_once needs one topic',
  );
  expect(flawOf({ topic: '{source}{company}' })).toContain('write one of - _ .');
  expect(flawOf({ topic: 'x.{company}' })).toBeNull();
});

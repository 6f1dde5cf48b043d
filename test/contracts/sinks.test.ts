// What holds for every sink in the list, against real receivers in every mood: nothing is lost, every refusal is named
// and nothing else is refused, and the same events come under the same id. A sink that is listed and has no receiver
// in `kinds` fails the suite.

import { describe, expect, test } from 'vitest';
import { sinks } from '../../connectors/index.ts';
import { formats } from '../../formats/index.ts';
import type { SinkDefinition } from '../../src/contracts/definition.ts';
import type { Event, Uid } from '../../src/contracts/event.ts';
import { drivers } from '../connectors/sinks/kafka-engine.ts';
import { anEvent } from '../support/an-event.ts';
import { type OpeningWishes, openSink, someEvents } from '../support/sink-opening.ts';
import { type Deliverable, deliver } from './deliver.ts';
import { archiveKind } from './receivers/archive.ts';
import { azureKind } from './receivers/azure.ts';
import { datadogKind, secOpsKind } from './receivers/clouds.ts';
import { elasticsearchKind } from './receivers/elasticsearch.ts';
import { httpKind, otlpGrpcKind, otlpKind } from './receivers/http.ts';
import { kafkaKind } from './receivers/kafka.ts';
import { fileKind, stdoutKind } from './receivers/local.ts';
import { type Mood, type Receiver, type ReceiverKind, refusedText } from './receivers/receiver.ts';
import { relpKind } from './receivers/relp.ts';
import { s3Kind } from './receivers/s3.ts';
import { sentinelKind } from './receivers/sentinel.ts';
import { splunkKind } from './receivers/splunk.ts';
import { syslogKind } from './receivers/syslog.ts';

const kinds: readonly ReceiverKind[] = [
  syslogKind('window'),
  syslogKind('close'),
  relpKind,
  ...drivers.flatMap((driver) => [kafkaKind(driver, false), kafkaKind(driver, true)]),
  otlpKind,
  otlpGrpcKind,
  httpKind('lines'),
  httpKind('array'),
  elasticsearchKind,
  splunkKind('required'),
  splunkKind('off'),
  sentinelKind,
  archiveKind,
  fileKind,
  s3Kind('json'),
  s3Kind('parquet'),
  stdoutKind,
  azureKind,
  secOpsKind,
  datadogKind,
];

test('every listed sink has a receiver here, and every receiver a listed sink', () => {
  const listed = sinks.map((sink) => sink.type);

  expect(new Set(listed).size).toBe(listed.length);
  expect(new Set(kinds.map((kind) => kind.type)), 'add a receiver to `kinds`').toEqual(
    new Set(listed),
  );
});

test.each(sinks)('sink $type describes itself and can be configured', (sink) => {
  expect(sink.summary).toMatch(/\.$/);
  expect(formats.find(({ type }) => type === sink.usualFormat)?.shape).toBeOneOf([...sink.carries]);
  for (const field of Object.values(sink.fields)) expect(field).toHaveProperty('description');
});

/** A random sequence of its own for each test, the same in every run (mulberry32). */
function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function definitionOf(type: string): SinkDefinition {
  const definition = sinks.find((sink) => sink.type === type);
  if (definition === undefined) throw new Error(`there is no sink ${type}`);
  return definition;
}

async function open(
  { type }: ReceiverKind,
  receiver: Receiver,
  wishes: OpeningWishes = {},
): Promise<Deliverable> {
  if (receiver.open !== undefined) return await receiver.open();
  return await openSink(definitionOf(type), receiver.config, { ...receiver.wishes, ...wishes });
}

/** Events of which every fifth is one that a picky receiver refuses. */
function mixedEvents(count: number): { events: readonly Event[]; bad: readonly Uid[] } {
  const message = `${refusedText} `.repeat(1000);
  const events = Array.from({ length: count }, (_, offset) =>
    offset % 5 === 3 ? anEvent({ offset, ocsf: { message } }) : anEvent({ offset }),
  );
  const bad = events.filter((event) => event.ocsf.message === message).map(({ uid }) => uid);
  return { events, bad };
}

const uidsOf = (events: readonly Event[]) => events.map(({ uid }) => uid);

const isLong = process.env.SLUICE_TEST_LONG === '1';

/** One of the seeds in turn for each kind of receiver, or all with SLUICE_TEST_LONG=1. */
function diceOf(kind: ReceiverKind, seeds: readonly number[]): readonly number[] {
  return isLong ? seeds : seeds.filter((_, i) => i === kinds.indexOf(kind) % seeds.length);
}

describe.each(kinds)('sink $name', (kind) => {
  const definition = definitionOf(kind.type);
  const against = (mood: Mood, what: string, body: () => Promise<void>) => {
    const why = kind.unable[mood];
    if (why === undefined) test(`${what} (${mood} receiver)`, body);
    else test.skip(`${what} (${mood} receiver): ${why}`, body);
  };

  against('willing', 'delivers each event once and in order, over a restart too', async () => {
    const receiver = await kind.start('willing', dice(1));
    const events = someEvents(60);
    const before = await open(kind, receiver);
    const first = await deliver(before, events.slice(0, 30), 7);
    await before.sink.close();
    const after = await open(kind, receiver, { position: 30, mark: first.mark });

    const second = await deliver(after, events.slice(30), 7);
    await after.sink.close();

    expect([...first.refused, ...second.refused]).toEqual([]);
    expect(first.attempts + second.attempts).toBe(10);
    await expect.poll(() => receiver.arrived()).toEqual(uidsOf(events));
  });

  for (const seed of diceOf(kind, [11, 12, 13])) {
    against('shaky', `loses nothing and refuses nothing, dice ${seed}`, async () => {
      const receiver = await kind.start('shaky', dice(seed));
      const events = someEvents(60);
      const opened = await open(kind, receiver);

      const { refused } = await deliver(opened, events, 6);

      expect(refused).toEqual([]);
      expect(receiver.failures()).toBeGreaterThan(0);
      await expectArrived(receiver, events);
    });
  }

  against('picky', 'names each refused event, and delivers all others', async () => {
    const receiver = await kind.start('picky', dice(2));
    const { events, bad } = mixedEvents(40);
    const opened = await open(kind, receiver);

    const { refused } = await deliver(opened, events, 16);

    expect(refused.map(({ uid }) => uid)).toEqual(bad);
    for (const { reason } of refused) expect(reason).toMatch(/\S/);
    await expectArrived(
      receiver,
      events.filter(({ uid }) => !bad.includes(uid)),
    );
  });

  for (const seed of diceOf(kind, [21, 22, 23])) {
    against('mixed', `delivers or names every event, dice ${seed}`, async () => {
      const receiver = await kind.start('mixed', dice(seed));
      const { events, bad } = mixedEvents(40);
      const opened = await open(kind, receiver);

      const { refused } = await deliver(opened, events, 16);

      expect(refused.map(({ uid }) => uid)).toEqual(bad);
      await expectArrived(
        receiver,
        events.filter(({ uid }) => !bad.includes(uid)),
      );
      expectStableIds(receiver);
    });
  }

  against('mute', 'waits no longer than told, and takes silence for no answer', async () => {
    const receiver = await kind.start('mute', dice(3));
    const { sink, batch } = await open(kind, receiver);
    const stop = new AbortController();

    const answer = await sink.send(batch(someEvents(2)), stop.signal);
    const stopped = sink.send(batch(someEvents(2)), stop.signal);
    stop.abort(new Error('stopping'));

    expect(answer.outcome).toBe('retry');
    await expect(stopped).rejects.toThrow('stopping');
    await sink.close();
  });

  against('away', 'opens, and asks for another attempt', async () => {
    const receiver = await kind.start('away', dice(4));
    const { sink, batch } = await open(kind, receiver);

    const answer = await sink.send(batch(someEvents(2)), new AbortController().signal);

    expect(answer).toMatchObject({ outcome: 'retry', cause: { fault: 'downstream' } });
  });

  async function expectArrived(receiver: Receiver, events: readonly Event[]): Promise<void> {
    const arrived = await receiver.arrived();
    const expected = uidsOf(events);
    expect([...new Set(arrived)].sort()).toEqual([...expected].sort());
    const settings = { type: kind.type, ...receiver.config };
    if (definition.assurance(settings) === 'once') expect(arrived).toEqual(expected);
  }
});

/** The same events always come under the same id, and other events never do. */
function expectStableIds({ requests = [] }: Receiver): void {
  const idOf = new Map<string, string>();
  const eventsOf = new Map<string, string>();
  for (const { id, uids } of requests) {
    const events = uids.join();
    expect(id).toBe(idOf.get(events) ?? id);
    expect(events).toBe(eventsOf.get(id) ?? events);
    idOf.set(events, id);
    eventsOf.set(id, events);
  }
}

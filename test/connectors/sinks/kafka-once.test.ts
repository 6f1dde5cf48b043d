// The Kafka sink with exactly_once against a real Apache Kafka: a process killed at each step of a transaction, answers
// lost, transactions aborted, and a second process with the same transactional id. What counts is what a consumer of
// committed records sees: each uid once, and the position that belongs to it.

import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Kafka, logLevel } from 'kafkajs';
import { beforeAll, describe, expect, test } from 'vitest';
import { kafkaSink } from '../../../connectors/sinks/kafka.ts';
import { ExportError } from '../../../src/contracts/errors.ts';
import type { Event } from '../../../src/contracts/event.ts';
import type { Json } from '../../../src/contracts/json.ts';
import type { Epoch } from '../../../src/contracts/numbering.ts';
import type { Delivery } from '../../../src/contracts/sink.ts';
import { anEvent } from '../../support/an-event.ts';
import { spawnChild } from '../../support/children.ts';
import { consumeAll, kafkaBrokers } from '../../support/kafka.ts';
import { testSome } from '../../support/long.ts';
import { openSink, someEvents, type TestTools, testTools } from '../../support/sink-opening.ts';
import { afterThisTest, tempDir, waitUntil } from '../../support/temp.ts';
import {
  aTopic,
  batchOf,
  committedOf,
  connectionClosed,
  deliver,
  drivers,
  feed,
  goOn,
  instead,
} from './kafka-engine.ts';
import type { ChildTask, KillPoint } from './kafka-once-child.ts';

const childFile = fileURLToPath(new URL('kafka-once-child.ts', import.meta.url));
let brokers: readonly string[] = [];
beforeAll(async () => {
  brokers = await kafkaBrokers();
});

async function committedUids(topic: string): Promise<readonly (string | undefined)[]> {
  const records = await consumeAll(topic);
  return records.map(({ headers }) => headers.uid).sort();
}

const uids = (events: readonly { readonly uid: string }[]) => events.map(({ uid }) => uid).sort();

async function killedChild(task: ChildTask) {
  const child = spawnChild(process.execPath, [childFile, JSON.stringify(task)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH ?? '', KAFKA_BROKERS: task.brokers.join(',') },
  });
  let errors = '';
  child.stderr?.on('data', (chunk) => {
    errors += String(chunk);
  });
  const [, signal] = await once(child, 'close');
  return { signal, errors };
}

interface Wishes {
  readonly spoolId?: string;
  readonly epochs?: readonly Epoch[];
  readonly position?: number;
  readonly mark?: Json | null;
  readonly tools?: TestTools;
  readonly [setting: string]: unknown;
}

describe.each(drivers)('kafkaSink with exactly_once over %s', (driver) => {
  const openOnce = async (topic: string, wishes: Wishes = {}) => {
    const {
      spoolId = crypto.randomUUID(),
      epochs,
      position = 0,
      mark = null,
      tools,
      ...more
    } = wishes;
    const config = { driver, brokers, topic, key: 'uid', exactly_once: true, ...more };
    const numbers = { ...(epochs && { epochs }), ...(tools && { tools }) };
    return await openSink(kafkaSink, config, { spoolId, position, mark, ...numbers });
  };

  // The first transaction on a new broker has to wait for its coordinators; the tests are about those that follow.
  beforeAll(async () => {
    const opened = await openOnce(await aTopic('first'));
    await deliver(opened, someEvents(1));
    await opened.sink.close();
  });

  /** The events of these records, under the numbers from `first` on. */
  const renumbered = (records: readonly number[], first: number) =>
    records.map((record, i) => ({ ...anEvent({ offset: record }), offset: first + i }));
  const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

  test('holds each event once where an older state is put back, twice, and killed while it catches up', async () => {
    const topic = await aTopic('older');
    const spoolId = crypto.randomUUID();
    const open = (state: Omit<Wishes, 'spoolId'>) => openOnce(topic, { spoolId, ...state });
    const first = await open({ epochs: [{ id: 5, until: null }] });
    await committedOf(first);
    const copied = await first.sink.send(first.batch(renumbered(range(0, 30), 0)), goOn);
    const mark = copied.outcome === 'delivered' ? (copied.mark ?? null) : null;
    await deliver(first, renumbered(range(30, 60), 30));
    await first.sink.close();

    // Numbers from 30 on come to stand for others, and come in another order.
    const old = (id: number) => [
      { id: 5, until: 30 },
      { id, until: null },
    ];
    const second = await open({ epochs: old(9), position: 30, mark });
    const reach = await second.sink.committed?.(goOn);
    await deliver(second, renumbered([65, ...range(50, 60), 66], 30));
    await second.sink.close();
    const third = await open({
      epochs: [...old(9).slice(0, 1), { id: 9, until: 42 }, { id: 10, until: null }],
      position: 42,
      mark,
    });
    const reachThird = await third.sink.committed?.(goOn);
    await deliver(third, renumbered([...range(30, 50), 67], 42));
    await third.sink.close();
    const fourth = await open({ epochs: old(12), position: 30, mark });
    const again = await fourth.sink.committed?.(goOn);
    await deliver(fourth, renumbered(range(30, 70).reverse(), 30));
    await fourth.sink.close();

    expect(reach).toEqual({ position: 30, ahead: true });
    expect(reachThird).toEqual({ position: 42, ahead: false });
    expect(again).toEqual({ position: 30, ahead: true });
    const all = renumbered([...range(0, 60), ...range(60, 70)], 0);
    expect(await committedUids(topic)).toEqual(uids(all));
  });

  test('holds each event once where the state is lost', async () => {
    const topic = await aTopic('lost');
    const first = await openOnce(topic);
    await deliver(first, someEvents(40));
    await first.sink.close();

    const second = await openOnce(topic);
    await committedOf(second);
    await deliver(second, renumbered(range(10, 50).reverse(), 0));

    expect(await committedUids(topic)).toEqual(uids(someEvents(50)));
  });

  test('commits the position with the events, and reads it back after a restart, with either client', async () => {
    const topic = await aTopic('once');
    const spoolId = crypto.randomUUID();
    const first = await openOnce(topic, { spoolId });
    const before = await committedOf(first);
    const answer = await first.sink.send(batchOf(first, someEvents(50), 77), goOn);
    await first.sink.close();

    const second = await openOnce(topic, { spoolId });
    const other = drivers.find((each) => each !== driver);
    const third = await openOnce(topic, { spoolId, driver: other });

    expect(before).toBeNull();
    expect(answer).toMatchObject({ outcome: 'delivered' });
    expect(await committedOf(second)).toBe(77);
    expect(await committedOf(third)).toBe(77);
    expect(await committedUids(topic)).toEqual(uids(someEvents(50)));
  });

  test('knows nothing of the position of another state directory', async () => {
    const topic = await aTopic('other-spool');
    const first = await openOnce(topic);
    await first.sink.send(batchOf(first, someEvents(5)), goOn);

    const second = await openOnce(topic);

    expect(await committedOf(second)).toBeNull();
  });

  // A broker applies the offsets of a transaction after it has answered the commit, later under load. Until then a request
  // without require_stable gets the position before.
  test('waits for a position that a transaction has not applied yet', async () => {
    const topic = await aTopic('unstable');
    const spoolId = crypto.randomUUID();
    const epochs = [{ id: 5, until: null }];
    const first = await openOnce(topic, { spoolId, epochs });
    await first.sink.send(batchOf(first, someEvents(5)), goOn);
    const client = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING });
    const other = client.producer({ transactionalId: crypto.randomUUID(), maxInFlightRequests: 1 });
    afterThisTest(() => other.disconnect());
    await other.connect();
    const transaction = await other.transaction();
    // Kafkajs sends the metadata, and its types do not name it.
    const place = { partition: 0, offset: '9', metadata: '{"epoch":5}' };
    await transaction.sendOffsets({
      consumerGroupId: `sluice-${spoolId.slice(0, 12)}-sink-under-test`,
      topics: [{ topic, partitions: [place] }],
    });

    const second = await openOnce(topic, { spoolId, epochs });
    const reached = committedOf(second);
    expect(await Promise.race([reached, delay(500, 'none yet')])).toBe('none yet');
    await transaction.commit();

    expect(await reached).toBe(9);
  });

  // Of three writers that are killed together, the next process ends the transactions one by one, in any order.
  test('reads no aborted record back as delivered, in whatever order transactions end', async () => {
    const topic = await aTopic('aborted', { partitions: 1 });
    const events = someEvents(40);
    const client = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING });
    const open: (() => Promise<void>)[] = [];
    for (const part of [events.slice(0, 10), events.slice(10, 20), events.slice(20, 30)]) {
      const producer = client.producer({ transactionalId: crypto.randomUUID() });
      afterThisTest(() => producer.disconnect());
      await producer.connect();
      const transaction = await producer.transaction();
      const messages = part.map(({ uid }) => ({ value: '{}', headers: { uid } }));
      await transaction.send({ topic, messages });
      open.unshift(() => transaction.abort());
    }
    for (const abort of open) await abort();

    const sink = await openOnce(topic);
    await committedOf(sink);
    await deliver(sink, events);

    const all = await consumeAll(topic, { isolation: 'read_uncommitted' });
    expect(all.map(({ headers }) => headers.uid).sort()).toEqual(
      uids([...events.slice(0, 30), ...events]),
    );
    expect(await committedUids(topic)).toEqual(uids(events));
  });

  test('querying a position needs no topic', async () => {
    const opened = await openOnce(`unmade-${crypto.randomUUID()}`);

    expect(await committedOf(opened)).toBeNull();
  });

  // An answer that has come leaves Kafka as it is before the next request; only the last one needs a point of its own.
  const points: readonly KillPoint[] = [
    { request: 'initProducerId', moment: 'written', nth: 1 },
    { request: 'produce', moment: 'before', nth: 2 },
    { request: 'produce', moment: 'written', nth: 2 },
    { request: 'txnOffsetCommit', moment: 'before', nth: 2 },
    { request: 'txnOffsetCommit', moment: 'written', nth: 2 },
    { request: 'endTxn', moment: 'before', nth: 2 },
    { request: 'endTxn', moment: 'written', nth: 2 },
    { request: 'endTxn', moment: 'answered', nth: 2 },
  ];
  testSome(3, points)('killed at $request ($moment): each event once', async (kill) => {
    const topic = await aTopic('killed', { partitions: 2 });
    const positionFile = join(tempDir(), 'position');
    const spoolId = crypto.randomUUID();
    const task = { driver, brokers, topic, spoolId, positionFile, events: 40, batch: 10 };

    const killed = await killedChild({ ...task, kill });
    const reached = await feed(task);

    expect(killed).toEqual({ signal: 'SIGKILL', errors: '' });
    expect(reached).toBe(40);
    expect(await committedUids(topic)).toEqual(uids(someEvents(40)));
  });

  test('a commit whose response is lost is found done', async () => {
    const topic = await aTopic('answer-lost');
    const opened = await openOnce(topic);
    const lose = async (send: () => Promise<unknown>) => {
      await send();
      throw connectionClosed(driver, { again: false });
    };
    const lost = instead('endTxn', lose, driver);

    const answer = await opened.sink.send(batchOf(opened, someEvents(10)), goOn);
    lost.restore();
    const committed = await committedOf(opened);

    expect(answer).toMatchObject({
      outcome: 'retry',
      cause: { message: expect.stringContaining('the outcome of the commit is not known') },
    });
    expect(committed).toBe(10);
    expect(await committedUids(topic)).toEqual(uids(someEvents(10)));
  });

  test('a commit that never got there is found missing, and sent again', async () => {
    const topic = await aTopic('commit-lost');
    const opened = await openOnce(topic);
    const lose = async () => {
      throw connectionClosed(driver, { again: false });
    };
    const lost = instead('endTxn', lose, driver);
    const answer = await opened.sink.send(batchOf(opened, someEvents(10)), goOn);
    lost.restore();
    const committed = await committedOf(opened);

    const again = await opened.sink.send(batchOf(opened, someEvents(10)), goOn);

    expect(answer).toMatchObject({ outcome: 'retry' });
    expect(committed).toBeNull();
    expect(again).toMatchObject({ outcome: 'delivered' });
    expect(await committedUids(topic)).toEqual(uids(someEvents(10)));
  });

  test('events sent before a failure stay invisible, and the rejected event is isolated', async () => {
    const settings = { 'max.message.bytes': '20000' };
    const topic = await aTopic('aborted', { partitions: 2, settings });
    const opened = await openOnce(topic);
    const large = anEvent({ offset: 17, ocsf: { message: 'x'.repeat(30_000) } });
    const events = [...someEvents(17), large, ...someEvents(12, 18)];

    // Whether the other partition's part is written before the refusal is a race at the broker.
    const answer = await waitUntil(
      async () => {
        const refused = await opened.sink.send(batchOf(opened, events), goOn);
        const written = await consumeAll(topic, { isolation: 'read_uncommitted' });
        return written.length > 0 ? refused : null;
      },
      { what: 'a part that is written and not committed' },
    );
    const seenThen = await committedUids(topic);
    const { dead } = await deliver(opened, events);

    expect(answer).toMatchObject({ outcome: 'refused', scope: 'batch' });
    expect(seenThen).toEqual([]);
    expect(dead).toEqual([large.uid]);
    expect(await committedUids(topic)).toEqual(uids(events.filter((event) => event !== large)));
    expect(await committedOf(opened)).toBe(30);
  });

  test('an event that is tried out is judged, leaves no position and no record to readers', async () => {
    const topic = await aTopic('tried', { settings: { 'max.message.bytes': '20000' } });
    const opened = await openOnce(topic);
    const large = anEvent({ offset: 3, ocsf: { message: 'x'.repeat(30_000) } });
    const tryOut = (...events: readonly Event[]) =>
      opened.sink.tryOut?.(batchOf(opened, events), goOn);

    const good = await tryOut(...someEvents(1, 5));
    const second = await tryOut(...someEvents(1, 6));
    const sent = await opened.sink.send(batchOf(opened, someEvents(2)), goOn);
    const bad = await tryOut(large);
    const position = await committedOf(opened);

    expect([good, second, sent]).toMatchObject(Array(3).fill({ outcome: 'delivered' }));
    expect(bad).toMatchObject({ outcome: 'refused', scope: 'batch' });
    expect(position).toBe(2);
    expect(await committedUids(topic)).toEqual(uids(someEvents(2)));
    // The broker has judged them: they were written, in transactions that were aborted.
    const written = await consumeAll(topic, { isolation: 'read_uncommitted' });
    expect(written).toHaveLength(4);
  });

  test('an event larger than max_message is refused before anything after it is sent', async () => {
    const topic = await aTopic('large');
    const opened = await openOnce(topic, { max_message: '8KiB' });
    const large = anEvent({ offset: 5, ocsf: { message: 'x'.repeat(8192) } });
    const events = [...someEvents(5), large, ...someEvents(5, 6)];

    const whole = await opened.sink.send(batchOf(opened, events), goOn);
    const alone = await opened.sink.send(batchOf(opened, [large]), goOn);
    const { dead } = await deliver(opened, events);

    for (const answer of [whole, alone]) {
      expect(answer).toMatchObject({
        outcome: 'refused',
        scope: 'batch',
        cause: { code: 'record_refused', message: expect.stringContaining('max_message is 8192') },
      });
    }
    expect(dead).toEqual([large.uid]);
    expect(await committedUids(topic)).toEqual(uids(events.filter((event) => event !== large)));
  });

  test('a batch of several requests is one transaction', async () => {
    const topic = await aTopic('requests');
    const opened = await openOnce(topic, { max_message: '8KiB' });
    const sent = { produce: 0, endTxn: 0 };
    for (const request of ['produce', 'endTxn'] as const) {
      const count = async (send: () => Promise<unknown>) => {
        sent[request] += 1;
        return await send();
      };
      instead(request, count, driver);
    }

    const answer = await opened.sink.send(batchOf(opened, someEvents(60)), goOn);

    expect(answer).toMatchObject({ outcome: 'delivered' });
    expect(sent.produce).toBeGreaterThan(1);
    expect(sent.endTxn).toBe(1);
    expect(await committedUids(topic)).toEqual(uids(someEvents(60)));
  });

  test('a process that has lost its turn neither writes nor blocks, also if it notices too late', async () => {
    const topic = await aTopic('turns');
    const spoolId = crypto.randomUUID();
    const open = async (turns: readonly boolean[]) => {
      const left = [...turns];
      const confirm = async () => {
        if (left.shift() === false)
          throw new ExportError('state_locked', 'another one', { next: '' });
      };
      return await openOnce(topic, { spoolId, tools: { ...testTools(), confirm } });
    };
    const events = someEvents(60);
    // Queried before and after a producer uses the id: at its first use, and when it has been fenced since.
    const early = await open([true, true, false]);
    const late = await open([true, true, true, false]);
    await deliver(early, events.slice(0, 10));
    await committedOf(late);
    await deliver(late, events.slice(10, 20));
    const successor = await open([]);
    await committedOf(successor);
    await deliver(successor, events.slice(20, 40));

    const again: Delivery[] = [];
    for (const asleep of [early, late]) {
      // Put out the first time; the second time it would take the id again.
      for (let attempt = 0; attempt < 2; attempt += 1) {
        again.push(await asleep.sink.send(asleep.batch(events.slice(10, 30)), goOn));
      }
    }
    const { troubles } = await deliver(successor, events.slice(40, 60));

    expect(again.map(({ outcome }) => outcome)).toEqual(['retry', 'retry', 'retry', 'retry']);
    expect(troubles.map(({ outcome }) => outcome)).toEqual(['retry']);
    expect(await committedUids(topic)).toEqual(uids(events));
  });

  test('a second process takes over; the first one stops for good and says why', async () => {
    const topic = await aTopic('zombie');
    const spoolId = crypto.randomUUID();
    const zombie = await openOnce(topic, { spoolId });
    await zombie.sink.send(batchOf(zombie, someEvents(10)), goOn);

    const heir = await openOnce(topic, { spoolId });
    const inherited = await committedOf(heir);
    const refused = await zombie.sink.send(batchOf(zombie, someEvents(10, 10)), goOn);
    const asked = zombie.sink.committed?.(goOn);
    await expect(asked).rejects.toMatchObject({ code: 'sink_refused' });
    const refusedAgain = await zombie.sink.send(batchOf(zombie, someEvents(10, 10)), goOn);
    const { troubles } = await deliver(heir, someEvents(10, 10));

    expect(inherited).toBe(10);
    const id = `sluice-${spoolId.slice(0, 12)}-sink-under-test`;
    for (const answer of [refused, refusedAgain]) {
      expect(answer).toMatchObject({
        outcome: 'refused',
        scope: 'sink',
        cause: { next: expect.stringContaining(`took over the transactional id ${id}`) },
      });
    }
    expect(troubles).toEqual([]);
    expect(await committedUids(topic)).toEqual(uids(someEvents(20)));
  });

  test('a process that is taken over within a transaction cannot commit it', async () => {
    const topic = await aTopic('zombie-within');
    const spoolId = crypto.randomUUID();
    const zombie = await openOnce(topic, { spoolId });
    const reached = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    const hold = async (send: () => Promise<unknown>) => {
      reached.resolve();
      await go.promise;
      return await send();
    };
    const held = instead('endTxn', hold, driver);
    const late = zombie.sink.send(batchOf(zombie, someEvents(10)), goOn);
    await reached.promise;
    held.restore();

    const heir = await openOnce(topic, { spoolId });
    const inherited = await committedOf(heir);
    const { troubles } = await deliver(heir, someEvents(10));
    go.resolve();

    expect(inherited).toBeNull();
    expect(troubles).toEqual([]);
    expect(await late).toMatchObject({ outcome: 'refused', scope: 'sink' });
    expect(await committedUids(topic)).toEqual(uids(someEvents(10)));
  });

  test('uses the transactional id of the config: two sinks with the same one put each other off', async () => {
    const topic = await aTopic('named-id');
    const transactional_id = `mine-${crypto.randomUUID()}`;
    const first = await openOnce(topic, { transactional_id });
    await first.sink.send(batchOf(first, someEvents(10)), goOn);

    const second = await openOnce(topic, { transactional_id });
    const taken = await second.sink.send(batchOf(second, someEvents(10, 10)), goOn);
    const refused = await first.sink.send(batchOf(first, someEvents(10, 20)), goOn);

    expect(taken).toMatchObject({ outcome: 'delivered' });
    expect(refused).toMatchObject({
      outcome: 'refused',
      scope: 'sink',
      cause: {
        next: expect.stringContaining(`took over the transactional id ${transactional_id}`),
      },
    });
    expect(await committedUids(topic)).toEqual(uids(someEvents(20)));
  });
});

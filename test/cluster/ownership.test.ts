// Ownership of a state in Kafka, with real processes on a real Apache Kafka: one works and the others are on standby, until it
// is frozen, killed or stopped.

import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  assignments,
  type Candidate,
  reportFields,
  shareIn,
  shareOut,
} from '../../src/cluster/assignment.ts';
import { gainOnly } from '../../src/cluster/group-member.ts';
import { ShardLog } from '../../src/cluster/log/shard-log.ts';
import { processesOf } from '../../src/cluster/processes.ts';
import { parseHostPort } from '../../src/contracts/settings.ts';
import type { Clock } from '../../src/contracts/tools.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { aJourney } from '../support/a-journey.ts';
import { kafkaBrokers, startKafka } from '../support/kafka.ts';
import { silent } from '../support/silent-log.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const audit = '/v1/audit/events';
const events = 200;
const works = 'running';
const waits = 'standing by';

const candidate = (
  memberId: string,
  { owns = {}, ready = [0, 1, 2, 3] }: { owns?: Record<number, number>; ready?: number[] } = {},
): Candidate => {
  const since = Object.entries(owns).map(([shard, from]) => [Number(shard), from] as const);
  const accepted = ready.filter((shard) => !(shard in owns));
  return { memberId, process: memberId, owns: new Map(since), ready: new Set(accepted) };
};

const shardsOf = (...members: readonly Candidate[]) =>
  Object.fromEntries([...shareOut(members)].map(([name, { shards }]) => [name, shards]));
const givesOf = (...members: readonly Candidate[]) =>
  Object.fromEntries([...shareOut(members)].map(([name, { gives }]) => [name, gives]));

test('an owner keeps its shard, and of two owners the newer one does', () => {
  const asleep = candidate('a', { owns: { 0: 3, 1: 3 } });
  const successor = candidate('b', { owns: { 0: 5 } });

  expect(shardsOf(asleep, successor, candidate('c'))).toEqual({ a: [1, 3], b: [0], c: [2] });
  expect(
    shardsOf(candidate('c', { ready: [0] }), candidate('a', { owns: { 0: 3 }, ready: [] })),
  ).toEqual({ a: [0], c: [] });
});

test('free shards go to the member with the fewest that accepts them', () => {
  expect(shardsOf(candidate('y'), candidate('x'))).toEqual({ x: [0, 2], y: [1, 3] });
  expect(shardsOf(candidate('a', { owns: { 0: 1, 1: 1 } }), candidate('b'))).toEqual({
    ...{ a: [0, 1], b: [2, 3] },
  });
  expect(shardsOf(candidate('a', { ready: [] }), candidate('b', { ready: [2] }))).toEqual({
    ...{ a: [], b: [2] },
  });
  expect(shardsOf()).toEqual({});
});

test('those with the most give to those with two less at least, and to several at once', () => {
  const four = { 0: 1, 1: 1, 2: 1, 3: 1 };
  expect(givesOf(candidate('a', { owns: four }), candidate('b'))).toEqual({ a: [3, 2], b: [] });
  expect(givesOf(candidate('a', { owns: four }), candidate('b', { ready: [0] }))).toEqual({
    ...{ a: [0], b: [] },
  });
  expect(givesOf(candidate('a', { owns: four }), candidate('b', { ready: [] }))).toEqual({
    ...{ a: [], b: [] },
  });
  const [first, second] = [
    { 0: 1, 1: 1 },
    { 2: 1, 3: 1 },
  ];
  expect(
    givesOf(candidate('b', { owns: second }), candidate('a', { owns: first }), candidate('c')),
  ).toEqual({ a: [1], b: [], c: [] });
  expect(givesOf(candidate('a', { owns: first }), candidate('b', { owns: { 2: 1 } }))).toEqual({
    ...{ a: [], b: [] },
  });
  // One process has all, and three others join; one joins beside two.
  const six = [0, 1, 2, 3, 4, 5];
  const owning = (shards: readonly number[]) => ({
    ...{ owns: Object.fromEntries(shards.map((shard) => [shard, 1])), ready: six },
  });
  const [b, c, d] = [
    candidate('b', owning([])),
    candidate('c', owning([])),
    candidate('d', owning([])),
  ];
  expect(givesOf(candidate('a', owning(six)), b, c, d)).toEqual({
    ...{ a: [5, 4, 3, 2], b: [], c: [], d: [] },
  });
  expect(givesOf(candidate('a', owning([0, 1, 2])), candidate('b', owning([3, 4, 5])), c)).toEqual({
    ...{ a: [2], b: [5], c: [] },
  });
});

test('members of a state of one shard understand older versions, and are understood', () => {
  const member = (memberId: string, report: object) => ({
    memberId,
    metadata: Buffer.from(JSON.stringify({ process: memberId, ...report })),
  });
  const old = member('old', { ownsSince: 4, isDrained: false, load: 0 });
  const drained = member('drained', { ownsSince: null, isDrained: true, load: 0 });
  const own = member('own', reportFields({ owns: {}, ready: [0], isDrained: false }, 1));
  const texts = (...members: readonly ReturnType<typeof member>[]) =>
    Object.fromEntries(assignments(members, 1).map((one) => [one.memberId, `${one.assignment}`]));

  expect(texts(own, old)).toEqual({ old: 'owner', own: 'standby' });
  expect(texts(own, drained)).toEqual({ drained: 'standby', own: 'owner' });
  const reported = reportFields({ owns: { 0: 7 }, ready: [], isDrained: false }, 1);
  expect(reported).toMatchObject({ ownsSince: 7, isDrained: false, load: 0 });
});

test('an assignment or a report of another program has no effect', () => {
  for (const text of ['', 'x', '[1]', '{"shards":"all","gives":{}}']) {
    expect(shareIn(Buffer.from(text))).toEqual({ shards: [], gives: [] });
  }
  const [share] = assignments([{ memberId: 'm', metadata: Buffer.from('nothing') }], 2);
  expect(JSON.parse(`${share?.assignment}`)).toEqual({ shards: [0], gives: [] });
});

test('of three processes one works; frozen, killed and ended in order it is replaced, and every event is sent once', async () => {
  const {
    configure,
    grow,
    uids: sentUids,
    ...journey
  } = await aJourney({
    ...{ events, brokers: await kafkaBrokers(), source: 'every: 1s, page_limit: 100' },
  });
  const start = (name: string, more = '') =>
    journey.start(configure(name, { kafka: `session_timeout: 6s${more}` }));
  const sent = (count: number) =>
    waitUntil(() => sentUids().length >= count, {
      what: () => `${count} of ${sentUids().length}`,
    });

  const first = start('first');
  await first.waitForLine(works);
  const second = start('second');
  await second.waitForLine(waits);
  await sent(events);

  process.kill(first.pid, 'SIGSTOP');
  await second.waitForLine(works);
  process.kill(first.pid, 'SIGCONT');
  const ended = await first.exited;
  expect(ended.exitCode).toBe(1);
  expect(ended.stderr).toContain('state_locked');

  const third = start('third');
  await third.waitForLine(waits);
  const fourth = start('fourth');
  await fourth.waitForLine(waits);
  const passing = start('passing', ', instance: one');
  await passing.waitForLine(waits);
  const namesake = start('namesake', ', instance: one');
  expect((await passing.exited).stderr).toContain('instance name one');
  await namesake.waitForLine(waits);
  expect((await namesake.kill('SIGTERM')).exitCode).toBe(0);
  grow(events);
  await sent(2 * events);
  await second.kill('SIGKILL');
  const [owner, spare] = await waitUntil(
    () => {
      const worksNow = ({ stderr }: typeof third) => stderr.some((line) => line.includes(works));
      if (worksNow(third)) return [third, fourth] as const;
      return worksNow(fourth) && ([fourth, third] as const);
    },
    { what: 'another to work' },
  );
  grow(events);
  await sent(3 * events);

  expect(spare.running).toBe(true);
  expect((await owner.kill('SIGTERM')).exitCode).toBe(0);
  await spare.waitForLine(works);
  expect((await spare.kill('SIGTERM')).exitCode).toBe(0);
  const uids = sentUids();
  expect(uids.length).toBe(3 * events);
  expect(new Set(uids).size).toBe(3 * events);
}, 180_000);

test('suspended since it became the owner, it does not fence its successor', async () => {
  const { configure, grow, uids, ...journey } = await aJourney({
    ...{ events, brokers: await kafkaBrokers(), source: 'every: 500ms' },
  });
  const start = (name: string) => journey.start(configure(name, { kafka: 'session_timeout: 6s' }));
  const first = start('first');
  await first.waitForLine('this process owns the state in Kafka');
  process.kill(first.pid, 'SIGSTOP');
  const second = start('second');
  await waitUntil(() => uids().length === events, { what: 'the second to work' });

  process.kill(first.pid, 'SIGCONT');
  const { exitCode, stderr } = await first.exited;
  grow(events);
  await waitUntil(() => uids().length === 2 * events, { what: 'the second process to resume' });

  expect([exitCode, stderr]).toEqual([1, expect.stringContaining('state_locked')]);
  expect((await second.kill('SIGTERM')).exitCode).toBe(0);
}, 180_000);

test('suspended for longer than its session it continues only if no other process has worked, though the group has no other member', {
  tags: ['long'],
}, async () => {
  const brokers = (await kafkaBrokers()).map(parseHostPort).filter((one) => one !== null);
  const settings = {
    ...{ brokers, prefix: `p-${crypto.randomUUID()}`, sessionMs: 6_000 },
    deployment: () => ['one'],
  };
  const never = new AbortController().signal;
  const lost: Error[] = [];
  const begin = async (clock: Clock) => {
    const deps = { log: silent, clock, lost: (why: Error) => lost.push(why) };
    const ownership = await gainOnly(settings, deps, never);
    afterThisTest(() => ownership.close());
    const log = await ShardLog.take(settings, { log: silent, clock, confirm: ownership.confirm });
    afterThisTest(() => log.cut());
    await log.rebuild(tempDir());
    return { ownership, log };
  };
  // Of a table that a newer version may have.
  const note = (name: string) => [{ table: 'later', key: [name], value: Buffer.from('{}') }];
  const sleeper = aSleeper();
  const first = await begin(sleeper.clock);
  await first.log.commit(note('first'));
  const givenUp = () =>
    waitUntil(async () => (await processesOf(settings, systemClock())).length === 0, {
      what: 'the group to have given it up',
    });

  sleeper.sleep();
  await givenUp();
  sleeper.wake();
  await first.log.confirm();
  await first.log.commit(note('first again'));
  sleeper.sleep();
  await givenUp();
  const second = await begin(systemClock());
  await second.log.commit(note('second'));
  await second.ownership.close();
  sleeper.wake();

  await first.ownership.confirm(); // the group has no other member any more
  expect(lost).toEqual([]);
  await expect(first.log.confirm()).rejects.toMatchObject({ code: 'state_locked' });
  await expect(first.log.commit(note('stale'))).rejects.toMatchObject({ code: 'state_locked' });
});

/** A clock whose sleeps continue while the process is suspended. */
function aSleeper() {
  const clock = systemClock();
  let awake = Promise.withResolvers<void>();
  awake.resolve();
  return {
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      async sleep(ms: number, signal?: AbortSignal) {
        await clock.sleep(ms, signal);
        await awake.promise;
      },
    } satisfies Clock,
    sleep() {
      awake = Promise.withResolvers<void>();
    },
    wake: () => awake.resolve(),
  };
}

test('cut off from Kafka it sends no request upstream once a successor may have started, until Kafka answers again', async () => {
  const kafka = await startKafka();
  const everyMs = 100;
  const { sandbox, configure, start, uids } = await aJourney({
    ...{ events, brokers: [kafka.addresses.plain], kafka: 'session_timeout: 6s' },
    source: `every: ${everyMs}ms, page_limit: 100`,
  });
  const asked = () => sandbox.control.requests()[audit]?.requests ?? 0;
  const sluice = start(configure());
  await waitUntil(() => uids().length === events, { what: 'all events of before' });

  const broker = kafka.pid ?? 0;
  process.kill(broker, 'SIGSTOP');
  await sluice.waitForLine('group_unreachable');
  // An earlier request may be on its way.
  await delay(everyMs * 5);
  const before = asked();
  sandbox.control.grow(audit, events);
  await delay(everyMs * 20);
  const meanwhile = asked() - before;
  process.kill(broker, 'SIGCONT');
  await sluice.waitForLine('group_recovered');
  await waitUntil(() => uids().length === 2 * events, { what: 'all events' });

  expect(meanwhile).toBe(0);
  expect((await sluice.kill('SIGTERM')).exitCode).toBe(0);
  expect(new Set(uids()).size).toBe(2 * events);
}, 180_000);

// Who has the state in Kafka, among real processes on a real Apache Kafka: one works and the others stand by, until it is
// frozen, killed or told to end.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type Candidate, isGiver, ownerOf } from '../../src/cluster/assignment.ts';
import { ShardLog } from '../../src/cluster/log/shard-log.ts';
import { Ownership } from '../../src/cluster/ownership.ts';
import { processesOf } from '../../src/cluster/processes.ts';
import { parseHostPort } from '../../src/contracts/settings.ts';
import type { Clock } from '../../src/contracts/tools.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { kafkaBrokers, startKafka } from '../support/kafka.ts';
import { silent } from '../support/silent-log.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const audit = '/v1/audit/events';
const events = 200;
const works = 'running';
const waits = 'standing by';

function uidsIn(file: string): readonly string[] {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => (JSON.parse(line) as { metadata: { uid: string } }).metadata.uid);
}

const candidate = (memberId: string, said: Partial<Candidate> = {}): Candidate => ({
  ...{ memberId, ownsSince: null, isDrained: false, load: 0, process: memberId },
  ...said,
});

test('whoever became the owner last owns, and among none that does the first by name', () => {
  const asleep = candidate('a', { ownsSince: 3 });
  const successor = candidate('b', { ownsSince: 5, load: 9 });
  const [first, other] = [candidate('c'), candidate('d')];

  expect(ownerOf([first, asleep, successor], 0)).toBe('b');
  expect(ownerOf([first, asleep], 0)).toBe('a');
  expect(ownerOf([other, first], 0)).toBe('c');
  expect(ownerOf([{ ...first, isDrained: true }, other], 0)).toBe('d');
  expect(ownerOf([{ ...first, isDrained: true }], 0)).toBeNull();
  expect(ownerOf([], 0)).toBeNull();
});

test('shards go to whoever has the fewest, and in turn where all have as many', () => {
  const started = [candidate('1', { process: 'x' }), candidate('2', { process: 'y' })];
  expect([0, 1, 2, 3].map((shard) => ownerOf(started, shard))).toEqual(['1', '2', '1', '2']);
  expect(ownerOf([candidate('1', { load: 2 }), candidate('2', { load: 1 })], 0)).toBe('2');
});

test('the first of those with the most gives a shard away, to one with two less at least', () => {
  const seen = (process: string | null, works = false, isDrained = false) => ({
    process,
    works,
    isDrained,
  });
  const groups = (...owners: readonly string[]) =>
    owners.map((owner) => ['a', 'b', 'c'].map((one) => seen(one, one === owner)));
  const givers = (of: ReturnType<typeof groups>) =>
    ['a', 'b', 'c', 'd'].filter((one) => isGiver(one, of));

  expect(givers(groups('b', 'b', 'b', 'a', 'a', 'a'))).toEqual(['a']);
  expect(givers(groups('b', 'b', 'a', 'a', 'c'))).toEqual([]);
  expect(givers(groups('b', 'b', 'a'))).toEqual(['b']);
  expect(givers([[seen('a', true), seen('d', false, true)], [seen('a', true)]])).toEqual([]);
  expect(givers([])).toEqual([]);

  // Of those that join anew Kafka does not tell who they are; of the owner, brokers before 4.0 not that either.
  const joining = [seen(null, true), seen(null), seen(null)];
  expect(givers([...groups('a', 'a', 'b', 'c'), joining])).toEqual([]);
  expect(givers([...groups('a', 'a', 'b', 'c'), joining.slice(1)])).toEqual([]);
  expect(givers([...groups('a', 'a', 'b', 'c'), []])).toEqual([]);
});

test('of three processes one works; frozen, killed and ended in order it is replaced, and every event is sent once', async () => {
  const brokers = await kafkaBrokers();
  const prefix = `p-${crypto.randomUUID()}`;
  const { sandbox, upstreams, env } = await anEdge(events);
  const dir = tempDir();
  const out = join(dir, 'out.ndjson');
  const start = (name: string, more = '') => {
    const config = join(dir, `${name}.yaml`);
    const kafka = `{ brokers: ${JSON.stringify(brokers)}, prefix: ${prefix}, session_timeout: 6s${more} }`;
    writeFileSync(
      config,
      `state: { dir: ${dir}/${name}, kafka: ${kafka} }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 1s, page_limit: 100 }
sinks:
  disk: { type: file, path: ${out}, format: json }
`,
    );
    return startSluice(['run', '-c', config], { env });
  };
  const sent = (count: number) =>
    waitUntil(() => uidsIn(out).length >= count, {
      what: () => `${count} of ${uidsIn(out).length}`,
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
  sandbox.control.grow(audit, events);
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
  sandbox.control.grow(audit, events);
  await sent(3 * events);

  expect(spare.running).toBe(true);
  expect((await owner.kill('SIGTERM')).exitCode).toBe(0);
  await spare.waitForLine(works);
  expect((await spare.kill('SIGTERM')).exitCode).toBe(0);
  const uids = uidsIn(out);
  expect(uids.length).toBe(3 * events);
  expect(new Set(uids).size).toBe(3 * events);
}, 180_000);

test('asleep since it was told that it owns, it puts nobody out who began meanwhile', async () => {
  const brokers = JSON.stringify(await kafkaBrokers());
  const { sandbox, upstreams, env } = await anEdge(events);
  const dir = tempDir();
  const out = join(dir, 'out.ndjson');
  const prefix = `p-${crypto.randomUUID()}`;
  const start = (name: string) => {
    const file = join(dir, `${name}.yaml`);
    writeFileSync(
      file,
      `state: { dir: ${dir}/${name}, kafka: { brokers: ${brokers}, prefix: ${prefix}, session_timeout: 6s } }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 500ms }
sinks:
  disk: { type: file, path: ${out}, format: json }
`,
    );
    return startSluice(['run', '-c', file], { env });
  };
  const first = start('first');
  await first.waitForLine('this process owns the state in Kafka');
  process.kill(first.pid, 'SIGSTOP');
  const second = start('second');
  await waitUntil(() => uidsIn(out).length === events, { what: 'the second to work' });

  process.kill(first.pid, 'SIGCONT');
  const { exitCode, stderr } = await first.exited;
  sandbox.control.grow(audit, events);
  await waitUntil(() => uidsIn(out).length === 2 * events, { what: 'the second to go on' });

  expect([exitCode, stderr]).toEqual([1, expect.stringContaining('state_locked')]);
  expect((await second.kill('SIGTERM')).exitCode).toBe(0);
}, 180_000);

test('asleep for longer than its session it goes on only where nobody has worked meanwhile, though the group knows of nobody', async () => {
  const brokers = (await kafkaBrokers()).map(parseHostPort).filter((one) => one !== null);
  const settings = {
    ...{ brokers, prefix: `p-${crypto.randomUUID()}`, sessionMs: 6_000 },
    deployment: () => ['one'],
  };
  const never = new AbortController().signal;
  const lost: Error[] = [];
  const begin = async (clock: Clock) => {
    const deps = { log: silent, clock, lost: (why: Error) => lost.push(why) };
    const ownership = await Ownership.gain(settings, deps, never);
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

  await first.ownership.confirm(); // of the group nobody else is a member any more
  expect(lost).toEqual([]);
  await expect(first.log.confirm()).rejects.toMatchObject({ code: 'state_locked' });
  await expect(first.log.commit(note('stale'))).rejects.toMatchObject({ code: 'state_locked' });
}, 180_000);

/** A clock by which whoever waits goes on waiting while its process is asleep. */
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

test('cut from Kafka alone it asks upstream for nothing once another may have begun, until Kafka answers again', async () => {
  const kafka = await startKafka();
  const { sandbox, upstreams, env } = await anEdge(events);
  const dir = tempDir();
  const config = join(dir, 'sluice.yaml');
  const out = join(dir, 'out.ndjson');
  const everyMs = 100;
  writeFileSync(
    config,
    `state: { dir: ${dir}/state, kafka: { brokers: ["${kafka.addresses.plain}"], prefix: cut, session_timeout: 6s } }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: ${everyMs}ms, page_limit: 100 }
sinks:
  disk: { type: file, path: ${out}, format: json }
`,
  );
  const asked = () => sandbox.control.requests()[audit]?.requests ?? 0;
  const sluice = startSluice(['run', '-c', config], { env });
  await waitUntil(() => uidsIn(out).length === events, { what: 'all events of before' });

  const broker = kafka.pid ?? 0;
  process.kill(broker, 'SIGSTOP');
  await sluice.waitForLine('group_unreachable');
  // What was asked for before may be on its way.
  await delay(everyMs * 5);
  const before = asked();
  sandbox.control.grow(audit, events);
  await delay(everyMs * 20);
  const meanwhile = asked() - before;
  process.kill(broker, 'SIGCONT');
  await sluice.waitForLine('group_recovered');
  await waitUntil(() => uidsIn(out).length === 2 * events, { what: 'all events' });

  expect(meanwhile).toBe(0);
  expect((await sluice.kill('SIGTERM')).exitCode).toBe(0);
  expect(new Set(uidsIn(out)).size).toBe(2 * events);
}, 180_000);

// `own_process`, a key of older versions, on a real Apache Kafka: it has no effect now, and the reports that sender processes of
// an older version left on `<prefix>.sent` are taken over once.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import type { Json } from '../../src/contracts/json.ts';
import { presentEpoch } from '../../src/contracts/numbering.ts';
import { changeState, lookInto, type Store } from '../../src/hold/store.ts';
import { takeOverSent } from '../../src/run/own-process-upgrade.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { readState } from '../../src/watch/state.ts';
import { runHere, runSluice, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { consumeAll, createTopic, kafkaBrokers } from '../support/kafka.ts';
import { silent } from '../support/silent-log.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const audit = '/v1/audit/events';
const events = 100;
const timeoutMs = 60_000;

/** One upstream, a hook that accepts nothing yet and has the key, and a file without the key. */
async function aDeployment() {
  const brokers = await kafkaBrokers();
  const prefix = `p-${crypto.randomUUID()}`;
  const dir = tempDir();
  const hook = await startHttpReceiver();
  hook.answer({ answer: 'reply', status: 503, body: 'not today' });
  const { sandbox, upstreams, env } = await anEdge(events);
  const sink = `hook: { type: http, url: '${hook.url}', format: json, batch: { events: 20, wait: 50ms }, retry: { min: 100ms, max: 300ms }, own_process: true }`;
  const config = (instance: string, hookLine = sink) => {
    const file = join(dir, `${instance}.yaml`);
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${instance}
  kafka: { brokers: ${JSON.stringify(brokers)}, prefix: ${prefix}, session_timeout: 6s, instance: ${instance} }
${upstreams}
sources: { audit: { type: audit_events, upstream: edge, every: 500ms, page_limit: 50 } }
sinks:
  ${hookLine}
  disk: { type: file, path: '${dir}/out.ndjson', format: json }
shutdown: { timeout: 1s }
`,
    );
    return file;
  };
  const start = (instance: string) => startSluice(['run', '-c', config(instance)], { env });
  const onDisk = () =>
    existsSync(join(dir, 'out.ndjson'))
      ? uidsIn(readFileSync(join(dir, 'out.ndjson'), 'utf8'))
      : [];
  const taken: string[] = [];
  const accepted = (): readonly string[] => taken;
  const accept = () =>
    hook.answer(({ body }) => {
      taken.push(...uidsIn(body.toString()));
      return { answer: 'reply', status: 200 };
    });
  /** The state of a process that has ended. */
  const look = <T>(instance: string, at: (store: Store) => T): T => {
    const found = lookInto<{ readonly is: T } | null>(
      join(dir, instance, `kafka-${prefix}`),
      null,
      (store) => ({ is: at(store) }),
    );
    if (found === null) throw new Error(`there is no state of ${instance}`);
    return found.is;
  };
  const letters = async () => {
    const { stdout } = await runHere(['dead-letters', 'list', '-c', config('any'), '--json'], env);
    return stdout
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [JSON.parse(line).uid as string]));
  };
  /** Has pages in the state of which the hook has nothing. */
  const readAll = async () => {
    const first = start('one');
    await waitUntil(() => onDisk().length >= events, { what: 'all events on disk', timeoutMs });
    await first.kill('SIGTERM');
  };
  return {
    ...{ brokers, prefix, dir, hook, sandbox, env, config, start, onDisk, accept, accepted, look },
    ...{ letters, readAll },
  };
}

/** Of records of upstream. */
function uidsIn(text: string): readonly string[] {
  const own = text.split('\n').filter((line) => !line.includes('"log_name":"sluice"'));
  return [...own.join('\n').matchAll(/"uid":"([0-9a-f]{64})"/g)].map(([, uid = '']) => uid);
}

type Deployment = Awaited<ReturnType<typeof aDeployment>>;

/** Writes as the sender process of an older version did: how far it came, and the events that were refused. */
async function report(
  { brokers, prefix, look }: Deployment,
  {
    next,
    mark = null,
    refused = [],
  }: { readonly next: number; readonly mark?: Json; readonly refused?: readonly number[] },
): Promise<readonly string[]> {
  const { numbering, uids } = look('one', (store) => ({
    numbering: store.numbering,
    uids: store
      .read(0, 64 * 1024 * 1024)
      .flatMap(({ uids }) => Buffer.from(uids).toString('hex').match(/.{64}/g) ?? []),
  }));
  const place = { spool: numbering.spool, epoch: presentEpoch(numbering), next };
  const records: [string[], object][] = [
    [['held', 'owner'], { numbering, sinks: { hook: { position: 0, mark: null } } }],
    ...refused.map((offset): [string[], object] => {
      const uid = uids[offset] ?? '';
      return [['letter', 'hook', String(offset), uid], { offset, uid, reason: 'answered 400' }];
    }),
    [['sent', 'hook'], { place, mark, facts: { state: 'idle' } }],
  ];
  const topic = `${prefix}.sent`;
  await createTopic(brokers, topic, { settings: { 'cleanup.policy': 'compact' } });
  const producer = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).producer();
  await producer.connect();
  afterThisTest(() => producer.disconnect());
  const messages = records.map(([key, value]) => ({
    ...{ key: JSON.stringify(key), value: JSON.stringify(value) },
  }));
  await producer.send({ topic, messages });
  return uids;
}

test('positions and refused events of sender processes are taken over once, and nothing is lost or sent twice', async () => {
  const deployment = await aDeployment();
  const { readAll, accept, start, accepted, letters, config, env, look, prefix } = deployment;
  await readAll();
  const uids = await report(deployment, { next: 40, refused: [3, 45] });
  expect(uids).toHaveLength(events);
  accept();

  const second = start('one');
  const rest = uids.slice(40);
  await waitUntil(() => new Set(accepted()).size >= rest.length, { what: 'the rest', timeoutMs });
  await second.kill('SIGTERM');
  expect(await letters()).toEqual([uids[3]]);
  expect(second.stderr.join('\n')).toContain('took over the position of a sender process');
  const published = (await consumeAll(`${prefix}.sent`)).filter(({ key }) => key?.includes('held'));
  expect(JSON.parse(published.at(-1)?.value ?? '').sinks).toEqual({});

  const third = start('one');
  await third.waitForLine('running');
  const retried = await runHere(['dead-letters', 'retry', '-c', config('any')], env);
  expect(retried.exitCode, retried.stderr).toBe(0);
  await waitUntil(() => accepted().includes(uids[3] ?? ''), { what: 'the dead letter', timeoutMs });
  await third.kill('SIGTERM');
  expect(third.stderr.join('\n')).not.toContain('took over');
  expect(await letters()).toEqual([]);
  expect(accepted().toSorted()).toEqual([uids[3], ...rest].toSorted());
  expect(look('one', (store) => store.positions().get('hook'))).toBeGreaterThanOrEqual(events);
});

test('the mark of a sink that has not moved is taken over once, and not put over a newer one', {
  tags: ['long'],
}, async () => {
  const deployment = await aDeployment();
  const { readAll, config, env, dir, prefix } = deployment;
  await readAll();
  await report(deployment, { next: 0, mark: { cut: 1 } });
  const { kafka } = readConfig(config('one'), { env }).state;
  if (kafka === null) throw new Error('the state is in Kafka');
  const state = join(dir, 'one', `kafka-${prefix}`);
  const takeOver = async () => {
    await takeOverSent(kafka, { dir: state, clock: systemClock(), log: silent });
    return lookInto(state, null, (store) => store.progress('hook'));
  };

  expect(await takeOver()).toEqual({ position: 0, mark: { cut: 1 } });
  changeState({ dir: state, sync: 'none', keepMs: 0 }, (store) =>
    store.acknowledge('hook', { position: 0, mark: { cut: 2 } }, 0),
  );
  expect(await takeOver()).toEqual({ position: 0, mark: { cut: 2 } });
});

test('an export takes over the position of a sender process that ended after the owner of its shard', {
  tags: ['long'],
}, async () => {
  const deployment = await aDeployment();
  const { readAll, config, env, dir } = deployment;
  await readAll();
  await report(deployment, { next: 57, refused: [7] });

  const exported = await runHere(['cluster', 'export', '-c', config('one')], env);
  expect([exported.exitCode, exported.stderr]).toEqual([0, '']);
  const found = lookInto(join(dir, 'one'), null, (store) => ({
    position: store.progress('hook').position,
    letters: store.deadLetters.list('hook').map(({ offset }) => offset),
  }));
  expect(found).toEqual({ position: 57, letters: [7] });
});

test('the key is accepted without effect and with a warning, also where the state is not in Kafka', async () => {
  const { config, accept, start, accepted, onDisk, env, prefix, brokers } = await aDeployment();
  accept();
  const warning = /one\.yaml:\d+:\d+ sinks\.hook\.own_process: this key has no effect/;
  const file = config('one');
  const checked = await runHere(['check', '-c', file], env);
  expect(checked.exitCode, checked.stderr).toBe(0);
  expect(checked.stdout).toMatch(warning);

  const running = start('one');
  await waitUntil(() => onDisk().length >= events && accepted().length >= events, {
    what: 'all events at both sinks',
    timeoutMs,
  });
  await running.kill('SIGTERM');
  expect(running.stderr.filter((line) => warning.test(line))).toHaveLength(1);
  expect(accepted().toSorted()).toEqual(onDisk().toSorted());
  const admin = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  afterThisTest(() => admin.disconnect());
  const groups = (await admin.listGroups()).groups.map(({ groupId }) => groupId);
  expect(await admin.listTopics()).not.toContain(`${prefix}.sent`);
  expect(groups.filter((id) => id.startsWith(prefix))).toEqual([`${prefix}.owners`]);

  const text = readFileSync(file, 'utf8').replace(/^ {2}kafka: .*\n/m, '');
  writeFileSync(file, text);
  const alone = await runHere(['check', '-c', file], env);
  expect([alone.exitCode, alone.stderr]).toEqual([0, '']);
  expect(alone.stdout).toMatch(warning);
});

test('commands of another machine reach a sink with the key: suspects, dead letters, and a removed sink', {
  tags: ['long'],
}, async () => {
  const deployment = await aDeployment();
  const { config, env, hook, start, accept, accepted, letters, onDisk, dir, prefix } = deployment;
  const command = async (...words: string[]) => {
    const ran = await runHere([...words, '-c', config('any')], env);
    expect(ran.exitCode, ran.stderr).toBe(0);
    return ran.stdout;
  };
  const sink = async () => {
    const { sinks } = JSON.parse(await command('cluster', '--json'));
    return sinks.find(({ name }: { readonly name: string }) => name === 'hook');
  };
  hook.answer({ answer: 'reply', status: 400, body: 'none of these' });
  const one = start('one');
  await waitUntil(async () => (await sink())?.suspects?.stuck === true, {
    ...{ what: 'suspects', timeoutMs, everyMs: 500 },
  });
  const { first } = (await sink()).suspects;
  const suspect: string = first[0].uid;
  const add = ['dead-letters', 'add', '--sink', 'hook', '--uid', suspect, '--yes'];
  const added = await runHere([...add, '-c', config('one')], env);
  expect(added.stdout, added.stderr).toContain('1 moved to the dead letters');
  await waitUntil(async () => (await letters()).length > 0, { what: 'a dead letter', timeoutMs });
  expect(await letters()).toEqual([suspect]);

  accept();
  await waitUntil(() => accepted().length >= events - 1, { what: 'the others', timeoutMs });
  expect(accepted()).not.toContain(suspect);
  await command('dead-letters', 'retry', '--uid', suspect);
  await waitUntil(() => accepted().includes(suspect), { what: 'the dead letter', timeoutMs });
  await one.kill('SIGTERM');

  const before = accepted().length;
  const noHook = `other: { type: file, path: '${dir}/other.ndjson', format: json }`;
  const without = await runSluice(['run', '--once', '-c', config('one', noHook)], {
    env,
    timeoutMs,
  });
  expect(without.exitCode, without.stderr).toBe(0);
  deployment.sandbox.control.grow(audit, 10);
  await runSluice(['run', '--once', '-c', config('one', noHook)], { env, timeoutMs });
  const { knownSinks } = readState(join(dir, 'one', `kafka-${prefix}`));
  expect(knownSinks.get('hook')).toMatchObject({ keeps: true });
  const again = await runSluice(['run', '--once', '-c', config('one')], { env, timeoutMs });
  expect(again.exitCode, again.stderr).toBe(0);
  expect(accepted()).toHaveLength(before + 10);
  expect(new Set(accepted())).toEqual(new Set(onDisk()));
});

// Sinks with a process of their own (`own_process`), on a real Apache Kafka: whichever process has a sink, its events are
// there, and what the shard's owner knows of it is what was sent.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { MemberSettings } from '../../src/cluster/log/settings.ts';
import { type HeldWord, Sent } from '../../src/cluster/sent.ts';
import { readConfig } from '../../src/config/config.ts';
import { presentEpoch } from '../../src/contracts/numbering.ts';
import { lookInto } from '../../src/hold/store.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { runHere, runSluice, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { consumeAll, kafkaBrokers, newTopic } from '../support/kafka.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const audit = '/v1/audit/events';
const events = 200;
const timeoutMs = 60_000;

/** One upstream of one shard, whose sinks are a topic and a hook, each with a process of its own, and a file without. */
async function aCluster(retryMin = '100ms') {
  const brokers = JSON.stringify(await kafkaBrokers());
  const topic = await newTopic('apart');
  const prefix = `p-${crypto.randomUUID()}`;
  const dir = tempDir();
  const hook = await startHttpReceiver();
  const { sandbox, upstreams, env } = await anEdge(events);
  const config = (instance: string, isApart = true) => {
    const file = join(dir, `${instance}.yaml`);
    const text = `state:
  dir: ${dir}/${instance}
  kafka: { brokers: ${brokers}, prefix: ${prefix}, session_timeout: 6s, instance: ${instance} }
${upstreams}
sources: { audit: { type: audit_events, upstream: edge, every: 500ms, page_limit: 50 } }
sinks:
  lake: { type: kafka, brokers: ${brokers}, topic: ${topic}, format: json, exactly_once: true, own_process: true }
  hook: { type: http, url: '${hook.url}', format: json, batch: { events: 20 }, retry: { min: ${retryMin} }, own_process: true }
  disk: { type: file, path: '${dir}/{partition}.ndjson', format: json }
status: { listen: "127.0.0.1:0" }
`;
    writeFileSync(file, isApart ? text : text.replaceAll(', own_process: true', ''));
    return file;
  };
  const start = (instance: string) => startSluice(['run', '-c', config(instance)], { env });
  const hooked = () => uidsIn(hook.requests.map(({ body }) => body.toString()).join('\n'));
  const onDisk = () => uidsIn(readFileSync(join(dir, '0.ndjson'), 'utf8'));
  const inTopic = async (count: number) =>
    (await consumeAll(topic, { until: (records) => records.length >= count, timeoutMs })).flatMap(
      ({ value }) => uidsIn(value),
    );
  return { config, start, dir, hook, sandbox, env, hooked, onDisk, inTopic };
}

interface Told {
  readonly instance: string;
  readonly state: string;
  readonly sinks: readonly { readonly name: string; readonly position: number }[];
}

/** Of records of upstream. */
function uidsIn(text: string): readonly string[] {
  const own = text.split('\n').filter((line) => !line.includes('"log_name":"sluice"'));
  return [...own.join('\n').matchAll(/"uid":"([0-9a-f]{64})"/g)].map(([, uid = '']) => uid);
}

test('a sink with a process of its own goes to whichever machine has room, and is gone on with where that one is killed', async () => {
  const { start, config, env, sandbox, hooked, onDisk, inTopic } = await aCluster();
  const everywhere = async (count: number) => {
    const topic = await inTopic(count);
    expect(topic.length).toBe(new Set(topic).size);
    const here = { what: () => `${count}, not ${hooked().length} hooked`, timeoutMs };
    await waitUntil(() => new Set(hooked()).size >= count && onDisk().length >= count, here);
    expect(onDisk().length).toBe(count);
    expect(new Set(topic)).toEqual(new Set(onDisk()));
    expect(new Set(hooked())).toEqual(new Set(onDisk()));
  };
  const one = start('one');
  await everywhere(events);
  const two = start('two');
  const has = (lines: readonly string[], sink: string) =>
    lines.some((line) => line.includes('a process has begun') && line.includes(`"sink":"${sink}"`));
  await waitUntil(() => ['lake', 'hook'].some((sink) => has(two.stderr, sink)), {
    what: () => `another process to have a sink: ${two.stderr.join('\n')}`,
    timeoutMs,
  });
  const shared = async () => {
    const { stdout } = await runHere(['cluster', '-c', config('any'), '--json'], env);
    const { processes } = JSON.parse(stdout) as { processes: readonly Told[] };
    return processes.map(({ instance, state, sinks }) => [
      ...[instance, state],
      sinks.map(({ name }) => name).sort(),
    ]);
  };
  let told: readonly unknown[] = [];
  await waitUntil(
    async () => {
      told = await shared();
      return told.flat(2).filter((name) => name === 'lake' || name === 'hook').length === 2;
    },
    { what: () => `each sink to be sent to: ${JSON.stringify(told)}`, timeoutMs, everyMs: 500 },
  );
  expect(told.flat(2).toSorted()).toEqual(
    ['one', 'two', 'working', 'working', 'disk', 'hook', 'lake'].toSorted(),
  );
  sandbox.control.grow(audit, events);
  await everywhere(2 * events);

  await one.kill('SIGKILL');
  sandbox.control.grow(audit, events);
  await everywhere(3 * events);
  expect(await two.kill('SIGTERM')).toMatchObject({ exitCode: 0 });
});

test('what such a sink refuses is a dead letter of the state, once, whoever is killed, and can be sent again', async () => {
  const { config, start, env, hook, hooked, sandbox } = await aCluster();
  const isRefused = (uid: string) => uid.startsWith('0') || uid.startsWith('7');
  hook.answer(({ body }) => {
    const isBad = uidsIn(body.toString()).some(isRefused);
    return { answer: 'reply', status: isBad ? 400 : 200, body: isBad ? 'not this one' : '' };
  });
  const taken = () => new Set(hook.requests.flatMap(({ body }) => one(body.toString())));
  // Whatever is refused is asked for by itself at last.
  const one = (text: string) => (uidsIn(text).some(isRefused) ? [] : uidsIn(text));
  const refused = () => new Set(hooked().filter(isRefused));
  const listed = async () => {
    const { stdout } = await runHere(['dead-letters', 'list', '-c', config('any'), '--json'], env);
    const letters = stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
    return letters.map(({ uid }: { uid: string }) => uid);
  };
  const through = async (count: number) => {
    const is = { what: () => `${count}, not ${taken().size} and ${refused().size}`, timeoutMs };
    await waitUntil(() => taken().size + refused().size >= count, is);
    let letters: readonly string[] = [];
    await waitUntil(
      async () => {
        letters = await listed();
        return letters.length >= refused().size;
      },
      { what: () => `${refused().size} letters, not ${letters.length}`, timeoutMs, everyMs: 500 },
    );
    expect(letters.toSorted()).toEqual([...refused()].toSorted());
  };
  const first = start('one');
  await waitUntil(() => taken().size > 20 && refused().size > 0, { what: 'some', timeoutMs });
  await first.kill('SIGKILL');
  start('one');
  await through(events);
  sandbox.control.grow(audit, events);
  await through(2 * events);
  expect(refused().size).toBeGreaterThan(10);

  hook.answer({ answer: 'reply', status: 200 });
  const again = await runHere(['dead-letters', 'retry', '-c', config('any')], env);
  expect(again).toMatchObject({ exitCode: 0 });
  const before = hook.requests.length;
  await waitUntil(() => [...refused()].every((uid) => hookedSince(before).includes(uid)), {
    what: 'the letters to be sent again',
    timeoutMs,
  });

  function hookedSince(request: number) {
    return uidsIn(
      hook.requests
        .slice(request - 5)
        .map(({ body }) => `${body}`)
        .join('\n'),
    );
  }
});

test('with --once it is sent to as well, and without a process of its own, or in a database, it goes on where it was', async () => {
  const { config, env, sandbox, hooked, inTopic, dir } = await aCluster();
  const once = async (file: string, count: number) => {
    const { exitCode, stderr } = await runSluice(['run', '--once', '-c', file], { env, timeoutMs });
    expect([exitCode, exitCode === 0 ? '' : stderr]).toEqual([0, '']);
    expect(hooked()).toHaveLength(count);
    expect(new Set(hooked()).size).toBe(count);
    expect(new Set(await inTopic(count)).size).toBe(count);
  };
  await once(config('one'), events);
  sandbox.control.grow(audit, events);
  await once(config('one'), 2 * events);
  sandbox.control.grow(audit, events);
  await once(config('one', false), 3 * events);
  await once(config('one'), 3 * events);

  let next = 0;
  // What a process has sent that ended after the shard's owner did.
  const { kafka } = readConfig(config('one'), { env }).state;
  const sent = new Sent(kafka as MemberSettings, systemClock());
  try {
    await sent.readAll();
    const { numbering } = sent.held as HeldWord;
    next = 3 * events + 7;
    const place = { spool: numbering.spool, epoch: presentEpoch(numbering), next };
    await sent.say('hook', { place, mark: null, facts: {} });
  } finally {
    await sent.close();
  }
  const exported = await runHere(['cluster', 'export', '-c', config('one')], env);
  expect([exported.exitCode, exported.stderr]).toEqual([0, '']);
  const positions = lookInto(`${dir}/one`, null, (store) => store.positions());
  expect(positions?.get('hook')).toBe(next);
});

test('the page of a process says how such a sink stands, and has it asked at once', async () => {
  const { start, hook, hooked } = await aCluster('4m');
  hook.answer({ answer: 'reply', status: 503, body: 'not today' });
  const one = start('one');
  const page = await waitUntil(
    () => one.stderr.join('\n').match(/"url":"(http:[^"]+)","msg":"status page"/)?.[1],
    { what: 'the page', timeoutMs },
  );
  const standing = async () => {
    const { sinks } = (await (await fetch(`${page}/status.json`)).json()) as {
      sinks: readonly { name: string; state: string; error: { message: string } | null }[];
    };
    return sinks.find(({ name }) => name === 'hook');
  };
  await waitUntil(async () => (await standing())?.state === 'retrying', {
    what: () => `the hook to be retried: ${one.stderr.join('\n')}`,
    ...{ timeoutMs, everyMs: 500 },
  });
  expect((await standing())?.error?.message).toContain('not today');

  hook.answer({ answer: 'reply', status: 200 });
  const asked = await fetch(`${page}/retry?name=hook`, {
    ...{ method: 'POST', headers: { origin: page } },
  });
  expect(asked.status).toBe(202);
  await waitUntil(() => new Set(hooked()).size === events, { what: 'all to be sent', timeoutMs });
});

test('it takes a state that is shared, and rights that are printed', async () => {
  const dir = tempDir();
  const file = join(dir, 'apart.yaml');
  const sink = 'siem: { type: syslog, address: "tcp://127.0.0.1:1", own_process: true }';
  const configOf = (state: string) => `${state}
upstreams: { edge: { api: unified, ends: never, base_url: "https://api.example", auth: { api_key: key } } }
sources: { audit: { type: audit_events, upstream: edge } }
sinks:
  ${sink}
`;
  writeFileSync(file, configOf(`state: { dir: ${dir} }`));
  expect(await runHere(['check', '-c', file])).toMatchObject({
    stderr: expect.stringMatching(/apart.yaml:5:\d+ sinks.siem: own_process/),
    exitCode: 2,
  });

  writeFileSync(file, configOf(`state: { kafka: { brokers: ["k:9092"], prefix: p } }`));
  const { stdout } = await runHere(['cluster', 'acls', '-c', file, '--principal', 'User:s']);
  expect(stdout).toMatch(/--operation Read --operation Write.* --topic p\.sent/);
  expect(stdout).toMatch(/--resource-pattern-type prefixed --group p\.owners/);
});

// Requests of operators to the processes of a state in Kafka from any machine, on a real Apache Kafka: each is carried out
// once, also if the process is killed meanwhile.

import { isDeepStrictEqual } from 'node:util';
import { Kafka, logLevel } from 'kafkajs';
import { expect, test } from 'vitest';
import { aJourney } from '../support/a-journey.ts';
import { runHere } from '../support/cli.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { consumeAll, kafkaBrokers } from '../support/kafka.ts';
import { waitUntil } from '../support/temp.ts';

const audit = '/v1/audit/events';

/** A deployment whose processes share a file, and commands from a machine where nothing runs. */
async function aDeployment(events: number, sinks = '') {
  const { configure, env, start, ...journey } = await aJourney({
    ...{ events, brokers: await kafkaBrokers(), source: 'every: 1s, page_limit: 50' },
  });
  const { at, uids } = journey;
  const disk = `  disk: { type: file, path: ${at('out.ndjson')}, format: json }`;
  const config = (instance: string) =>
    configure(instance, {
      kafka: `session_timeout: 6s, instance: ${instance}`,
      sinks: `${disk}\n${sinks}`,
    });
  const elsewhere = config('elsewhere');
  return {
    ...journey,
    start: (instance: string) => start(config(instance)),
    command: async (...words: string[]) => await runHere([...words, '-c', elsewhere], env),
    commandOn: async (instance: string, ...words: string[]) =>
      await runHere([...words, '-c', config(instance)], env),
    states: async () => {
      const { stdout, stderr, exitCode } = await runHere(
        ['cluster', '-c', elsewhere, '--json'],
        env,
      );
      expect(exitCode, stderr).toBe(0);
      const { processes } = JSON.parse(stdout) as {
        processes: { instance: string; state: string }[];
      };
      return Object.fromEntries(processes.map(({ instance, state }) => [instance, state]));
    },
    sent: (count: number) =>
      waitUntil(() => uids().length >= count, { what: () => `${count} of ${uids().length}` }),
  };
}

/** Writes records as somebody else would, who may write there. */
async function write(topic: string, records: readonly (readonly [string, string | null])[]) {
  const kafka = new Kafka({ brokers: [...(await kafkaBrokers())], logLevel: logLevel.NOTHING });
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic, messages: records.map(([key, value]) => ({ key, value })) });
  await producer.disconnect();
}

test('a drained process releases its shards in order and accepts none, also after a restart, until undrain', {
  tags: ['long'],
}, async () => {
  const { sandbox, uids, prefix, start, command, states, sent } = await aDeployment(200);
  const first = start('sluice-0');
  await first.waitForLine('running');
  const second = start('sluice-1');
  await second.waitForLine('standing by');
  await sent(200);

  // Records of other programs: none has an effect.
  await write(`${prefix}.control`, [
    ['\u001b[2J', 'x'],
    ['["drain","sluice-1"]', 'not JSON'],
    ['["drain","sluice-1"]', '[]'],
    ['["drain",{}]', '{}'],
    ['["command","a"]', '{"name":7,"wish":{"what":"retry"},"at":0}'],
    ['["command","b"]', '{"name":"audit","wish":{"what":"\\u001b[2J"},"at":0}'],
    [
      '["command","c"]',
      '{"name":"audit","wish":{"what":"letters","does":"drop","letters":[[]]},"at":0}',
    ],
    [
      '["command","d"]',
      '{"name":"audit\\u001b[2J","wish":{"what":"rewind","to":0,"forget":true},"at":0}',
    ],
    ['["answer",null]', null],
  ]);
  // A command without a waiting client is deleted with its answer.
  await waitUntil(
    async () => {
      const all = await consumeAll(`${prefix}.control`);
      const last = (key: string) => all.findLast((record) => record.key === key)?.value;
      return last('["command","d"]') === '' && last('["answer","d"]') === '';
    },
    { what: 'what is a day old to be forgotten', everyMs: 300 },
  );
  const unknown = await command('cluster', 'drain', 'sluice-O\u001b[2J');
  expect(unknown.exitCode).toBe(64);
  expect(unknown.stderr).toContain('known: sluice-0, sluice-1');
  expect(unknown.stderr).not.toContain('\u001b');
  const drained = await command('cluster', 'drain', 'sluice-0');
  expect(drained.exitCode, drained.stderr).toBe(0);
  expect(drained.stdout).toContain('sluice-0 stands by; sluice-1 works');
  await second.waitForLine('running');
  expect(first.running).toBe(true);
  const log = first.stderr.join('\n');
  expect([log.includes('sink is caught up'), log.includes('\u001b')]).toEqual([true, false]);
  expect(await states()).toEqual({ 'sluice-0': 'drained', 'sluice-1': 'working' });
  sandbox.control.grow(audit, 20);
  await sent(220);

  await first.kill('SIGKILL');
  await second.kill('SIGKILL');
  const again = start('sluice-0');
  await again.waitForLine('standing by: drained');
  // During a rebalance brokers send no descriptions of members.
  const become = (requested: Awaited<ReturnType<typeof states>>) =>
    waitUntil(async () => isDeepStrictEqual(await states(), requested), {
      what: `the processes to be ${JSON.stringify(requested)}`,
      everyMs: 200,
    });
  await become({ 'sluice-0': 'drained' });
  sandbox.control.grow(audit, 20);
  const lifted = await command('cluster', 'undrain', 'sluice-0');
  expect(lifted.exitCode, lifted.stderr).toBe(0);
  await again.waitForLine('running');
  await sent(240);
  await become({ 'sluice-0': 'working' });
  expect((await command('cluster', 'undrain', 'sluice-0')).exitCode).toBe(64);
  expect((await again.kill('SIGTERM')).exitCode).toBe(0);
  expect([new Set(uids()).size, uids().length]).toEqual([240, 240]);
});

test('the owner carries out commands about streams and dead letters once, also if it is killed meanwhile', async () => {
  const picky = 'evt_000000007"';
  const receiver = await startHttpReceiver();
  receiver.answer(({ body }) => ({
    answer: 'reply',
    status: body.includes(picky) ? 400 : 200,
  }));
  const sinks = `  post: { type: http, url: "${receiver.url}", format: json }\n`;
  const { uids, start, command, sent } = await aDeployment(100, sinks);
  const idle = await command('retry', 'audit');
  expect([idle.exitCode, idle.stdout]).toEqual([
    0,
    'audit: no process runs with this config; the next start retries at once\n',
  ]);
  const first = start('sluice-0');
  await first.waitForLine('running');
  await sent(100);
  await first.waitForLine('dead letter');

  const asked = await command('retry', 'audit');
  expect([asked.exitCode, asked.stdout, asked.stderr]).toEqual([0, 'audit: retrying now\n', '']);
  const listed = async () =>
    (await command('dead-letters', 'list', '--json')).stdout.split('\n').slice(0, -1);
  const [deadLetter] = await waitUntil(
    async () => (await listed()).length === 1 && (await listed()),
    {
      what: 'the letter to be in Kafka',
      everyMs: 200,
    },
  );
  const { uid } = JSON.parse(deadLetter ?? '') as { uid: string };
  const missing = await command('dead-letters', 'retry', '--uid', 'ab\u001b[2Jcd');
  expect([missing.exitCode, missing.stderr.includes('\u001b')]).toEqual([64, false]);
  const before = receiver.requests.length;
  receiver.answer({ answer: 'reply', status: 200 });
  const put = await command('dead-letters', 'retry', '--uid', uid);
  expect([put.exitCode, put.stdout]).toEqual([0, 'post: 1 put back, to be sent again\n']);
  await receiver.waitFor((all) => all.slice(before).some(({ body }) => body.includes(picky)));
  expect(await listed()).toEqual([]);

  // Killed before it has begun.
  const second = start('sluice-1');
  await second.waitForLine('standing by');
  process.kill(first.pid, 'SIGSTOP');
  const rewind = ['checkpoint', 'rewind', '--stream', 'audit', '--to', '2020-01-01T00:00:00Z'];
  const rewinding = command(...rewind, '--forget');
  await first.kill('SIGKILL');
  const rewound = await rewinding;
  expect(rewound.exitCode, rewound.stderr).toBe(0);
  expect(rewound.stdout).toContain('100 records read since 2020-01-01T00:00:00.000Z forgotten');
  await sent(200);

  // Killed when it has done it and not answered yet.
  const third = start('sluice-2');
  await third.waitForLine('standing by');
  const again = command(...rewind, '--forget');
  const isDone = () => second.stderr.filter((line) => line.includes('stream_rewound')).length === 2;
  await waitUntil(isDone, { what: 'the second rewinding', everyMs: 5 });
  await second.kill('SIGKILL');
  const done = await again;
  expect(done.exitCode, done.stderr).toBe(0);
  expect(done.stdout).toContain('100 records read since 2020-01-01T00:00:00.000Z forgotten');
  await sent(300);
  const reset = await command('checkpoint', 'reset', '--stream', 'audit', '--forget');
  expect(reset.exitCode, reset.stderr).toBe(0);
  expect(reset.stdout).toContain('100 records are forgotten');
  await sent(400);
  expect((await third.kill('SIGTERM')).exitCode).toBe(0);
  const times = Map.groupBy(uids(), (one) => one);
  expect([times.size, uids().length]).toEqual([100, 400]);
  expect(third.stderr.join('\n')).not.toContain('stream_rewound');
}, 600_000);

test('a backfill requested on another machine resumes after a kill of its reader, and is shown, cancelled and ended from there', {
  tags: ['long'],
}, async () => {
  const { uids, start, command, sent, sandbox } = await aDeployment(300);
  const first = start('sluice-0');
  await first.waitForLine('running');
  await sent(300);
  const second = start('sluice-1');
  await second.waitForLine('standing by');
  const backfill = ['backfill', '--source', 'audit', '--from', '2020-01-01T00:00:00Z'];

  const backfilling = command(...backfill);
  await first.waitForLine('backfill_started');
  await first.kill('SIGKILL');
  const ended = await backfilling;
  expect(ended.exitCode, ended.stderr).toBe(0);
  expect(ended.stderr).toMatch(
    /sluice-[01], process \d+ on .* runs with this config and gets the request/,
  );
  expect(ended.stdout).toContain('every sink has them');
  expect([new Set(uids()).size, uids().length]).toEqual([300, 600]);

  // One that cannot end.
  const rules = [{ path: audit, fault: { kind: 'status', status: 503 } as const }];
  sandbox.control.setFaults({ rules });
  const stuck = command(...backfill, '--to', '2020-01-02T00:00:00Z');
  const list = async () => {
    const { stdout } = await command('backfill', 'list', '--json');
    return stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as { id: string; state: string });
  };
  const begun = await waitUntil(async () => (await list()).find(({ state }) => state !== 'done'), {
    what: 'the second backfill to be known',
    everyMs: 200,
  });
  const cancelled = await command('backfill', 'cancel', begun?.id ?? '');
  expect(cancelled.exitCode, cancelled.stderr).toBe(0);
  const given = await stuck;
  expect([given.exitCode, given.stderr.includes('audit: cancelled')]).toEqual([1, true]);
  expect((await list()).map(({ state }) => state)).toEqual(['done']);
  await second.kill('SIGKILL');
});

test('a command on the machine of the owner is in Kafka before the owner has it, and is carried out once if the owner is killed', async () => {
  const { prefix, uids, start, commandOn, sent } = await aDeployment(100);
  const first = start('sluice-0');
  await first.waitForLine('running');
  await sent(100);
  const second = start('sluice-1');
  await second.waitForLine('standing by');
  process.kill(first.pid, 'SIGSTOP');
  const rewind = ['checkpoint', 'rewind', '--stream', 'audit', '--to', '2020-01-01T00:00:00Z'];
  const rewinding = commandOn('sluice-0', ...rewind, '--forget');
  const isStored = async () =>
    (await consumeAll(`${prefix}.control`)).some(({ key }) => key?.startsWith('["command",'));
  const what = 'the request in Kafka';
  await waitUntil(isStored, { what, everyMs: 200, timeoutMs: 60_000 });

  await first.kill('SIGKILL');
  const rewound = await rewinding;

  expect(rewound.exitCode, rewound.stderr).toBe(0);
  await sent(200);
  const reset = await commandOn('sluice-1', 'checkpoint', 'reset', '--stream', 'audit', '--forget');
  expect(reset.exitCode, reset.stderr).toBe(0);
  await sent(300);
  expect((await second.kill('SIGTERM')).exitCode).toBe(0);
  const times = Map.groupBy(uids(), (one) => one);
  expect([times.size, uids().length]).toEqual([100, 300]);
}, 600_000);

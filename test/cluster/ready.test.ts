// Readiness and metrics of a process that owns shards of a state in Kafka, on a real Apache Kafka: it is ready only while the
// worker of each of its shards runs, and a process without shards is ready.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere, startSluice } from '../support/cli.ts';
import { someEdges } from '../support/edges.ts';
import { kafkaBrokers, newTopic } from '../support/kafka.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const names = ['east', 'west'];
const timeoutMs = 90_000;

interface Answer {
  readonly status: number;
  readonly text: string;
}

test('a process whose shards cannot start is not ready and says why; once they start it is, as is one without shards', async () => {
  const brokers = JSON.stringify(await kafkaBrokers());
  const topic = await newTopic('ready');
  const prefix = `p-${crypto.randomUUID()}`;
  const dir = tempDir();
  const { upstreams, env, apart } = await someEdges(names, 10);
  const config = (instance: string, shards: number) => {
    const file = join(dir, `${instance}.yaml`);
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${instance}
  kafka: { brokers: ${brokers}, prefix: ${prefix}, shards: ${shards}, session_timeout: 6s, instance: ${instance} }
${upstreams}
sources:
${names.map((name) => `  ${name}: { type: audit_events, upstream: ${name}, every: 500ms }`).join('\n')}
sinks: { lake: { type: kafka, brokers: ${brokers}, topic: ${topic}, format: json } }
status: { listen: "127.0.0.1:0" }
`,
    );
    return file;
  };
  const shards = apart((count) => config('any', count));
  const start = (instance: string) => startSluice(['run', '-c', config(instance, shards)], { env });
  const urlOf = async (sluice: ReturnType<typeof startSluice>): Promise<string> =>
    JSON.parse(await sluice.waitForLine('"status page"')).url;
  const ask = async (url: string, path: string): Promise<Answer> => {
    const answer = await fetch(`${url}${path}`);
    return { status: answer.status, text: await answer.text() };
  };
  const metricOf = async (url: string, name: string) => {
    const { text } = await ask(url, '/metrics');
    const found = new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1];
    return found === undefined ? null : Number(found);
  };
  const becomes = (what: string, is: () => Promise<boolean>) =>
    waitUntil(is, { what, timeoutMs, everyMs: 200 });

  // A worker cannot open its directory: a file stands there.
  const cache = join(dir, 'one', `kafka-${prefix}`);
  mkdirSync(cache, { recursive: true });
  const blocked = Array.from({ length: shards }, (_, shard) => join(cache, `shard-${shard}`));
  for (const path of blocked) writeFileSync(path, '');
  const first = start('one');
  const url = await urlOf(first);
  await becomes('it to be unready', async () => (await ask(url, '/readyz')).status === 503);
  await becomes('each worker to have ended twice', async () => {
    const { text } = await ask(url, '/readyz');
    return (text.match(/ended [2-9] times in a row/g) ?? []).length === names.length;
  });
  const { text } = await ask(url, '/readyz');
  const { reasons } = JSON.parse(text) as { reasons: readonly Record<string, string>[] };
  expect(reasons.map(({ part, reason }) => [part, reason])).toEqual(
    names.map(() => ['shard', 'not_running']),
  );
  // What the worker has said of its end.
  expect(reasons[0]?.message).toContain(`shard-`);
  const facts = async () => [
    await metricOf(url, 'sluice_ready'),
    await metricOf(url, 'sluice_standing_by'),
    await metricOf(url, 'sluice_shards_owned'),
    await metricOf(url, 'sluice_shards_running'),
  ];
  expect(await facts()).toEqual([0, 0, names.length, 0]);
  const status = await runHere(['status', '-c', config('one', shards)], env);
  expect(status.stdout).toContain('2 shards do not run');
  const reported = JSON.parse(
    (await runHere(['cluster', '--json', '-c', config('any', shards)], env)).stdout,
  );
  expect(reported.processes.map(({ state }: { state: string }) => state)).not.toContain('working');

  for (const path of blocked) rmSync(path);
  await becomes('it to be ready', async () => (await ask(url, '/readyz')).status === 200);
  expect(await facts()).toEqual([1, 0, names.length, names.length]);
  expect(await metricOf(url, 'sluice_takeovers_total')).toBe(0);
  await becomes('a commit', async () => ((await metricOf(url, 'sluice_commit_seconds')) ?? 0) > 0);
  const receivedAt = (await metricOf(url, 'sluice_heartbeat_timestamp_seconds')) ?? 0;
  expect(Date.now() / 1_000 - receivedAt).toBeLessThan(60);

  // Three processes for two shards: one has none, and is ready.
  const others = [start('two'), start('three')];
  const urls = await Promise.all(others.map(urlOf));
  await becomes('one of three to have no shard', async () => {
    const all = await Promise.all(
      [url, ...urls].map((one) => metricOf(one, 'sluice_shards_running')),
    );
    return all.toSorted().join() === '0,1,1';
  });
  for (const one of [url, ...urls]) expect((await ask(one, '/readyz')).status).toBe(200);
  expect(await metricOf(url, 'sluice_takeovers_total')).toBe(0);
  const taken = await Promise.all(urls.map((one) => metricOf(one, 'sluice_takeovers_total')));
  expect(taken.toSorted()).toEqual([0, 1]);
  // The log of the process that gave a shard away does not call it drained.
  expect(first.stderr.join('\n')).toContain('the shard moves to a process that has fewer shards');
  expect(first.stderr.join('\n')).not.toContain('drained');
  for (const sluice of [...others, first]) {
    expect((await sluice.kill('SIGTERM')).exitCode).toBe(0);
  }
}, 400_000);

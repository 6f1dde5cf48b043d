// A shard whose sources leave the config and return while it still delivers, on a real Apache Kafka: the process runs it once at
// a time.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startSluice } from '../support/cli.ts';
import { someEdges } from '../support/edges.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const events = 20;

test('a shard that returns to the config starts after its last turn has stopped', async () => {
  const brokers = JSON.stringify(await kafkaBrokers());
  const prefix = `p-${crypto.randomUUID()}`;
  const { upstreams, env, apart, grow } = await someEdges(['east', 'west'], events);
  const receiver = await startHttpReceiver();
  const gate = Promise.withResolvers<void>();
  const dir = tempDir();
  const file = join(dir, 'c.yaml');
  const write = (shards: number, sources = ['east', 'west']) => {
    const kafka = `brokers: ${brokers}, prefix: ${prefix}, shards: ${shards}, session_timeout: 6s`;
    writeFileSync(
      file,
      `state: { dir: ${dir}/state, kafka: { ${kafka} } }
${upstreams}
sources:
${sources.map((name) => `  ${name}: { type: audit_events, upstream: ${name}, every: 500ms }`).join('\n')}
sinks: { post: { type: http, url: "${receiver.url}", format: json } }
shutdown: { timeout: 5s }
`,
    );
    return file;
  };
  const shards = apart(write);
  const received = () => {
    const text = receiver.requests.map(({ body }) => body.toString()).join('\n');
    return new Set(text.match(/"uid":"[0-9a-f]{64}"/g)).size;
  };
  const all = (count: number) =>
    waitUntil(() => received() >= count, { what: () => `${count} events of ${received()}` });
  const sluice = startSluice(['run', '-c', file, '--allow-removal'], { env });
  const linesOf = (event: string) =>
    sluice.stderr
      .filter((line) => line.includes(`"event":"${event}"`))
      .map((line): { shard: number } => JSON.parse(line));
  const linesAre = (event: string, count: number) =>
    waitUntil(() => linesOf(event).length >= count, {
      what: () => `${count} lines of ${event}: ${sluice.stderr.slice(-9).join('\n')}`,
    });
  await all(2 * events);
  await linesAre('running', 2);

  receiver.answer(async () => {
    await gate.promise;
    return { answer: 'reply', status: 200 };
  });
  grow(events);
  await all(4 * events);
  write(shards, ['east']);
  await linesAre('stopping', 1);
  const reloads = linesOf('config_unchanged').length;
  write(shards);
  await linesAre('config_unchanged', reloads + 1);
  await linesAre('stopped', 1);
  gate.resolve();
  await linesAre('running', 3);
  grow(events);
  await all(6 * events);

  const [{ shard } = { shard: -1 }] = linesOf('stopped');
  const turns = sluice.stderr.flatMap(
    (line) =>
      /"event":"(running|stopped)"/.exec(line.includes(`"shard":${shard},`) ? line : '')?.[1] ?? [],
  );
  expect(turns).toEqual(['running', 'stopped', 'running']);
  expect(linesOf('shard_worker_ended')).toEqual([]);
  expect(linesOf('kafka_commit_failed')).toEqual([]);
  expect((await sluice.kill('SIGTERM')).exitCode).toBe(0);
  await receiver.close();
}, 300_000);

// The worker processes of one process of a state of several shards, on a real Apache Kafka: one that is killed takes only its
// own shards with it, and these run again.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startSluice } from '../support/cli.ts';
import { someEdges } from '../support/edges.ts';
import { consumeAll, kafkaBrokers, newTopic } from '../support/kafka.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const names = ['east', 'south', 'west'];
const events = 20;

interface Line {
  readonly event: string;
  readonly shard: number;
  readonly pid: number;
}

test('a worker that is killed takes only its own shards with it, and every event is there once', async () => {
  const brokers = JSON.stringify(await kafkaBrokers());
  const topic = await newTopic('workers');
  const dir = tempDir();
  const { upstreams, env, apart, grow } = await someEdges(names, events);
  const file = join(dir, 'c.yaml');
  const prefix = `p-${crypto.randomUUID()}`;
  const write = (shards: number) => {
    writeFileSync(
      file,
      `state: { dir: ${dir}/state, kafka: { brokers: ${brokers}, prefix: ${prefix}, shards: ${shards}, session_timeout: 6s } }
${upstreams}
sources:
${names.map((name) => `  ${name}: { type: audit_events, upstream: ${name}, every: 500ms }`).join('\n')}
sinks: { lake: { type: kafka, brokers: ${brokers}, topic: ${topic}, format: json, exactly_once: true } }
`,
    );
    return file;
  };
  apart(write);
  const sluice = startSluice(['run', '-c', file], { env });
  const linesOf = (event: string) =>
    sluice.stderr
      .filter((line) => line.includes(`"event":"${event}"`))
      .map((line) => JSON.parse(line) as Line);
  const runs = (count: number) =>
    waitUntil(() => linesOf('running').length >= count, {
      what: () => `${count} shards to run:\n${sluice.stderr.join('\n')}`,
      timeoutMs: 120_000,
    });
  await runs(names.length);
  const pids = new Map(linesOf('shard_worker_started').map(({ shard, pid }) => [shard, pid]));
  const [killed = 0] = pids.values();
  const taken = [...pids].flatMap(([shard, pid]) => (pid === killed ? [shard] : []));

  process.kill(killed, 'SIGKILL');
  await runs(names.length + taken.length);

  const again = linesOf('shard_worker_started').slice(names.length);
  expect(again.map(({ shard }) => shard).sort()).toEqual(taken.sort());
  expect(again.map(({ pid }) => pid)).not.toContain(killed);
  grow(events);
  const read = await consumeAll(topic, {
    until: (records) => records.length >= 2 * events * names.length,
    timeoutMs: 60_000,
  });
  const uids = read.map(({ headers }) => headers.uid);
  expect(new Set(uids).size).toBe(uids.length);
  expect((await sluice.kill('SIGTERM')).exitCode, sluice.stderr.join('\n')).toBe(0);
}, 300_000);

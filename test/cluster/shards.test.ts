// Several shards on a real Apache Kafka: processes that share the work, each upstream with one of them.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { shardsOf } from '../../src/config/shards.ts';
import { runHere, runSluice, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { consumeAll, kafkaBrokers, newTopic } from '../support/kafka.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const audit = '/v1/audit/events';
const events = 30;

/** Three upstreams, of three shards, and configs of processes that read them into one topic. */
async function aCluster() {
  const brokers = JSON.stringify(await kafkaBrokers());
  const topic = await newTopic('shards');
  const prefix = `p-${crypto.randomUUID()}`;
  const dir = tempDir();
  const edges = await Promise.all(
    ['east', 'south', 'west'].map(async (name) => ({ name, ...(await anEdge(events)) })),
  );
  const env = Object.fromEntries(
    edges.map((edge) => [`${edge.name}_SECRET`, edge.env.EDGE_SECRET]),
  );
  const blocks = edges.map(({ name, upstreams }) =>
    upstreams
      .replace('upstreams:\n', '')
      .replace('edge:', `${name}:`)
      .replace('EDGE_SECRET', `${name}_SECRET`),
  );
  const config = (instance: string, shards: number) => {
    const file = join(dir, `${instance}.yaml`);
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${instance}
  kafka: { brokers: ${brokers}, prefix: ${prefix}, shards: ${shards}, session_timeout: 6s, instance: ${instance} }
upstreams:
${blocks.join('\n')}
sources:
${edges.map(({ name }) => `  ${name}: { type: audit_events, upstream: ${name}, every: 500ms, page_limit: 10 }`).join('\n')}
sinks:
  lake: { type: kafka, brokers: ${brokers}, topic: ${topic}, format: json, exactly_once: true }
status: { listen: "127.0.0.1:0" }
`,
    );
    return file;
  };
  // Where the shards of upstreams are follows from their ports.
  const apart = (shards: number): number =>
    shardsOf(readConfig(config('any', shards), { env })).length === edges.length
      ? shards
      : apart(shards + 1);
  const shards = apart(3);
  const start = (instance: string) => startSluice(['run', '-c', config(instance, shards)], { env });
  return { start, config, shards, edges, topic, env, prefix };
}

interface Told {
  readonly processes: readonly {
    readonly instance: string;
    readonly state: string;
    readonly shards: readonly number[];
  }[];
  readonly streams: readonly { readonly name: string; readonly caught_up_at: string | null }[];
  readonly sinks: readonly { readonly name: string; readonly position: number }[];
}

test('three processes share three upstreams: what one leaves others go on with, and every event is there once', async () => {
  const { start, edges, topic, config, shards, env } = await aCluster();
  const here = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await runHere(args, env);
    return { exitCode, all: stdout + stderr };
  };
  const elsewhere = config('elsewhere', shards);
  const look = async () => {
    const { stdout } = await runHere(['cluster', '-c', elsewhere, '--json'], env);
    return JSON.parse(stdout) as Told;
  };
  const shared = async (want: Readonly<Record<string, number>>) => {
    let told: Told | null = null;
    await waitUntil(
      async () => {
        told = await look();
        const owned = told.processes.map(({ instance, shards: of }) => [instance, of.length]);
        return JSON.stringify(Object.fromEntries(owned.sort())) === JSON.stringify(want) && told;
      },
      {
        what: () => `shards as ${JSON.stringify(want)}: ${JSON.stringify(told?.processes)}`,
        everyMs: 500,
        timeoutMs: 90_000,
      },
    );
  };
  const total = edges.length * events;
  const first = start('one');
  await shared({ one: 3 });
  // Whoever comes gets what the others have more of.
  const [second, third] = [start('two'), start('three')];
  await shared({ one: 1, three: 1, two: 1 });
  await consumeAll(topic, { until: total, timeoutMs: 60_000 });

  await first.kill('SIGKILL');
  for (const { sandbox } of edges) sandbox.control.grow(audit, events);
  await consumeAll(topic, { until: 2 * total, timeoutMs: 60_000 });
  const drained = await here('cluster', 'drain', 'two', '-c', elsewhere);
  expect([drained.exitCode, drained.all]).toEqual([0, expect.stringContaining('two stands by')]);
  await shared({ three: 3, two: 0 });
  const { streams, sinks } = await look();
  expect(streams.map(({ name }) => name.split('/')[0]).sort()).toEqual(['east', 'south', 'west']);
  expect(sinks).toMatchObject([{ name: 'lake', position: 2 * total }]);

  const [stream = ''] = streams.map(({ name }) => name).filter((name) => name.startsWith('south'));
  expect(
    await here('checkpoint', 'show', '--stream', stream, '-c', config('three', shards)),
  ).toMatchObject({
    exitCode: 0,
    all: expect.stringContaining('read whole once'),
  });
  expect(await here('retry', stream, '-c', elsewhere)).toMatchObject({
    exitCode: 0,
    all: expect.stringContaining(`${stream}: asked now`),
  });
  const rewind = ['checkpoint', 'rewind', '--stream', stream, '--to', '2020-01-01T00:00:00Z'];
  expect((await here(...rewind, '-c', elsewhere)).exitCode).toBe(0);
  expect((await here('check', '--connect', '-c', elsewhere)).all).toContain(`${shards} partitions`);
  const fewer = await runSluice(['run', '--once', '-c', config('fewer', 1)], { env });
  expect([fewer.exitCode, fewer.stderr]).toEqual([1, expect.stringContaining(`has ${shards}`)]);
  const status = await here('status', '--json', '-c', config('three', shards));
  expect(JSON.parse(status.all).streams).toHaveLength(edges.length);

  // Under one name only one can be told from the other: whoever had it ends, and does not come back to take it.
  const namesake = start('three');
  await waitUntil(() => !third.running, { what: 'the first of a name to end', timeoutMs: 60_000 });
  expect((await third.exited).stderr).toContain('another process has the instance name three');
  await shared({ three: 3, two: 0 });

  for (const sluice of [second, namesake]) {
    const ended = await sluice.kill('SIGTERM');
    expect(ended.exitCode, ended.stderr).toBe(0);
  }
  const uids = (await consumeAll(topic)).map(({ headers }) => headers.uid);
  expect([new Set(uids).size, uids.length]).toEqual([2 * total, 2 * total]);
}, 600_000);

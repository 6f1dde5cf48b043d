// Several shards on a real Apache Kafka: processes that share the work, each upstream with one of them.

import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseSigningKey, signingKeyText } from '../../src/archive/note.ts';
import { readConfig } from '../../src/config/config.ts';
import { shardsOf } from '../../src/config/shards.ts';
import { runHere, runSluice, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { someEdges } from '../support/edges.ts';
import { consumeAll, kafkaBrokers, newTopic } from '../support/kafka.ts';
import { freePorts, tempDir, waitUntil } from '../support/temp.ts';

const keyText = signingKeyText('shards', Buffer.alloc(32, 1));
const names = ['east', 'south', 'west'];
const events = 30;

/** So many records of upstream, without sluice's own events. */
const held = (count: number) => (records: readonly { readonly value: string }[]) =>
  records.filter(({ value }) => !value.includes('"log_name":"sluice"')).length >= count;

/** Three upstreams, of three shards, and configs of processes that read them into one topic. */
async function aCluster() {
  const brokers = JSON.stringify(await kafkaBrokers());
  const topic = await newTopic('shards');
  const prefix = `p-${crypto.randomUUID()}`;
  const dir = tempDir();
  const { upstreams, env, apart, grow } = await someEdges(names, events, { KEY: keyText });
  const config = (instance: string, shards: number) => {
    const file = join(dir, `${instance}.yaml`);
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${instance}
  kafka: { brokers: ${brokers}, prefix: ${prefix}, shards: ${shards}, session_timeout: 6s, instance: ${instance} }
${upstreams}
sources:
${names.map((name) => `  ${name}: { type: audit_events, upstream: ${name}, every: 500ms, page_limit: 10 }`).join('\n')}
sinks:
  lake: { type: kafka, brokers: ${brokers}, topic: ${topic}, format: json, exactly_once: true }
  proof: { type: archive, shared: true, location: ${dir}/archive, signing_key: "\${env:KEY}", checkpoint_every: 1s, retry: { max: 2s } }
status: { listen: "127.0.0.1:0" }
`,
    );
    return file;
  };
  const shards = apart((count) => config('any', count));
  const start = (instance: string) => startSluice(['run', '-c', config(instance, shards)], { env });
  return { start, config, shards, topic, env, grow, archive: join(dir, 'archive') };
}

interface ClusterReport {
  readonly processes: readonly {
    readonly instance: string;
    readonly state: string;
    readonly shards: readonly number[];
  }[];
  readonly streams: readonly { readonly name: string; readonly caught_up_at: string | null }[];
  readonly sinks: readonly { readonly name: string; readonly position: number }[];
}

test('three processes share three upstreams: others continue the work of a stopped one, and every event is there once', async () => {
  const { start, grow, topic, config, shards, env, archive } = await aCluster();
  const here = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await runHere(args, env);
    return { exitCode, all: stdout + stderr };
  };
  const elsewhere = config('elsewhere', shards);
  const look = async () => {
    const { stdout } = await runHere(['cluster', '-c', elsewhere, '--json'], env);
    return JSON.parse(stdout) as ClusterReport;
  };
  const shared = async (want: Readonly<Record<string, number>>) => {
    let reported: ClusterReport | null = null;
    await waitUntil(
      async () => {
        reported = await look();
        const owned = reported.processes.map(({ instance, shards: of }) => [instance, of.length]);
        return (
          JSON.stringify(Object.fromEntries(owned.sort())) === JSON.stringify(want) && reported
        );
      },
      {
        what: () => `shards as ${JSON.stringify(want)}: ${JSON.stringify(reported?.processes)}`,
        everyMs: 500,
        timeoutMs: 90_000,
      },
    );
  };
  const total = names.length * events;
  const first = start('one');
  await shared({ one: 3 });
  // A new process gets shards of those with more.
  const [second, third] = [start('two'), start('three')];
  await shared({ one: 1, three: 1, two: 1 });
  await consumeAll(topic, { until: held(total), timeoutMs: 60_000 });

  await first.kill('SIGKILL');
  grow(events);
  await consumeAll(topic, { until: held(2 * total), timeoutMs: 60_000 });
  const drained = await here('cluster', 'drain', 'two', '-c', elsewhere);
  expect([drained.exitCode, drained.all]).toEqual([0, expect.stringContaining('two stands by')]);
  await shared({ three: 3, two: 0 });
  const { streams, sinks } = await look();
  expect(streams.map(({ name }) => name.split('/')[0]).sort()).toEqual(names);
  expect(sinks[0]).toMatchObject({ name: 'lake', position: expect.any(Number) });

  const [stream = ''] = streams.map(({ name }) => name).filter((name) => name.startsWith('south'));
  expect(
    await here('checkpoint', 'show', '--stream', stream, '-c', config('three', shards)),
  ).toMatchObject({
    exitCode: 0,
    all: expect.stringContaining('read whole once'),
  });
  expect(await here('retry', stream, '-c', elsewhere)).toMatchObject({
    exitCode: 0,
    all: expect.stringContaining(`${stream}: retrying now`),
  });
  // A worker process may freeze while its supervisor continues: the supervisor kills it, and starts its shards again.
  const pidOf = (line: string) => (JSON.parse(line) as { readonly pid?: number }).pid ?? 0;
  const begun = () => third.stderr.filter((line) => line.includes('shard_worker_started'));
  const before = begun();
  process.kill(pidOf(before.at(-1) ?? ''), 'SIGSTOP');
  await waitUntil(() => begun().length > before.length, {
    what: 'another process for the shard',
    timeoutMs: 60_000,
  });
  await shared({ three: 3, two: 0 });

  const rewind = ['checkpoint', 'rewind', '--stream', stream, '--to', '2020-01-01T00:00:00Z'];
  expect((await here(...rewind, '-c', elsewhere)).exitCode).toBe(0);
  expect((await here('check', '--connect', '-c', elsewhere)).all).toContain(`${shards} partitions`);
  const fewer = await runSluice(['run', '--once', '-c', config('fewer', 1)], { env });
  expect([fewer.exitCode, fewer.stderr]).toEqual([1, expect.stringContaining(`has ${shards}`)]);
  const status = await here('status', '--json', '-c', config('three', shards));
  expect(JSON.parse(status.all).streams).toHaveLength(names.length);

  // Two processes with one instance name: the earlier one ends, and does not take the name back.
  const namesake = start('three');
  await waitUntil(() => !third.running, { what: 'the first of a name to end', timeoutMs: 60_000 });
  expect((await third.exited).stderr).toContain('another process has the instance name three');
  await shared({ three: 3, two: 0 });

  for (const sluice of [second, namesake]) {
    const ended = await sluice.kill('SIGTERM');
    expect(ended.exitCode, ended.stderr).toBe(0);
  }
  const read = await consumeAll(topic);
  // Sluice's own events about the archives.
  const ofUpstream = read.filter(({ value }) => JSON.parse(value).metadata.log_name !== 'sluice');
  const uids = ofUpstream.map(({ headers }) => headers.uid);
  expect([new Set(uids).size, uids.length]).toEqual([2 * total, 2 * total]);

  // One log a shard, under the eyes of one command.
  const { vkey } = parseSigningKey(keyText).verifier;
  const verify = ['archive', 'verify', archive, '--key', vkey];
  const whole = await runHere([...verify, '--json'], env);
  expect(whole.exitCode, whole.stdout + whole.stderr).toBe(0);
  const reports = JSON.parse(whole.stdout) as readonly { readonly records: number }[];
  expect(reports.map(({ records }) => records)).toEqual(names.map(() => 2 * events));
  expect(await here(...verify, '--since', join(archive, 'checkpoint'))).toMatchObject({
    exitCode: 64,
  });
  const [one = ''] = readdirSync(archive);
  rmSync(join(archive, one, 'checkpoint'));
  expect((await here(...verify)).exitCode).not.toBe(0);
}, 600_000);

test('held events of a shard without sources are delivered', { tags: ['long'] }, async () => {
  const brokers = await kafkaBrokers();
  const [nobody] = await freePorts(1);
  const topic = await newTopic('left');
  const { upstreams, env } = await anEdge(events);
  const dir = tempDir();
  const state = `state: { dir: ${dir}/state, kafka: { brokers: ${JSON.stringify(brokers)}, prefix: p-${crypto.randomUUID()}, shards: 50, session_timeout: 6s } }`;
  const config = (upstream: string, source: string, sink: readonly string[], pin = '') => {
    const file = join(dir, `${upstream}-${source}.yaml`);
    writeFileSync(
      file,
      `${state}
${upstreams.replace('edge:', `${upstream}:${pin}`)}
sources: { ${source}: { type: audit_events, upstream: ${upstream}, every: 500ms } }
sinks: { lake: { type: kafka, brokers: ${JSON.stringify(sink)}, topic: ${topic}, format: json, timeout: 1s } }
`,
    );
    return file;
  };
  const once = ['run', '--once', '--timeout', '8s', '-c'];
  const east = config('east', 'audit', [`127.0.0.1:${nobody}`]);
  const before = await runSluice([...once, east], { env });
  const [home = -1] = shardsOf(readConfig(east, { env }));
  // An upstream with another name is in another shard, where the source would be read again.
  const renamed = await runSluice([...once, config('west', 'audit', brokers)], { env });
  const next = `Set upstreams.west.shard to ${home}.`;
  expect([before.exitCode, renamed.exitCode, renamed.stderr]).toEqual([
    ...[1, 1, expect.stringContaining(next)],
  ]);

  const other = config('west', 'trail', brokers);
  expect(shardsOf(readConfig(other, { env }))).not.toEqual([home]);
  const after = await runSluice(['run', '--once', '-c', other], { env });
  const pinned = config('west', 'audit', brokers, `\n    shard: ${home}`);
  const again = await runSluice(['run', '--once', '-c', pinned], { env });

  expect([after.exitCode, again.exitCode], after.stderr + again.stderr).toEqual([0, 0]);
  // What the first shard had read, and the same of a source with another name, which is read from its start.
  const records = await consumeAll(topic);
  const ofUpstream = records.filter(({ value }) => !value.includes('"log_name":"sluice"'));
  const uids = new Set(ofUpstream.map(({ headers }) => headers.uid));
  expect([uids.size, ofUpstream.length]).toEqual([2 * events, 2 * events]);
});

test('a shard that a changed config brings is served, and what only starters set is refused', {
  tags: ['long'],
}, async () => {
  const brokers = JSON.stringify(await kafkaBrokers());
  const topic = await newTopic('reload');
  const [east, west] = await Promise.all([anEdge(events, 'east'), anEdge(events, 'west')]);
  const env = { ...east.env, ...west.env };
  const dir = tempDir();
  const file = join(dir, 'c.yaml');
  const prefix = `p-${crypto.randomUUID()}`;
  const write = (of: readonly string[]) =>
    writeFileSync(
      file,
      `state: { dir: ${dir}/state, kafka: { brokers: ${brokers}, prefix: ${prefix}, shards: 50, session_timeout: 6s } }
${east.upstreams}
${of.includes('west') ? west.entry : ''}
sources:
${of.map((name) => `  of-${name}: { type: audit_events, upstream: ${name}, every: 500ms }`).join('\n')}
sinks: { lake: { type: kafka, brokers: ${brokers}, topic: ${topic}, format: json, exactly_once: true } }
`,
    );
  write(['east']);
  const sluice = startSluice(['run', '-c', file], { env });
  await consumeAll(topic, { until: held(events), timeoutMs: 60_000 });

  write(['east', 'west']);

  await consumeAll(topic, { until: held(2 * events), timeoutMs: 60_000 });
  expect(shardsOf(readConfig(file, { env }))).toHaveLength(2);
  const byHand = await runSluice(['run', '--once', '-c', file], {
    env: { ...env, SLUICE_WORKER: '1' },
  });
  expect([byHand.exitCode, byHand.stderr]).toEqual([64, expect.stringContaining('SLUICE_WORKER')]);
  expect((await sluice.kill('SIGTERM')).exitCode).toBe(0);
  expect(await consumeAll(topic)).toHaveLength(2 * events);

  // Its workers are stopped before they listen.
  const again = startSluice(['run', '-c', file], { env });
  await again.waitForLine('shard started in a worker process');
  expect((await again.kill('SIGTERM')).exitCode, again.stderr.join('\n')).toBe(0);
});

// Commands that change an archive's state or read it back, where that state is in Kafka: `archive replay` and
// `archive keys rotate`, and `check --connect` beside them, on a real Apache Kafka.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { signingKeyText } from '../../src/archive/note.ts';
import { runHere, runSluice, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const events = 40;

/** A state of two shards, each with one upstream, and machines that share it. */
async function aState() {
  const brokers = JSON.stringify(await kafkaBrokers());
  const prefix = `p-${crypto.randomUUID()}`;
  const dir = tempDir();
  const edges = [await anEdge(events, 'north'), await anEdge(events, 'south')];
  const upstreams = edges.map(({ entry }, shard) => `${entry}\n    shard: ${shard}`).join('\n');
  const keys = [1, 2, 3].map((seed) => {
    const file = join(dir, `${seed}.key`);
    writeFileSync(file, signingKeyText('archive.test', Buffer.alloc(32, seed)));
    return file;
  });
  const archive = join(dir, 'archive');
  const configure = (machine: string, key = keys[0], { hasNorth = true } = {}) => {
    const file = join(dir, `${machine}.yaml`);
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${machine}
  kafka: { brokers: ${brokers}, prefix: ${prefix}, shards: 2, session_timeout: 6s, instance: ${machine} }
upstreams:
${upstreams}
sources:
${hasNorth ? '  north_audit: { type: audit_events, upstream: north, every: 200ms, page_limit: 20 }' : ''}
  south_audit: { type: audit_events, upstream: south, every: 200ms, page_limit: 20 }
sinks:
  disk: { type: file, path: "${dir}/out-{partition}.ndjson", format: json }
  proof: { type: archive, shared: true, location: ${archive}, signing_key: "\${file:${key}}", checkpoint_every: 200ms }
`,
    );
    return file;
  };
  const env = { ...edges[0]?.env, ...edges[1]?.env };
  /** How often each line was delivered. */
  const counts = () => {
    const files = readdirSync(dir).filter((name) => name.startsWith('out-'));
    const lines = files.flatMap((name) => readFileSync(join(dir, name), 'utf8').split('\n'));
    const times = new Map<string, number>();
    for (const line of lines.filter((one) => one.includes('_audit')))
      times.set(line, (times.get(line) ?? 0) + 1);
    return [...times.values()];
  };
  const once = (file: string) => runSluice(['run', '-c', file, '--once'], { env });
  const grow = () => {
    for (const { sandbox } of edges) sandbox.control.grow('/v1/audit/events', events);
  };
  return { archive, configure, counts, env, grow, keys, once };
}

test('archive replay sends the events of each shard as before, and all of them again the next time', async () => {
  const { archive, configure, counts, env, once } = await aState();
  const file = configure('one');
  expect(await once(file)).toMatchObject({ exitCode: 0 });
  expect(counts()).toEqual(Array(2 * events).fill(1));

  for (const times of [2, 3]) {
    for (const shard of [0, 1]) {
      const from = join(archive, String(shard));
      const words = ['archive', 'replay', from, '-c', file, '--sink', 'disk'];
      const replayed = await runHere(words, env);
      expect(replayed, replayed.stderr).toMatchObject({ exitCode: 0 });
    }
    // Another line of the same event would be counted by itself.
    expect(counts()).toEqual(Array(2 * events).fill(times));
  }
  const next = await once(file);
  expect(next).toMatchObject({ exitCode: 0 });
}, 600_000);

test('beside a process of another machine archive keys rotate is refused and check passes; later any machine rotates', async () => {
  const { archive, configure, counts, env, grow, keys, once } = await aState();
  const rotate = (config: string, key = keys[2]) =>
    runHere(['archive', 'keys', 'rotate', '-c', config, '--to', key ?? ''], env);
  expect(await once(configure('one', keys[0], { hasNorth: false }))).toMatchObject({ exitCode: 0 });
  // Nothing of the first shard is signed yet, and the second one must not wait for it.
  const early = await rotate(configure('one'), keys[1]);
  expect(early, early.stderr).toMatchObject({ exitCode: 0 });
  expect(early.stderr).toContain(`nothing in ${join(archive, '0')} is signed yet`);
  const file = configure('one', keys[1]);
  const other = startSluice(['run', '-c', configure('two', keys[1])], { env });
  await other.waitForLine('shard_worker_started');

  const refused = await rotate(file);
  expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining('has the state')]);
  grow();
  await waitUntil(() => counts().length === 4 * events, { what: 'the other process to continue' });
  // The machine with an old copy of the state, and one that never had any.
  for (const config of [file, configure('three', keys[1])]) {
    const checked = await runHere(['check', '-c', config, '--connect'], env);
    expect(checked.stdout, checked.stderr).toContain('ok    sink proof: connection');
  }
  const ended = await other.kill('SIGTERM');
  expect(ended.exitCode).toBe(0);
  expect(ended.stderr).not.toContain('sink_refused');

  const rotated = await rotate(configure('three', keys[1]));
  expect(rotated, rotated.stderr).toMatchObject({ exitCode: 0 });
  grow();
  const next = await once(configure('one', keys[2]));
  expect(next, next.stderr).toMatchObject({ exitCode: 0 });
  const vkey = rotated.stdout.split('\n')[0] ?? '';
  const verified = await runHere(['archive', 'verify', archive, '--key', vkey]);
  expect(verified, verified.stderr).toMatchObject({ exitCode: 0 });
}, 600_000);

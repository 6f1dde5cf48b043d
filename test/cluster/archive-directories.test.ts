// Two processes of one state in Kafka whose archive is a directory that each has for itself, though its config says that
// it is shared: the one that starts second does not see what the first has written, writes nothing and reports it.

import { existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { signingKeyText } from '../../src/archive/note.ts';
import { aSigner, readArchive } from '../archive/a-writer.ts';
import { runHere, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const events = 60;

/** Processes of one state, each run in a directory of its own. */
async function aCluster() {
  const brokers = JSON.stringify(await kafkaBrokers());
  const prefix = `p-${crypto.randomUUID()}`;
  const dir = tempDir();
  const { sandbox, upstreams, env } = await anEdge(events);
  const key = { KEY: signingKeyText('archive.test', Buffer.alloc(32, 1)) };
  const start = (instance: string, location: string) => {
    const cwd = join(dir, instance);
    mkdirSync(cwd, { recursive: true });
    writeFileSync(
      join(cwd, 'sluice.yaml'),
      `state:
  dir: ${cwd}/state
  kafka: { brokers: ${brokers}, prefix: ${prefix}, session_timeout: 6s, instance: ${instance} }
${upstreams}
sources: { audit: { type: audit_events, upstream: edge, every: 500ms, page_limit: 20 } }
sinks:
  proof: { type: archive, shared: true, location: ${location}, signing_key: "\${env:KEY}", checkpoint_every: 200ms, retry: { min: 100ms, max: 1s } }
status: { listen: "127.0.0.1:0" }
`,
    );
    return startSluice(['run', '-c', 'sluice.yaml'], { cwd, env: { ...env, ...key } });
  };
  const archived = async (path: string, count: number) => {
    const has = async () =>
      (await readArchive(path).catch(() => ({ uids: [] }))).uids.length >= count;
    await waitUntil(has, { what: () => `${count} events in ${path}` });
  };
  return { dir, start, archived, grow: () => sandbox.control.grow('/v1/audit/events', events) };
}

test('one path that leads two processes to two directories: the second one writes nothing', async () => {
  const { dir, start, archived, grow } = await aCluster();
  const one = start('one', './archive');
  await archived(join(dir, 'one/archive'), events);
  await one.kill('SIGKILL');
  grow();

  const two = start('two', './archive');
  await two.waitForLine('this state has written it in');
  await two.kill('SIGTERM');

  expect(existsSync(join(dir, 'two/archive/checkpoint'))).toBe(false);
  const back = start('one', './archive');
  await archived(join(dir, 'one/archive'), 2 * events);
  await back.kill('SIGTERM');
  const verify = ['archive', 'verify', join(dir, 'one/archive'), '--key', aSigner().verifier.vkey];
  expect(await runHere(verify)).toMatchObject({ exitCode: 0 });
});

test('one path whose directory is another on each machine: the second one writes nothing', {
  tags: ['long'],
}, async () => {
  const { dir, start, archived, grow } = await aCluster();
  const path = join(dir, 'mounted');
  const one = start('one', path);
  await archived(path, events);
  await one.kill('SIGKILL');
  grow();
  // What the second machine has at that path.
  renameSync(path, join(dir, 'of-one'));
  mkdirSync(path);

  const two = start('two', path);
  await two.waitForLine('it is gone: archive.json is not where it was');
  await two.kill('SIGTERM');

  expect(readdirSync(path)).not.toContain('checkpoint');
  expect((await readArchive(join(dir, 'of-one'))).uids.length).toBeGreaterThanOrEqual(events);
});

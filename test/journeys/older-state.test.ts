// The state directory restored from a copy, cut, and lost, beside a file that has more: nothing that was written is
// cut, each event is there once, and the loss is reported.

import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runSluice, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const events = 600;

async function aJourney() {
  const dir = tempDir();
  const { sandbox, upstreams, env } = await anEdge(events / 2);
  const config = join(dir, 'sluice.yaml');
  writeFileSync(
    config,
    `state: { dir: ${dir}/state }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 1s }
sinks:
  disk: { type: file, path: ${dir}/out/events.ndjson, rotate: { bytes: 200KiB } }
`,
  );
  const state = join(dir, 'state');
  const lines = () =>
    readdirSync(join(dir, 'out'))
      .filter((name) => !name.startsWith('.'))
      .flatMap((name) =>
        readFileSync(join(dir, 'out', name), 'utf8')
          .split('\n')
          .slice(0, -1),
      );
  const uidsOfRecords = () =>
    lines()
      .map((line) => JSON.parse(line).metadata)
      .filter(({ log_name: log }) => log !== 'sluice')
      .map(({ uid }) => uid as string);
  const once = () => runSluice(['run', '-c', config, '--once'], { env });
  return { state, config, env, once, sandbox, lines, uidsOfRecords, copy: join(dir, 'copy') };
}

test('a state that is put back, or lost, neither cuts the file nor repeats in it, and is reported', async () => {
  const { state, copy, once, sandbox, lines, uidsOfRecords } = await aJourney();
  await once();
  cpSync(state, copy, { recursive: true });
  sandbox.control.grow('/v1/audit/events', events / 2);
  await once();
  const before = new Set(lines());

  rmSync(state, { recursive: true });
  cpSync(copy, state, { recursive: true });
  const restored = await once();
  const afterRestore = uidsOfRecords();
  rmSync(state, { recursive: true });
  const lost = await once();
  const afterLoss = uidsOfRecords();

  expect(before.size).toBe(events);
  expect([...before].filter((line) => !lines().includes(line))).toEqual([]);
  for (const uids of [afterRestore, afterLoss]) {
    expect([uids.length, new Set(uids).size]).toEqual([events, events]);
  }
  for (const run of [restored, lost]) {
    expect([run.exitCode, run.stderr.includes('state_older')]).toEqual([0, true]);
  }
});

test('a log of the database that is removed after a kill is reported, and repeats nothing in the file', async () => {
  const { state, config, env, once, sandbox, uidsOfRecords } = await aJourney();
  await once();
  sandbox.control.grow('/v1/audit/events', events / 2);
  const running = startSluice(['run', '-c', config], { env });
  await waitUntil(() => uidsOfRecords().length === events, { what: 'all events in the file' });
  await running.kill('SIGKILL');

  rmSync(join(state, 'sluice.db-wal'));
  const after = await once();

  const uids = uidsOfRecords();
  expect([uids.length, new Set(uids).size]).toEqual([events, events]);
  expect([after.exitCode, after.stderr.includes('state_older')]).toEqual([0, true]);
});

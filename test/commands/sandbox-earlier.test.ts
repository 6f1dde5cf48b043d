// `sluice sandbox --earlier` and config/moving.yaml: the real program reads the earlier form of the ledger as it is configured,
// beside the form that succeeds it.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { runHere, runSluice, startSluice } from '../support/cli.ts';
import { freePort, tempDir } from '../support/temp.ts';

const repository = join(import.meta.dirname, '..', '..');

async function aSandbox(dir: string) {
  const sandbox = startSluice(['sandbox', '--earlier', '--events', '40', '--rate', '0/s'], {
    cwd: dir,
  });
  const listening = await sandbox.waitForLine('sandbox: listening on');
  expect(sandbox.stdout.at(-1)).toBe(listening);
  const urlOf = (name: string) => {
    const line = sandbox.stdout.find((one) => one.startsWith(`# ${name}`)) ?? '';
    return /http:\S+?(?=[;, ]|$)/.exec(line)?.[0] ?? '';
  };
  return { stdout: [...sandbox.stdout], urlOf };
}

function eventsIn(file: string) {
  return readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

test('config/moving.yaml: check accepts the responses, and each record of the earlier form is read once', async () => {
  const dir = tempDir();
  const { urlOf } = await aSandbox(dir);
  const env = { EARLIER_URL: urlOf('earlier API'), SERVICES_URL: urlOf('services API') };
  const config = join(dir, 'moving.yaml');
  const moving = readFileSync(join(repository, 'config', 'moving.yaml'), 'utf8');
  // Any free port: another program may have the usual one.
  writeFileSync(config, moving.replace('127.0.0.1:8686', '127.0.0.1:0'));

  const check = await runHere(['check', '--connect', '-c', config], env);
  const runs = [];
  for (let n = 0; n < 2; n += 1) {
    const { exitCode, stderr } = await runSluice(['run', '-c', config, '--once'], {
      cwd: dir,
      env,
    });
    runs.push([exitCode, stderr.includes('"level":"error"')]);
  }

  expect([check.exitCode, check.stdout]).toEqual([0, expect.not.stringContaining('FAIL')]);
  expect(runs).toEqual([
    [0, false],
    [0, false],
  ]);
  const events = eventsIn(join(dir, 'out', 'moving.ndjson'));
  const ids = events
    .filter(({ metadata }) => metadata.log_name === 'audit')
    .map(({ metadata }) => metadata.original_event_uid);
  expect(ids.toSorted()).toEqual(Array.from({ length: 40 }, (_, n) => `${10_000_000 + n}`));
  const baselines = events.filter(({ metadata }) => metadata.log_name === 'tickets');
  expect(JSON.stringify(baselines)).toMatch(/"count":60\b/);
});

test('the config that it prints reads every earlier list, and check accepts the output of plan', async () => {
  const dir = tempDir();
  const { stdout } = await aSandbox(dir);
  const config = join(dir, 'printed.yaml');
  writeFileSync(config, stdout.join('\n'));

  const check = await runHere(['check', '--connect', '-c', config]);
  const run = await runSluice(['run', '-c', config, '--once'], { cwd: dir });
  const plan = await runHere(['succession', 'plan', '-c', config]);
  const planned = join(dir, 'planned.yaml');
  writeFileSync(planned, plan.stdout.replace(/path: null.*/, 'path: /api/logs/v1/audit'));
  const checked = await runHere(['check', '-c', planned]);

  expect([check.exitCode, check.stdout]).toEqual([0, expect.not.stringContaining('FAIL')]);
  expect(run.exitCode).toBe(0);
  const names = Object.keys(parse(stdout.join('\n')).sources);
  const read = new Set(
    eventsIn(join(dir, 'out', 'events.ndjson')).map(({ metadata }) => metadata.log_name),
  );
  expect(names.filter((name) => !read.has(name))).toEqual([]);
  expect([plan.exitCode, checked.exitCode, checked.stderr]).toEqual([0, 0, '']);
});

test('the earlier API has the next port', async () => {
  const port = await freePort();
  const sandbox = startSluice(['sandbox', '--earlier', '--port', `${port}`], { cwd: tempDir() });
  const ended = sandbox.exited.then(({ stderr }) => stderr);
  const line = await Promise.race([sandbox.waitForLine('earlier API').catch(() => ended), ended]);

  // The next port may be somebody else's: then both are named.
  expect(line).toMatch(new RegExp(`127\\.0\\.0\\.1:${port + 1}/|port ${port} or ${port + 1} of`));
});

// `sluice sandbox` prints a config that reads from it: every type of source is in it, and the real program reads all of
// them once.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sources } from '../../connectors/sources/index.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

test('the config that sandbox prints has every type of source, and reads something by each', async () => {
  const dir = tempDir();
  const config = join(dir, 'sandbox.yaml');
  const sandbox = startSluice(['sandbox', '--events', '20', '--rate', '0/s'], { cwd: dir });
  await waitUntil(() => sandbox.stdout.some((line) => line.includes('type: file')), {
    what: 'the config to be printed',
  });
  const listening = await sandbox.waitForLine('sandbox: listening on');
  expect(sandbox.stdout.at(-1)).toBe(listening);
  const lines = sandbox.stdout.slice(sandbox.stdout.indexOf('state: { dir: ./state }'));
  writeFileSync(config, lines.join('\n'));

  const check = await runSluice(['check', '--connect', '-c', config], { cwd: dir });
  const run = await runSluice(['run', '-c', config, '--once', '--timeout', '60s'], {
    cwd: dir,
  });

  expect([check.exitCode, check.stdout]).toEqual([0, expect.not.stringContaining('FAIL')]);
  expect([run.exitCode, run.stderr]).toEqual([0, run.stderr]);
  const types = new Set(lines.flatMap((line) => /\btype: (\w+)/.exec(line)?.[1] ?? []));
  expect(sources.map(({ type }) => type).filter((type) => !types.has(type))).toEqual([]);
  // Nothing listens for webhooks while all is read once.
  const names = lines
    .slice(lines.indexOf('sources:') + 1, lines.indexOf('sinks:'))
    .flatMap((line) => (line.includes('webhooks') ? [] : (/^ {2}(\w+):/.exec(line)?.[1] ?? [])));
  const events = readFileSync(join(dir, 'out', 'events.ndjson'), 'utf8')
    .trimEnd()
    .split('\n');
  const reported = new Set(events.map((line) => JSON.parse(line).metadata.log_name));
  expect(names.filter((name) => !reported.has(name))).toEqual([]);
});

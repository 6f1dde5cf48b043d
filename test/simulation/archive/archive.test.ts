// Some hundred simulated attackers at each run of the tests, a thousand with SLUICE_TEST_LONG=1;
// `npm run simulate -- --of archive --seeds 100000` has more.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { runArchive } from './run.ts';

vi.mock('../../../src/parquet/read.ts', () => import('./tables.ts'));
vi.mock('../../../src/parquet/erase.ts', () => import('./tables.ts'));

const count = process.env.SLUICE_TEST_LONG === '1' ? 1_000 : 150;

test('whatever an attacker without a key changes, a whole archive has upstream’s original pages', async () => {
  const findings: string[] = [];
  for (let seed = 1; seed <= count; seed += 1) {
    const verdict = await runArchive(seed);
    findings.push(...verdict.findings.map((finding) => `seed ${seed}: ${finding}`));
  }

  expect(findings).toEqual([]);
});

test('a seed does the same again', async () => {
  const lines = async () => {
    const reported: string[] = [];
    await runArchive(7, (line) => reported.push(line));
    return reported;
  };

  expect(await lines()).toEqual(await lines());
});

test('the command of the long runs passes on the seeds of this test', () => {
  const main = join(import.meta.dirname, '..', 'main.ts');
  const args = [main, '--of', 'archive', '--from', '1', '--seeds', '40'];

  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });

  expect(stdout + stderr).toMatch(/^archive: 40 seeds in .*; 0 failed$/m);
  expect(status).toBe(0);
});

// A span of an archive as an auditor gets it: it proves by itself, and has no more bodies than it says.

import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { naiveArchive, writeNaive } from '../support/archive/naive-archive.ts';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';

const archive = naiveArchive(
  Array.from({ length: 8 }, (_, i) => ({
    pages: Array.from({ length: i === 3 ? 300 : 2 }, () => ({ stream: `logs/${i % 2}` })),
    rotates: i === 4,
  })),
);
const minute = (n: number) => `2026-01-31T08:0${n}:00Z`;
const span = (from: number, to: number) => ['--from', minute(from), '--to', minute(to)];
const key = ['--key', archive.vkeys[0] ?? ''];

/** The archive, and an export from it. */
async function exported(from: number, to: number) {
  const [dir, out] = [tempDir(), join(tempDir(), 'export')];
  writeNaive(archive, dir);
  const args = ['archive', 'export', dir, ...span(from, to), '--out', out];
  return { dir, out, ...(await runHere(args)) };
}

test.each([
  [2, 4],
  [3, 5],
  [4, 5],
  [5, 8],
])('minutes %i to %i prove by themselves, with the key before a rotation', async (from, to) => {
  const { dir, out, exitCode, stdout } = await exported(from, to);
  rmSync(dir, { recursive: true });

  const verified = await runHere(['archive', 'verify', out, ...key, ...span(from, to), '--json']);

  const segments = readdirSync(join(out, 'segments/2026/01/31'));
  expect({ exitCode, stdout }).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining(`npx sluice archive verify ${out} --key VKEY --from`),
  });
  expect(segments).toHaveLength(to - from);
  expect(verified.exitCode).toBe(0);
  expect(JSON.parse(verified.stdout)).toMatchObject({
    ...{ verdict: 'whole', size: archive.entries.length, breaks: [] },
    pages: (to - from) * 2 + (from <= 3 && to > 3 ? 298 : 0),
  });
});

test('bodies that are not in it are reported missing if they are requested', async () => {
  const { out } = await exported(2, 4);

  const { exitCode, stdout } = await runHere(['archive', 'verify', out, ...key]);

  expect(exitCode).toBe(1);
  expect(stdout).toContain('the segment is missing');
});

test('nothing is overwritten, and a damaged archive is reported', async () => {
  const { dir, out } = await exported(2, 4);
  const again = await runHere(['archive', 'export', dir, ...span(2, 4), '--out', out]);
  rmSync(join(dir, 'tile/0/000'));
  const other = join(tempDir(), 'other');
  const damaged = await runHere(['archive', 'export', dir, ...span(2, 4), '--out', other]);

  expect(again).toMatchObject({ exitCode: 64, stdout: '' });
  expect(again.stderr).toContain('is not empty; name a directory that does not exist yet');
  expect(damaged.stderr).toContain('tile/0/000 is missing');
  expect(existsSync(join(other, 'checkpoint'))).toBe(false);
});

test('an export that was killed is no archive, and the next one begins again', async () => {
  const { dir, out } = await exported(2, 4);
  const files = () => readdirSync(out, { recursive: true }).map(String).toSorted();
  const whole = files();
  // Killed before the checkpoint, with a part of an object.
  rmSync(join(out, 'checkpoint'));
  writeFileSync(join(out, 'unfinished-export'), '');
  writeFileSync(join(out, 'left'), 'x');

  const { exitCode } = await runHere(['archive', 'export', dir, ...span(2, 4), '--out', out]);

  expect(exitCode).toBe(0);
  expect(files()).toEqual(whole);
  expect(whole).not.toContain('unfinished-export');
});

test('a link named as the mark leads to no file elsewhere, and nothing is deleted', async () => {
  const { dir } = await exported(2, 4);
  const elsewhere = join(tempDir(), 'precious');
  writeFileSync(elsewhere, 'precious');
  const out = tempDir();
  symlinkSync(elsewhere, join(out, 'unfinished-export'));
  writeFileSync(join(out, 'own'), 'x');

  const { exitCode, stderr } = await runHere([
    ...['archive', 'export', dir, ...span(2, 4), '--out', out],
  ]);

  expect([exitCode, stderr]).toEqual([64, expect.stringContaining('is not empty')]);
  expect(readdirSync(out).toSorted()).toEqual(['own', 'unfinished-export']);
  expect(readFileSync(elsewhere, 'utf8')).toBe('precious');
});

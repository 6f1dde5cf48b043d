// The memory of `archive verify` where any file of an archive is 4 GiB of nothing: a process of its own is measured.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runProgram } from '../support/children.ts';
import { tempDir } from '../support/temp.ts';
import { aSigner } from './a-writer.ts';
import { writeEveryKind } from './every-kind.ts';

const mibMax = 200;
const script = join(import.meta.dirname, 'verify-rss-main.ts');

test('is at most 200 MiB, and each has its verdict', async () => {
  const location = join(tempDir(), 'archive');
  await writeEveryKind(location);
  const all = readdirSync(location, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile() && !one.parentPath.includes('/.'))
    .map((one) => join(one.parentPath, one.name).slice(location.length + 1))
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  // Of each kind the last one.
  const names = [
    ...new Map(all.map((name) => [name.replace(/[0-9a-f]*\d+/g, '#'), name])).values(),
  ];

  const args = ['--expose-gc', script, location, aSigner().verifier.vkey, ...names];
  const { output, errors, exitCode } = await runProgram(process.execPath, args);

  const reported = output
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { name: string; exitCode: number; mib: number });
  expect([exitCode, errors]).toEqual([0, '']);
  expect(reported.map(({ name }) => name)).toEqual(['', ...names]);
  expect(reported.filter(({ exitCode: code }) => code !== 0 && code !== 1)).toEqual([]);
  expect(reported.length).toBeGreaterThan(15);
  expect(reported.filter(({ mib }) => mib > mibMax).slice(0, 1)).toEqual([]);
});

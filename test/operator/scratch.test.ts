// Copies that killed commands leave among the temporary files: a later command deletes them, and nothing else.

import { spawnSync } from 'node:child_process';
import { lutimesSync, mkdirSync, readdirSync, symlinkSync, utimesSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { makeScratch } from '../../src/operator/scratch.ts';
import { tempDir } from '../support/temp.ts';

afterEach(() => vi.unstubAllEnvs());

test('the copy of a killed command is deleted after a day; nothing of a running one, of another kind, or behind a link is', () => {
  const [parent, elsewhere] = [tempDir(), tempDir()];
  vi.stubEnv('TMPDIR', parent);
  const { pid: gone } = spawnSync('true');
  const names = [
    `sluice-cluster-${gone}-left`,
    `sluice-tap-${gone}-left`,
    `sluice-cluster-${process.pid}-runs`,
    `sluice-cluster-torture-${gone}`,
    `other-cluster-${gone}-x`,
  ];
  for (const name of [...names, `sluice-cluster-${gone}-new`])
    mkdirSync(join(parent, name, 'in'), { recursive: true });
  for (const name of names) utimesSync(join(parent, name), 0, 0);
  const halfADayAgo = Date.now() / 1000 - 43_200;
  utimesSync(join(parent, `sluice-cluster-${gone}-new`), halfADayAgo, halfADayAgo);
  mkdirSync(join(elsewhere, 'kept'));
  const link = join(parent, `sluice-tap-${gone}-link`);
  symlinkSync(elsewhere, link);
  lutimesSync(link, 0, 0);

  const made = makeScratch('cluster');

  const kept = [...names.slice(2), `sluice-cluster-${gone}-new`, `sluice-tap-${gone}-link`];
  expect(readdirSync(parent).toSorted()).toEqual([...kept, basename(made)].toSorted());
  expect(readdirSync(elsewhere)).toEqual(['kept']);
});

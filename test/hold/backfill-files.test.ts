// Backfills that 0.1.0 has left in files are taken over as rows, once and as they were.

import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { importBackfillFiles } from '../../src/hold/backfill-files.ts';
import { backfillsIn } from '../../src/hold/backfills.ts';
import { tempDir } from '../support/temp.ts';

const asked = { version: 1, source: 'audit', from: 1_000, to: 9_000, isBounded: true };
const progress = {
  ...{ version: 1, at: 5_000, read: 9, held: 4, untimed: 0 },
  ...{ reachedAt: 3_000, share: 0.5, behind: 0, error: null },
};
const settings = (dir: string) => ({ dir, sync: 'normal', keepMs: 0 }) as const;

/** A state directory as 0.1.0 has left it. */
function left(files: Readonly<Record<string, unknown>>): string {
  const dir = tempDir();
  mkdirSync(join(dir, 'backfills'));
  for (const [name, value] of Object.entries(files)) {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    writeFileSync(join(dir, 'backfills', name), text);
  }
  return dir;
}

test('importBackfillFiles takes over each as it was, and its file is gone', () => {
  const dir = left({
    'a1.json': { ...asked, id: 'a1', askedAt: 4_000, wanted: true },
    'a1.progress.json': { ...progress, state: 'reading' },
    'a2.json': { ...asked, id: 'a2', askedAt: 4_100, wanted: false },
    'a2.progress.json': { ...progress, state: 'stopped' },
    'a3.json': { ...asked, id: 'a3', askedAt: 4_200, wanted: true },
    'a3.progress.json': { ...progress, state: 'failed', error: { message: 'm', next: 'n' } },
    'a4.done.json': { ...asked, id: 'a4', askedAt: 4_300, wanted: true },
    'a4.progress.json': { ...progress, state: 'done' },
    'a5.json': { ...asked, id: 'a5', askedAt: 4_400, wanted: true },
    'a6.json': '{"version":1,',
  });

  importBackfillFiles(settings(dir));

  const imported = backfillsIn(dir).map(({ id, askedAt, isRequested, progress: come }) => [
    ...[id, askedAt, isRequested, come?.state ?? null, come?.held ?? null],
  ]);
  expect(imported).toEqual([
    ['a1', 4_000, true, 'reading', 4],
    ['a2', 4_100, false, 'stopped', 4],
    ['a3', 4_200, false, 'failed', 4],
    ['a4', 4_300, false, 'done', 4],
    ['a5', 4_400, true, null, null],
  ]);
  expect(backfillsIn(dir)[0]).toMatchObject({ source: 'audit', from: 1_000, to: 9_000 });
  expect(existsSync(join(dir, 'backfills'))).toBe(false);
});

test('importBackfillFiles imports the files that an interrupted start has left, and nothing twice', () => {
  const files = {
    'b1.json': { ...asked, id: 'b1', askedAt: 4_000, wanted: true },
    'b2.json': { ...asked, id: 'b2', askedAt: 4_100, wanted: true },
  };
  const dir = left({ 'b1.json': files['b1.json'] });
  importBackfillFiles(settings(dir));
  mkdirSync(join(dir, 'backfills'));
  for (const [name, value] of Object.entries(files)) {
    writeFileSync(join(dir, 'backfills', name), JSON.stringify(value));
  }

  importBackfillFiles(settings(dir));

  expect(backfillsIn(dir).map(({ id }) => id)).toEqual(['b1', 'b2']);
});

test('importBackfillFiles makes nothing where nothing was left', () => {
  const dir = tempDir();

  importBackfillFiles(settings(dir));

  expect(existsSync(join(dir, 'sluice.db'))).toBe(false);
});

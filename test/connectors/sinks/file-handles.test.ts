// A process without a free descriptor: the file sink fails, leaves no file open that nothing uses, and resumes. Node ends
// the process when it collects one.

import { readFileSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { expect, test, vi } from 'vitest';
import { tempDir } from '../../support/temp.ts';
import { FakeEngine, uids, uidsIn } from './file-engine.ts';

const files = vi.hoisted(() => ({
  allowed: Number.POSITIVE_INFINITY,
  all: [] as FileHandle[],
}));

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  const open: typeof real.open = async (...args) => {
    if (files.allowed <= 0) throw Object.assign(new Error('no descriptor'), { code: 'EMFILE' });
    files.allowed -= 1;
    const file = await real.open(...args);
    files.all.push(file);
    return file;
  };
  return { ...real, open };
});

/** A closed file has the descriptor -1. */
const openNow = () => files.all.filter(({ fd }) => fd >= 0).length;

test.for([
  // The file, its directory, the note, its directory.
  [0, 'retry', 0],
  [1, 'retry', 0],
  [2, 'retry', 1],
  [3, 'retry', 1],
  [4, 'delivered', 2],
] as const)('%d files can be opened', async ([allowed, outcome, left]) => {
  const engine = new FakeEngine(tempDir());
  await engine.open();
  files.allowed = allowed;

  const answer = await engine.send(2);
  const open = openNow();
  files.allowed = Number.POSITIVE_INFINITY;
  if (outcome === 'retry') await engine.send(2);
  await engine.send(1);
  await engine.restart();

  expect([answer.outcome, open]).toEqual([outcome, left]);
  expect(uidsIn(readFileSync(engine.path, 'utf8'))).toEqual(uids(3));
  expect(openNow()).toBe(0);
});

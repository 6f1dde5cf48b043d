// Spools that share a thread: one that is locked by another process, damaged, broken or closed leaves the others as they are.

import { existsSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { MessagePort, type Worker } from 'node:worker_threads';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openSpool, type SpoolSettings } from '../../src/hold/spool.ts';
import { anAppend } from '../support/a-page.ts';
import { tempDir, waitUntil } from '../support/temp.ts';
import { overwrite, rootOf, sqlitePage } from './damages.ts';

const settings = (dir: string): SpoolSettings => ({
  ...{ dir, sync: 'none', keepMs: 0, sinks: ['a'], bytesMax: 1e9, sharesThread: true },
});

/** The number of threads that a piece of work starts. */
async function threadsOf(work: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const add = () => {
    count += 1;
  };
  process.on('worker', add);
  try {
    await work();
  } finally {
    process.off('worker', add);
  }
  return count;
}

/** Two open spools, closed at the end of the test, and their directories. */
async function two() {
  const dirs = [tempDir(), tempDir()] as const;
  const [one, other] = await Promise.all([
    openSpool(settings(dirs[0])),
    openSpool(settings(dirs[1])),
  ]);
  onTestFinished(async () => {
    await Promise.all([one.close(), other.close()]);
  });
  return { one, other, dirs };
}

test('spools of one process share a thread, and each has its own events', async () => {
  const dirs = Array.from({ length: 5 }, () => tempDir());
  const open = () => Promise.all(dirs.map((dir) => openSpool(settings(dir))));

  expect(
    await threadsOf(async () => {
      const spools = await open();
      const ids = (count: number) => Array.from({ length: count }, (_, n) => `${n}`);
      await Promise.all(spools.map((spool, n) => spool.append(anAppend({ ids: ids(n + 1) }))));
      expect(spools.map(({ gauge }) => gauge.end)).toEqual([1, 2, 3, 4, 5]);
      await Promise.all(spools.map((spool) => spool.close()));
      // The thread ended with its last spool, and every directory is free.
      const again = await open();
      expect(again.map(({ gauge }) => gauge.end)).toEqual([1, 2, 3, 4, 5]);
      await Promise.all(again.map((spool) => spool.close()));
    }),
  ).toBe(2);
});

test('a spool that does not share has its own thread', async () => {
  const [one, other] = [tempDir(), tempDir()];
  expect(
    await threadsOf(async () => {
      const spools = await Promise.all([
        openSpool(settings(one)),
        openSpool({ ...settings(other), sharesThread: false }),
      ]);
      await Promise.all(spools.map((spool) => spool.close()));
    }),
  ).toBe(2);
});

test('a thread has at most 32 spools', async () => {
  const dirs = Array.from({ length: 33 }, () => tempDir());
  const opened = (some: readonly string[]) =>
    threadsOf(async () => {
      const small = { reserveBytesMax: 2 ** 16 };
      const spools = await Promise.all(
        some.map((dir) => openSpool({ ...settings(dir), ...small })),
      );
      await Promise.all(spools.map((spool) => spool.close()));
    });

  expect(await opened(dirs.slice(1))).toBe(1);
  expect(await opened(dirs)).toBe(2);
});

test.each([
  [0, 1],
  [1, 2],
])('beside a spool of 64 MiB and %i bytes, a small one makes %i threads', async (more, threads) => {
  const [small, large] = [tempDir(), tempDir()];
  await (await openSpool(settings(large))).close();
  // SQLite reads as many pages as the header states.
  truncateSync(join(large, 'sluice.db'), 64 * 1024 * 1024 + more);

  expect(
    await threadsOf(async () => {
      const spools = await Promise.all([small, large].map((dir) => openSpool(settings(dir))));
      await Promise.all(spools.map((spool) => spool.close()));
    }),
  ).toBe(threads);
});

test('a spool that was slow gets a thread of its own at its next start', async () => {
  const post = vi.spyOn(MessagePort.prototype, 'postMessage');
  onTestFinished(() => post.mockRestore());
  const { one, dirs } = await two();
  await one.append(anAppend({ ids: ['1'] }));
  const port = post.mock.contexts.find((_, n) => Array.isArray(post.mock.calls[n]?.[0]));
  post.mockRestore();
  const [slow] = dirs;

  // As the thread reports it.
  (port as unknown as NodeJS.EventEmitter).emit('message', { answers: [], isSlow: true });
  await one.close();

  expect(await threadsOf(async () => (await openSpool(settings(slow))).close())).toBe(1);
});

test('a lock of another process delays only its own spool, which then stores all', async () => {
  const { one, other, dirs } = await two();
  const blocker = new DatabaseSync(join(dirs[0], 'sluice.db'));
  blocker.exec('BEGIN IMMEDIATE');
  const appends = 40;
  let isStored = false;
  const held = one.append(anAppend({ ids: ['1'] })).then(() => {
    isStored = true;
  });

  // If the thread were blocked, these would last longer than a lock is waited for, and the held append would fail.
  for (let n = 0; n < appends; n += 1) {
    await other.append(anAppend({ ids: [`${n}`] }));
    await setTimeout(20);
  }
  expect(isStored).toBe(false);
  blocker.exec('COMMIT');
  blocker.close();
  await held;

  expect(one.gauge.end).toBe(1);
  expect(other.gauge.end).toBe(appends);
});

test('a damaged spool fails alone', async () => {
  const dir = tempDir();
  const first = await openSpool(settings(dir));
  await first.append(anAppend({ ids: ['1'] }));
  await first.close();
  overwrite(join(dir, 'sluice.db'), rootOf(dir, 'trail'), Buffer.alloc(sqlitePage));
  const { other } = await two();
  const damaged = await openSpool(settings(dir));
  const trail = [{ cursor: 'c', at: 1_000 }];

  await expect(damaged.append({ ...anAppend({ ids: ['2'] }), trail })).rejects.toMatchObject({
    code: 'state_damaged',
  });
  await expect(damaged.append(anAppend({ ids: ['3'] }))).rejects.toMatchObject({
    code: 'state_damaged',
  });
  await damaged.close();

  await other.append(anAppend({ ids: ['1'] }));
  expect(other.gauge.end).toBe(1);
});

test('a spool that fails to begin leaves no open database in its thread', async () => {
  const { other } = await two();
  const dir = tempDir();
  await (await openSpool(settings(dir))).close();
  const database = new DatabaseSync(join(dir, 'sluice.db'));
  database.exec(
    "CREATE TRIGGER refused BEFORE INSERT ON meta WHEN NEW.key = 'epochs' BEGIN SELECT RAISE(ABORT, 'refused'); END",
  );
  database.close();

  await expect(openSpool(settings(dir))).rejects.toThrow('refused');

  // The last connection that closes deletes it.
  expect(existsSync(join(dir, 'sluice.db-wal'))).toBe(false);
  await other.append(anAppend({ ids: ['1'] }));
  expect(other.gauge.end).toBe(1);
});

test('a directory that cannot be opened fails alone', async () => {
  const { one } = await two();
  const bad = tempDir();
  writeFileSync(join(bad, 'sluice.db'), 'this is no database'.repeat(1_000));

  await expect(openSpool(settings(bad))).rejects.toMatchObject({ code: 'state_damaged' });

  await one.append(anAppend({ ids: ['1'] }));
  expect(existsSync(join(bad, 'lock'))).toBe(false);
  rmSync(join(bad, 'sluice.db'));
  await (await openSpool(settings(bad))).close();
});

test('an error that no code foresees ends its own spool', async () => {
  const { one, other } = await two();
  const post = vi.spyOn(MessagePort.prototype, 'postMessage');
  onTestFinished(() => post.mockRestore());
  await one.append(anAppend({ ids: ['1'] }));
  const port = post.mock.contexts.find((_, n) => Array.isArray(post.mock.calls[n]?.[0]));
  post.mockRestore();

  (port as MessagePort).postMessage([null]);

  await expect(one.arrival(1e6, new AbortController().signal)).rejects.toMatchObject({
    code: 'broken_invariant',
    message: expect.stringContaining('null'),
  });
  await expect(one.append(anAppend({ ids: ['2'] }))).rejects.toThrow('has ended');
  await other.append(anAppend({ ids: ['1'] }));
  expect(other.gauge.end).toBe(1);
});

test('after the end of their thread spools open again, each in a thread of its own', async () => {
  const started: Worker[] = [];
  const add = (worker: Worker) => void started.push(worker);
  process.on('worker', add);
  onTestFinished(() => void process.off('worker', add));
  const { one, other, dirs } = await two();
  await Promise.all([one.append(anAppend({ ids: ['1'] })), other.append(anAppend({ ids: ['1'] }))]);
  expect(started).toHaveLength(1);

  await started[0]?.terminate();
  for (const spool of [one, other]) {
    await waitUntil(
      async () =>
        await spool.append(anAppend({ ids: ['2'] })).then(
          () => false,
          () => true,
        ),
      { what: 'the end of the spool' },
    );
    await spool.close();
  }
  const again = await Promise.all(dirs.map((dir) => openSpool(settings(dir))));

  expect(started).toHaveLength(3);
  expect(again.map(({ gauge }) => gauge.end)).toEqual([1, 1]);
  await Promise.all(again.map((spool) => spool.close()));
});

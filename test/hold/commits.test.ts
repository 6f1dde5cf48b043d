// The commits of the spool's thread and their number, read from the write-ahead log itself; and the errors of waiting
// callers when that thread ends.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import type { HeldPage, Spool } from '../../src/contracts/spool.ts';
import { identityBytes } from '../../src/contracts/spool.ts';
import { openSpool, type SpoolSettings } from '../../src/hold/spool.ts';
import { Store } from '../../src/hold/store.ts';
import { anAppend, aPage } from '../support/a-page.ts';
import { tempDir, waitUntil } from '../support/temp.ts';
import { rowsIn } from './rows.ts';

const never = new AbortController().signal;

function settings(dir: string, more: Partial<SpoolSettings> = {}): SpoolSettings {
  return { dir, sync: 'full', keepMs: 0, sinks: ['a'], bytesMax: 1e9, ...more };
}

/** A spool and the worker thread that it started. */
async function spoolWithWorker(more: Partial<SpoolSettings> = {}) {
  const dir = tempDir();
  const started = new Promise<Worker>((resolve) => process.once('worker', resolve));
  const spool = await openSpool(settings(dir, more));
  return { spool, worker: await started, dir };
}

/** All pages of a spool. */
async function allPages(spool: Spool): Promise<readonly HeldPage[]> {
  const pages: HeldPage[] = [];
  for (let from = 0; from < spool.gauge.end; ) {
    const some = await spool.read(from, 1e6);
    pages.push(...some);
    from = (some.at(-1)?.first ?? from) + (some.at(-1)?.count ?? 1);
  }
  return pages;
}

/** Transactions in the write-ahead log: a frame that ends one says how large the database is then (SQLite file format, 4.1). */
function commitsIn(dir: string): number {
  const wal = readFileSync(join(dir, 'sluice.db-wal'));
  const frameBytes = 24 + wal.readUInt32BE(8);
  let commits = 0;
  for (let at = 32; at + frameBytes <= wal.length; at += frameBytes) {
    const current = wal.compare(wal, 16, 24, at + 8, at + 16) === 0;
    if (current && wal.readUInt32BE(at + 4) > 0) commits += 1;
  }
  return commits;
}

test('spool shares a commit among appends in flight and gives one to each that waits for the last', async () => {
  const { spool, dir } = await spoolWithWorker();
  const before = commitsIn(dir);

  for (let n = 0; n < 5; n += 1) await spool.append(anAppend({ ids: [`one ${n}`] }));
  const apart = commitsIn(dir) - before;
  await Promise.all(
    Array.from({ length: 200 }, (_, n) =>
      spool.append(anAppend({ stream: `s${n}`, ids: [String(n)] })),
    ),
  );
  const together = commitsIn(dir) - before - apart;
  const pages = await spool.read(0, 1e9);
  await spool.close();

  expect(apart).toBe(5);
  expect(together).toBeGreaterThan(0);
  expect(together).toBeLessThan(50);
  expect(pages.map(({ first }) => first)).toEqual(pages.map((_, index) => index));
});

test('spool writes nothing while nothing happens', async () => {
  const { spool, dir } = await spoolWithWorker({ eager: true });
  await spool.append(anAppend({ ids: ['1'] }));
  const before = commitsIn(dir);

  for (let n = 0; n < 10; n += 1) await spool.progress('a');

  expect(commitsIn(dir)).toBe(before);
  await spool.close();
});

test('spool writes notes without a commit of their own for each', async () => {
  const { spool, dir } = await spoolWithWorker();
  const before = commitsIn(dir);
  for (let n = 0; n < 100; n += 1) {
    spool.note('stream', `s${n % 10}`, { polls: n });
    if (n % 10 === 0) await spool.progress('a');
  }
  await spool.progress('a');
  const commits = commitsIn(dir) - before;
  await spool.close();

  const noted = rowsIn(dir, "SELECT name, facts FROM note WHERE kind = 'stream' ORDER BY name");
  expect(commits).toBeLessThan(10);
  expect(noted).toHaveLength(10);
  expect(noted[3]).toEqual({ name: 's3', facts: '{"polls":93}' });
});

test('spool fails only the append that cannot be written, not those committed with it', async () => {
  const { spool } = await spoolWithWorker();
  const bad = { ...anAppend({ stream: 'bad', ids: ['x'] }), checkpoint: { n: 1n } as never };

  const settled = await Promise.allSettled([
    spool.append(anAppend({ stream: 's1', ids: ['1'] })),
    spool.append(bad),
    spool.append(anAppend({ stream: 's2', ids: ['2'] })),
    spool.acknowledge('a', { position: 1 }),
    spool.read(0, 1e6),
  ]);
  const pages = await spool.read(0, 1e6);
  const { position } = await spool.progress('a');
  const memory = await spool.recall('bad');
  await spool.close();

  expect(settled.map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
    'fulfilled',
    'fulfilled',
  ]);
  expect(pages.map(({ context }) => context.stream)).toEqual(['s1', 's2']);
  expect(position).toBe(1);
  expect(memory.checkpoint).toBeNull();
});

test('spool gives readers that are up to date the page that was appended, not one read back', async () => {
  const { spool } = await spoolWithWorker();
  const given: unknown[] = [];
  const reading = (async () => {
    for (let from = 0; from < 60; ) {
      await spool.arrival(from, never);
      const pages = await spool.read(from, 1);
      given.push(...pages.map(({ slices }) => slices));
      from = (pages.at(-1)?.first ?? 0) + (pages.at(-1)?.count ?? 0);
    }
  })();

  const slices = Array.from({ length: 60 }, (_, n) => ({
    starts: Uint32Array.of(n),
    ends: Uint32Array.of(n + 1),
    length: 1,
    exact: true,
  }));
  for (let n = 0; n < 60; n += 6) {
    await Promise.all(
      slices.slice(n, n + 6).map((own, i) => {
        const page = { ...aPage({ ids: [String(n + i)] }), slices: own };
        return spool.append({ stream: `s${i}`, pages: [page], checkpoint: null });
      }),
    );
  }
  await reading;
  await spool.close();

  expect(given).toEqual(slices);
});

/** Everything that can wait for the spool. */
function waitFor(spool: Spool): readonly Promise<unknown>[] {
  return [
    spool.append(anAppend({ ids: ['lost'] })),
    spool.read(0, 1e6),
    spool.progress('a'),
    spool.acknowledge('a', { position: 1 }),
    spool.arrival(1e6, never),
  ];
}

test('spool rejects all waiting callers, and all later ones, when its thread ends', async () => {
  const { spool, worker, dir } = await spoolWithWorker({ recentBytesMax: 1 });
  await spool.append(anAppend({ ids: ['1'] }));
  const waiting = Promise.allSettled(waitFor(spool));
  const full = spool.arrival(2e6, never);
  full.catch(() => undefined);

  await worker.terminate();
  await waiting;
  const later = await Promise.allSettled([...waitFor(spool), spool.room(never)]);

  await expect(full).rejects.toMatchObject({ code: 'broken_invariant' });
  const reasons = later.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
  // What is remembered can still be read.
  expect(reasons.length).toBeGreaterThanOrEqual(5);
  for (const reason of reasons) expect(String(reason)).toContain("the spool's thread has ended");
  await spool.close();
  const after = await openSpool(settings(dir));
  expect(after.gauge.end).toBeGreaterThanOrEqual(1);
  await after.close();
});

test('spool notifies waiting callers when it is closed', async () => {
  const { spool } = await spoolWithWorker();
  const arrival = spool.arrival(5, never);
  arrival.catch(() => undefined);

  await Promise.all([spool.close(), spool.close()]);

  await expect(arrival).rejects.toThrow('the spool is closed');
  await expect(spool.progress('a')).rejects.toThrow('the spool is closed');
});

test('spool keeps pages for replay only while polling has room', async () => {
  const { spool } = await spoolWithWorker({ eager: true, keepMs: 3_600_000, bytesMax: 20_000 });
  const sizes: number[] = [];

  for (let n = 0; n < 12; n += 1) {
    await spool.room(never);
    await spool.append(anAppend({ ids: [String(n)], pad: 4_000 }));
    await spool.acknowledge('a', { position: n + 1 });
    await spool.progress('a');
    sizes.push(spool.gauge.bytes);
  }
  const { oldest } = spool.gauge;
  await spool.close();

  expect(Math.max(...sizes)).toBeLessThanOrEqual(20_000);
  expect(sizes.at(-1)).toBeGreaterThan(8_000);
  expect(oldest).toBeLessThan(11);
});

test('spool notices pages that another process has put back', async () => {
  const { spool, dir } = await spoolWithWorker();
  await spool.append(anAppend({ ids: ['1'] }));
  const other = new Store({ dir, sync: 'full', keepMs: 0 });
  other.transaction(() => other.hold({ ...aPage({ ids: ['back'] }), onlySink: 'a' }, Date.now()));
  const { bytes } = other.gauge();
  other.close();

  await spool.arrival(1, never);
  await spool.append(anAppend({ ids: ['2'] }));
  const pages = await allPages(spool);
  await waitUntil(() => spool.gauge.bytes > bytes, { what: 'the size to count all pages' });
  await spool.close();

  expect(pages.map(({ first, onlySink }) => [first, onlySink])).toEqual([
    [0, undefined],
    [1, 'a'],
    [2, undefined],
  ]);
});

test('store forgets a stream’s oldest identities beyond its bound, and no other stream’s', () => {
  const dir = tempDir();
  const store = new Store({ dir, sync: 'normal', keepMs: 0 });
  const append = (stream: string, count: number) =>
    store.transaction(() =>
      store.append(
        { stream, pages: [], checkpoint: null, identities: new Uint8Array(count * identityBytes) },
        0,
      ),
    );
  append('quiet', 10);

  const firstBlock = append('busy', 100_000).block;
  for (let n = 0; n < 14; n += 1) append('busy', 100_000);
  const counts = (stream: string) =>
    store.streams.recall(stream).identities.reduce((sum, { bytes }) => sum + bytes.length, 0) /
    identityBytes;
  const blocks = store.streams.recall('busy').identities.map(({ block }) => block);

  expect(counts('quiet')).toBe(10);
  expect(counts('busy')).toBeGreaterThanOrEqual(1_000_000);
  expect(counts('busy')).toBeLessThanOrEqual(1_100_000);
  expect(blocks).not.toContain(firstBlock);
  expect(blocks).toEqual([...blocks].sort((a, b) => a - b));
  store.close();
});

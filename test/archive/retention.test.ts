// Bodies that are deleted from an archive, and those that are kept: old bodies, requested ones, and those under a hold.
// After any deletion the archive verifies, reports the deleted bodies, and finds bodies that are missing without an
// entry.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { encodeHold, type Hold, holdPath } from '../../src/archive/holds.ts';
import { loggedEntries, newestCheckpoint } from '../../src/archive/logged.ts';
import { archivedPage } from '../../src/archive/pages.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { encodeWish, prunePath } from '../../src/archive/retention.ts';
import { verifyArchive } from '../../src/archive/verify/verify.ts';
import { ExportError } from '../../src/contracts/errors.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { timeText } from '../../src/tools/time-text.ts';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aSigner, aWriter, heldPages, readArchive } from './a-writer.ts';

const dayMs = 86_400_000;
const { vkey } = aSigner().verifier;

/** Pages that were read so many days ago. */
function readAgo(days: number, first: number): readonly HeldPage[] {
  const fetchedAt = Date.now() - days * dayMs;
  return heldPages(2, first).map((page) => ({ ...page, context: { ...page.context, fetchedAt } }));
}

/** An archive of a segment of 40 days ago, one of 20, and one of now. */
async function anArchive() {
  const location = join(tempDir(), 'archive');
  const store = openDirectory(location);
  let at = 0;
  const writer = await aWriter({ store, now: () => at });
  for (const [index, days] of [40, 20, 0].entries()) {
    at = Date.now() - days * dayMs;
    await archived(writer, readAgo(days, index * 6));
  }
  return { location, store, writer };
}

async function segmentsOf(store: ObjectStore): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const { name } of store.list('segments/')) names.push(name);
  return names;
}

async function verified(store: ObjectStore) {
  return await verifyArchive(new ArchiveReader(store), { trusted: [aSigner().verifier] });
}

function aHold(parts: Partial<Hold> = {}): Hold {
  const always = { from: null, to: null, released_at: null };
  return { id: 'case-1', ...always, reason: 'a case', placed_at: timeText(Date.now()), ...parts };
}

test('an archive lets bodies go that are older than they are kept, and verifies', async () => {
  const { store, writer } = await anArchive();
  const before = await segmentsOf(store);
  await writer.close();
  const next = await aWriter({ store, bodiesMs: 30 * dayMs });
  await archived(next, readAgo(0, 18));
  await next.close();

  expect(await segmentsOf(store)).toEqual([...before.slice(1), expect.any(String)]);
  const report = await verified(store);
  expect(report.breaks).toEqual([]);
  expect(report.remarks).toContainEqual(expect.stringContaining('the bodies of 2 pages went'));
});

/** The same pages, whose responses name this time. */
function dated(pages: readonly HeldPage[], at: number): readonly HeldPage[] {
  const answer = { status: 200, path: '/', asked: null, date: new Date(at).toUTCString() };
  return pages.map((page) => ({ ...page, context: { ...page.context, answer } }));
}

test('no body goes by a clock that is years ahead of upstream’s', async () => {
  const { store, writer } = await anArchive();
  const before = await segmentsOf(store);
  await writer.close();
  const yearsMs = 3_650 * dayMs;
  const next = await aWriter({ store, bodiesMs: 50 * dayMs, now: () => Date.now() + yearsMs });
  const as = (kind: 'condition' | 'drift' | 'audit', first: number) =>
    readAgo(-3_650, first).map((page) => ({ ...page, context: { ...page.context, kind } }));

  await archived(next, as('condition', 18));
  await archived(next, as('drift', 24));
  await archived(next, dated(as('audit', 30), Date.now()));
  await archived(next, as('audit', 36));
  await next.close();

  expect(await segmentsOf(store)).toEqual(expect.arrayContaining([...before]));
});

test('a body that a clock of 1970 has read is as old as upstream’s clock says', async () => {
  const { store, writer } = await anArchive();
  await writer.close();
  const early = await aWriter({ store, now: () => 60_000 });
  const read = heldPages(2, 18).map((page) => ({
    ...page,
    context: { ...page.context, fetchedAt: 60_000 },
  }));
  await archived(early, dated(read, Date.now() - dayMs));
  await early.close();
  const before = await segmentsOf(store);
  const next = await aWriter({ store, bodiesMs: 30 * dayMs });

  await archived(next, readAgo(0, 24));
  await next.close();

  const gone = before.filter((name) => !name.includes('1970'));
  expect(await segmentsOf(store)).toContain(before.find((name) => name.includes('1970')));
  expect(gone).toHaveLength(3);
  expect((await verified(store)).breaks).toEqual([]);
});

test('bodies that an operator requests to delete are deleted with the next checkpoint, and the request too', async () => {
  const { store, writer } = await anArchive();
  await store.put(prunePath, [encodeWish(Date.now() - 10 * dayMs, Date.now())]);

  await archived(writer, readAgo(0, 18));

  expect(await segmentsOf(store)).toHaveLength(2);
  expect(await store.read(prunePath)).toBeNull();
  expect((await verified(store)).breaks).toEqual([]);
});

test.each([
  ['all', {}, 4],
  ['a time in which some were read', { to: timeText(Date.now() - 30 * dayMs) }, 3],
  ['a time in which none were read', { from: timeText(Date.now() + dayMs) }, 2],
  ['all, and is released', { released_at: timeText(Date.now()) }, 2],
])('a hold of %s keeps its pages', async (_, parts, left) => {
  const { store, writer } = await anArchive();
  await store.create(holdPath('case-1') ?? '', [encodeHold(aHold(parts))]);
  await store.put(prunePath, [encodeWish(Date.now() - 10 * dayMs, Date.now())]);

  await archived(writer, readAgo(0, 18));

  expect(await segmentsOf(store)).toHaveLength(left);
  expect((await verified(store)).breaks).toEqual([]);
});

test('a hold that was entered keeps bodies though its object is gone', async () => {
  const { location, store, writer } = await anArchive();
  const path = holdPath('case-1') ?? '';
  await store.create(path, [encodeHold(aHold())]);
  await archived(writer, readAgo(0, 18));
  await writer.close();
  rmSync(join(location, path));
  const next = await aWriter({ store, bodiesMs: dayMs });

  await archived(next, readAgo(0, 24));

  expect(await segmentsOf(store)).toHaveLength(5);
});

test('a hold that cannot be read has nothing go, and pages are archived all the same', async () => {
  const { store, writer } = await anArchive();
  await store.put('holds/case-1.json', [Buffer.from('{}')]);
  await store.put(prunePath, [encodeWish(Date.now(), Date.now())]);

  await archived(writer, readAgo(0, 18));

  expect(await segmentsOf(store)).toHaveLength(4);
  expect((await verified(store)).breaks).toEqual([]);
});

test('a segment that is gone without an entry is found, beside those that went by one', async () => {
  const { location, store, writer } = await anArchive();
  await store.put(prunePath, [encodeWish(Date.now() - 30 * dayMs, Date.now())]);
  await archived(writer, readAgo(0, 18));
  const [second = ''] = await segmentsOf(store);
  rmSync(join(location, second));

  const { breaks } = await verified(store);

  const reader = new ArchiveReader(store);
  const read: string[] = [];
  for await (const { entry } of loggedEntries(reader, (await newestCheckpoint(reader)).size)) {
    if (entry.t !== 'page') continue;
    const page = await archivedPage(reader, entry, 0).catch(() => 'damaged' as const);
    read.push(page === null ? 'removed' : page === 'damaged' ? page : 'there');
  }
  expect(read).toEqual(['removed', 'removed', 'damaged', 'damaged', ...Array(4).fill('there')]);
  expect(breaks.map(({ stream, seq, object, what }) => [stream, seq, object, what])).toEqual([
    ['audit', 2, second, 'the segment is missing'],
    ['audit', 3, second, 'the segment is missing'],
  ]);
});

test('objects that a store refuses to delete are kept and reported, and delay nothing', async () => {
  const { store, writer } = await anArchive();
  await writer.close();
  const denied = new ExportError('sink_refused', 'removing it: 403 AccessDenied', {
    next: 'Allow it.',
  });
  const denying = { ...store, remove: () => Promise.reject(denied) };
  const next = await aWriter({ store: denying, bodiesMs: 30 * dayMs });
  await store.put(prunePath, [encodeWish(Date.now() - 10 * dayMs, Date.now())]);

  await archived(next, readAgo(0, 18));
  await archived(next, readAgo(0, 24));
  await next.close();

  expect(await segmentsOf(store)).toHaveLength(5);
  const { breaks, pages } = await verified(store);
  expect([breaks, pages]).toEqual([[], 10]);
  const { entries } = await readArchive(store);
  expect(entries.filter(({ t }) => t === 'pruned')).toEqual([]);
});

test('the commands set, list and release holds, delete bodies, and show the content of an archive', async () => {
  const { location, store, writer } = await anArchive();
  const run = (...args: readonly string[]) => runHere(['archive', ...args]);
  const before = timeText(Date.now() - 10 * dayMs);

  const set = await run('hold', 'add', location, '--id', 'case-1', '--reason', 'a case');
  const waiting = await run('hold', 'list', location, '--json');
  const again = await run('hold', 'add', location, '--id', 'case-1', '--reason', 'another');
  const held = await run('prune', location, '--before', before, '--yes');
  const released = await run('hold', 'release', location, '--id', 'case-1');
  const unsure = await run('prune', location, '--before', before);
  const asked = await run('prune', location, '--before', before, '--yes');
  await archived(writer, readAgo(0, 18));
  const left = await run('stats', location, '--json');
  const list = await run('hold', 'list', location);
  const listed = await run('hold', 'list', location, '--json');

  expect([set, again, held, released, unsure, asked].map(({ exitCode }) => exitCode)).toEqual([
    ...[0, 64, 0, 0, 1, 0],
  ]);
  expect(held.stdout).toContain(
    '0 segments (0 pages, 0 B) would be deleted; 2 segments stay under a hold',
  );
  expect(asked.stdout).toContain('2 segments (4 pages');
  expect(JSON.parse(left.stdout)).toMatchObject({ segments: { objects: 2 }, holds: 0 });
  expect(list.stdout).toMatch(/case-1 .* a case/);
  expect(list.stdout).not.toContain('not ');
  const [first, last] = [waiting, listed].map(({ stdout }) => JSON.parse(stdout)[0]);
  expect(first).toMatchObject({ entered_at: null, release_entered_at: null });
  expect(last).toMatchObject({
    entered_at: expect.any(String),
    release_entered_at: expect.any(String),
  });
  const report = await run('verify', location, '--key', vkey);
  expect(report.exitCode).toBe(0);
  expect((await verified(store)).breaks).toEqual([]);

  const out = join(tempDir(), 'out');
  const span = ['--from', '2020-01-01T00:00:00Z', '--to', '2100-01-01T00:00:00Z'];
  const exported = await run('export', location, ...span, '--out', out);
  expect(exported.exitCode).toBe(0);
  expect((await run('verify', out, '--key', vkey)).exitCode).toBe(0);

  await store.put('holds/bad.json', [Buffer.from('{}')]);
  const damaged = await run('prune', location, '--before', before, '--yes');
  expect([damaged.exitCode, damaged.stderr]).toEqual([
    1,
    expect.stringContaining('holds/bad.json'),
  ]);
  const none = await run('stats', join(location, 'elsewhere'));
  expect([none.exitCode, none.stderr]).toEqual([1, expect.stringContaining('there is no archive')]);
});

test('`hold list` shows which holds and releases the log names, however long ago they were set', async () => {
  const location = join(tempDir(), 'archive');
  let now = Date.now() - 20 * dayMs;
  const writer = await aWriter({ store: openDirectory(location), now: () => now });
  const place = (id: string, released_at: string | null = null) => {
    const hold = {
      id,
      from: null,
      to: null,
      reason: 'a case',
      placed_at: timeText(now),
      released_at,
    };
    mkdirSync(join(location, 'holds'), { recursive: true });
    writeFileSync(join(location, 'holds', `${id}.json`), encodeHold(hold));
  };
  await archived(writer, heldPages(1));
  place('old');
  for (let day = 1; day <= 20; day += 1) {
    now += dayMs;
    await archived(writer, heldPages(1, day * 3));
  }
  place('new');
  const list = async () => (await runHere(['archive', 'hold', 'list', location])).stdout;

  const before = await list();
  await archived(writer, heldPages(1, 900));
  const entered = await list();
  place('new', timeText(now));
  const released = await list();
  await archived(writer, heldPages(1, 903));
  await writer.close();

  expect(before).toMatch(/old .*Z +-/);
  expect(before).toMatch(/new .* not yet +-/);
  expect(entered).not.toContain('not yet');
  expect(released).toMatch(/new .*\(not in the log yet\)/);
  expect(await list()).not.toContain('yet');
});

// Removals are judged by what the log proves of the pages, not by the entry that excuses them. The logs here were
// signed by a writer that believed whatever stood in the store, as older versions did.

import { expect, test } from 'vitest';
import { type Entry, parseEntry } from '../../src/archive/entries.ts';
import { loggedEntries, newestCheckpoint } from '../../src/archive/logged.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { verifyArchive } from '../../src/archive/verify/verify.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { writableStore } from '../support/archive/memory-store.ts';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aSigner, aWriter, heldPages } from './a-writer.ts';
import { sign } from './signed-attacks.ts';

const at = '2026-11-25T00:00:00.000Z';
const sha256 = '5f'.repeat(32);
const hold = { t: 'hold', at, id: 'case-1', from: null, to: null, reason: 'a case' } as const;

async function anArchive(store: ObjectStore = writableStore()) {
  const writer = await aWriter({ store });
  await archived(writer, heldPages(2));
  await archived(writer, heldPages(2, 6));
  await writer.close();
  return store;
}

async function verified(store: ObjectStore, nothingGone = false) {
  const reader = new ArchiveReader(store);
  return await verifyArchive(reader, { trusted: [aSigner().verifier], nothingGone });
}

async function firstSegment(store: ObjectStore): Promise<string> {
  for await (const { name } of store.list('segments/')) return name;
  throw new Error('there is a segment');
}

const pruned = (object: string, year: number): Entry => ({
  ...{ t: 'pruned', at, object, pages: 2, why: 'asked' },
  ...{ first: `${year}-01-01T00:00:00.000Z`, last: `${year}-01-01T00:00:01.000Z` },
});

test('a hold is judged by the reading time of pages, not by the times in the entry that prunes them', async () => {
  const store = await anArchive();
  const object = await firstSegment(store);
  const since2000 = { ...hold, from: '2000-01-01T00:00:00.000Z', released_at: null };
  await sign(store, [since2000, pruned(object, 1990)]);
  await store.remove(object);

  const { breaks, removed } = await verified(store);

  expect(breaks).toMatchObject([{ object, what: 'it went though the hold case-1 keeps it' }]);
  expect(removed).toMatchObject({ asked: { objects: 1, pages: 2 }, retention: { objects: 0 } });
});

test('a hold that a later entry narrows is judged by its first entry until it is released', async () => {
  const store = await anArchive();
  const object = await firstSegment(store);
  const narrow = { from: '1970-01-01T00:00:00.000Z', to: '1970-01-02T00:00:00.000Z' };
  await sign(store, [
    { ...hold, released_at: null },
    { ...hold, ...narrow, released_at: null },
    pruned(object, 1990),
  ]);
  await store.remove(object);

  const { breaks } = await verified(store);

  expect(breaks.map(({ what }) => what)).toEqual([
    expect.stringContaining('the hold case-1 was entered again with another span'),
    'it went though the hold case-1 keeps it',
  ]);
});

test('a released hold keeps nothing, and pages that retention removed are counted by cause', async () => {
  const store = await anArchive();
  const object = await firstSegment(store);
  await sign(store, [
    { ...hold, released_at: null },
    { ...hold, released_at: at },
    { ...pruned(object, 2020), why: 'retention' } as Entry,
  ]);
  await store.remove(object);

  expect(await verified(store)).toMatchObject({
    breaks: [],
    removed: { retention: { objects: 1, pages: 2 }, asked: { objects: 0, pages: 0 } },
  });
  expect((await verified(store, true)).breaks).toMatchObject([{ object }]);
});

test('an entry that erases from a page that does not match, or prunes pages that no entry names, is a break', async () => {
  const store = await anArchive();
  const object = await firstSegment(store);
  const erased = (index: number, place: number): Entry => ({
    ...{ t: 'erased', at, page: { index, segment: object, at: place, fetched_at: at } },
    ...{ records: [{ place: 0, sha256 }], reason: 'a case', segment: { bytes: 1, sha256 } },
    body: { sha256, bytes: 1, segment: object, at: 0, length: 1 },
  });
  await sign(store, [erased(0, 0), erased(999, 0), erased(3, 12_345), pruned('segments/x', 2020)]);

  const { breaks, removed } = await verified(store);

  expect(breaks.map(({ what }) => what)).toEqual([
    ...[0, 999, 3].map((i) => `it erases from entry ${i}, which is no such page`),
    'it prunes an object that no entry names',
  ]);
  expect(removed.erased).toEqual({ records: 3, unproven_rest: 3 });
});

test('a row of the lake that went without an erased record is a break', async () => {
  const store = await anArchive();
  const name = 'lake/3002/region=local/accountId=x/eventDay=20260303/1-2-abc.parquet';
  const object = 'lake/cuts/2026/11/25/0000000000001-0000000000000000.cut';
  await sign(store, [
    {
      ...{ t: 'lake_cut', at, object, bytes: 1, sha256, objects: 1, events: 1, numbers: [0, 1] },
      ...{ entries: null, absent: 0, first: at, last: at },
    },
    { t: 'lake', object: name, bytes: 1, sha256, rows: 1, first: 1, last: 2 },
    {
      ...{ t: 'lake_erased', at, object: name, from: sha256, uids: [sha256], reason: 'a case' },
      ...{ bytes: 0, sha256, rows: 0, first: at, last: at },
    },
  ]);

  const { breaks } = await verified(store);

  expect(breaks.map(({ what }) => what)).toContain(
    `its row ${sha256} was erased, and no entry erases the record of that event`,
  );
});

test('objects that no entry names are listed by the command, and are no break', async () => {
  const location = tempDir();
  const store = await anArchive(openDirectory(location));
  const strays = [
    ...['checkpoints/2026/01/01/00000000000000000001.note', 'notes.txt'],
    ...['manifests/audit/2020-01-01.json', 'segments/2026/01/01/00000000000000000003.zst'],
    'tile/entries/x',
  ];
  for (const name of strays) await store.put(name, [Buffer.from('x')]);
  const { vkey } = aSigner().verifier;

  const { stdout, exitCode } = await runHere([
    'archive',
    'verify',
    location,
    '--key',
    vkey,
    '--json',
  ]);

  expect(exitCode).toBe(0);
  const report = JSON.parse(stdout);
  expect([report.verdict, report.strays]).toEqual(['whole', strays.toSorted()]);
});

test('an entry with the additions of this version is read by versions that do not know them', async () => {
  const store = await anArchive();
  const reader = new ArchiveReader(store);
  const { size } = await newestCheckpoint(reader);
  const [first] = await Array.fromAsync(loggedEntries(reader, size));
  const more = Buffer.from(JSON.stringify({ ...first?.entry, later: 1 }));

  expect(parseEntry(more)).toEqual(first?.entry);
});

// Attacks on legal holds by somebody who can write to the store and has no key: the writer must not delete what a
// hold keeps, whatever its files say. Each test is an attack that an earlier version carried out.

import { expect, test } from 'vitest';
import { encodeHold, type Hold, holdPath } from '../../src/archive/holds.ts';
import { loggedEntries, newestCheckpoint } from '../../src/archive/logged.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { encodeWish, prunePath } from '../../src/archive/retention.ts';
import { verifyArchive } from '../../src/archive/verify/verify.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { timeText } from '../../src/tools/time-text.ts';
import { writableStore } from '../support/archive/memory-store.ts';
import { archived, aSigner, aWriter, heldPages, type State } from './a-writer.ts';

const dayMs = 86_400_000;
const hold: Hold = {
  ...{ id: 'case-1', from: null, to: null, reason: 'a case' },
  ...{ placed_at: timeText(Date.now()), released_at: null },
};

/** Pages that were read so many days ago. */
function readAgo(days: number, first: number) {
  const fetchedAt = Date.now() - days * dayMs;
  return heldPages(2, first).map((page) => ({ ...page, context: { ...page.context, fetchedAt } }));
}

async function segmentsOf(store: ObjectStore): Promise<number> {
  let count = 0;
  for await (const _ of store.list('segments/')) count += 1;
  return count;
}

/** An archive of two segments, one of them 40 days old. */
async function anArchive(more: Partial<Hold> | null = {}) {
  const store = writableStore();
  const state: State = { mark: null };
  let at = Date.now() - 40 * dayMs;
  const writer = await aWriter({ store, state, now: () => at });
  if (more !== null) await setHold(store, more);
  await archived(writer, readAgo(40, 0));
  at = Date.now();
  await archived(writer, readAgo(0, 6));
  return { store, state, writer };
}

async function setHold(store: ObjectStore, parts: Partial<Hold>): Promise<void> {
  await store.put(holdPath(hold.id) ?? '', [encodeHold({ ...hold, ...parts })]);
}

async function prune(store: ObjectStore): Promise<void> {
  await store.put(prunePath, [encodeWish(Date.now() - dayMs, Date.now())]);
}

const verified = (store: ObjectStore) =>
  verifyArchive(new ArchiveReader(store), { trusted: [aSigner().verifier] });

async function entriesOf(store: ObjectStore, kind: string) {
  const reader = new ArchiveReader(store);
  const found: object[] = [];
  for await (const { entry } of loggedEntries(reader, (await newestCheckpoint(reader)).size)) {
    if (entry.t === kind) found.push(entry);
  }
  return found;
}

test('a hold file that was changed to another span neither changes the hold nor is entered', async () => {
  const { store, writer } = await anArchive();
  await setHold(store, { from: '1970-01-01T00:00:00Z', to: '1970-01-02T00:00:00Z' });
  await prune(store);

  await archived(writer, readAgo(0, 12));
  await archived(writer, readAgo(0, 18));

  expect(await segmentsOf(store)).toBe(4);
  expect(await entriesOf(store, 'hold')).toHaveLength(1);
  expect(await entriesOf(store, 'pruned')).toEqual([]);
  expect((await verified(store)).breaks).toEqual([]);
});

test('a changed hold file is ignored by the next process too, whose state is lost', async () => {
  const { store, writer } = await anArchive();
  await writer.close();
  await setHold(store, { from: '1970-01-01T00:00:00Z', to: '1970-01-02T00:00:00Z' });
  await prune(store);

  const next = await aWriter({ store, spool: 'spool-2' });
  await archived(next, readAgo(0, 0));

  expect(await segmentsOf(store)).toBe(3);
  expect((await verified(store)).breaks).toEqual([]);
});

/** Every bundle with each page entry set to have been read in 1990; gives back what was there. */
async function setBack(store: ObjectStore): Promise<ReadonlyMap<string, Uint8Array>> {
  const before = new Map<string, Uint8Array>();
  for await (const { name } of store.list('tile/entries/')) {
    const body = (await store.read(name))?.body ?? new Uint8Array(0);
    before.set(name, body);
    const forged = Buffer.from(body)
      .toString('latin1')
      .replaceAll(/"fetched_at":"\d{4}/g, '"fetched_at":"1990');
    await store.put(name, [Buffer.from(forged, 'latin1')]);
  }
  return before;
}

test.each(['this process', 'the next process', 'the next process, its state lost'])(
  'entries that were set back in time have nothing pruned by %s',
  async (which) => {
    const { store, state, writer } = await anArchive({ from: '2000-01-01T00:00:00Z' });
    const isNext = which !== 'this process';
    if (isNext) await writer.close();
    const before = await setBack(store);
    await prune(store);

    const isLost = which.endsWith('lost');
    const next = isNext
      ? await aWriter({ store, ...(isLost ? { spool: 'spool-2' } : { state }) }).catch(() => null)
      : writer;
    const added = next?.add(readAgo(0, 12)).catch(() => undefined);
    await next?.flush();
    await added;
    for (const [name, body] of before) await store.put(name, [body]);

    expect(await entriesOf(store, 'pruned')).toEqual([]);
    expect(await segmentsOf(store)).toBeGreaterThanOrEqual(2);
    expect((await verified(store)).breaks).toEqual([]);
  },
);

test('segments that no hold keeps go, also beside a hold that was changed', async () => {
  const { store, writer } = await anArchive({ to: '2000-01-01T00:00:00Z' });
  await prune(store);

  await archived(writer, readAgo(0, 12));

  expect(await segmentsOf(store)).toBe(2);
  expect(await entriesOf(store, 'pruned')).toHaveLength(1);
  expect((await verified(store)).breaks).toEqual([]);
});

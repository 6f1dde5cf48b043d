// Attacks through requests to erase, by somebody who can write to the store and has no key: what is left of a page
// must come from the page as it was archived, and what a hold keeps stays. An earlier version carried out each of these.

import { hash } from 'node:crypto';
import { zstdDecompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { requestPath } from '../../src/archive/erasure-request.ts';
import { encodeHold, holdPath } from '../../src/archive/holds.ts';
import { loggedEntries, newestCheckpoint } from '../../src/archive/logged.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { blankFrame, compressBody, pageRange } from '../../src/archive/segments.ts';
import { verifyArchive } from '../../src/archive/verify/verify.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { timeText } from '../../src/tools/time-text.ts';
import { aPage } from '../support/a-page.ts';
import { writableStore } from '../support/archive/memory-store.ts';
import { archived, aSigner, aWriter, heldPages, uidsOfPages } from './a-writer.ts';

const [uid = ''] = uidsOfPages(heldPages(1));

async function loggedIn(store: ObjectStore) {
  const reader = new ArchiveReader(store);
  const { size } = await newestCheckpoint(reader);
  return await Array.fromAsync(loggedEntries(reader, size));
}

const verified = (store: ObjectStore) =>
  verifyArchive(new ArchiveReader(store), { trusted: [aSigner().verifier] });

async function requested(store: ObjectStore, of: string): Promise<void> {
  const request = { uid: of, reason: 'a case', asked_at: timeText(Date.now()) };
  await store.put(requestPath(of), [Buffer.from(JSON.stringify(request))]);
}

async function anArchive() {
  const store = writableStore();
  const writer = await aWriter({ store });
  await archived(writer, heldPages(2));
  return { store, writer };
}

/** The page of entry `index` with another body appended to its segment, its own blanked, and a request to match. */
async function forge(store: ObjectStore, change: (body: string) => string) {
  const page = (await loggedIn(store)).find(({ entry }) => entry.t === 'page');
  if (page?.entry.t !== 'page') throw new Error('there is a page');
  const { entry, index } = page;
  const found = await store.read(entry.body.segment);
  const whole = Buffer.from(found?.body ?? []);
  const { from, length } = pageRange(entry);
  const range = whole.subarray(from, from + length);
  const kept = Buffer.from(range.subarray(entry.body.length));
  const text = Buffer.from(change(heldPages(1)[0]?.body.toString() ?? ''));
  const frame = await compressBody(text);
  const body = {
    ...{ sha256: hash('sha256', text, 'hex'), bytes: text.length },
    ...{ segment: entry.body.segment, at: whole.length, length: frame.length },
  };
  blankFrame(range.subarray(0, entry.body.length));
  await store.put(entry.body.segment, [whole, frame, kept]);
  const record = JSON.stringify({ id: '0' });
  const request = {
    ...{ uid, sha256: hash('sha256', record, 'hex'), reason: 'a case' },
    ...{ asked_at: timeText(Date.now()), pages: [{ index, body }], lake: [] },
  };
  await store.put(requestPath(uid), [Buffer.from(JSON.stringify(request))]);
  return { text: text.toString(), segment: entry.body.segment };
}

describe('a forged body', () => {
  test.each([
    ['with another field', (body: string) => body.replace('{', '{"invented":true,')],
    [
      'that ends the list',
      (body: string) => body.replace(/"next_cursor":[^,}]*/, '"next_cursor":null'),
    ],
  ])('%s is not signed, and the page is reported', async (_, change) => {
    const { store, writer } = await anArchive();
    const { segment } = await forge(store, change);

    await archived(writer, heldPages(1, 6));
    await archived(writer, heldPages(1, 9));

    expect((await loggedIn(store)).filter(({ entry }) => entry.t === 'erased')).toEqual([]);
    const { breaks } = await verified(store);
    expect(breaks.length).toBeGreaterThan(0);
    expect(breaks[0]).toMatchObject({ object: segment, stream: 'audit', seq: 0 });
  });

  test('after a segment whose own bodies are whole has nothing erased from it', async () => {
    const { store, writer } = await anArchive();
    const segment = (await loggedIn(store)).find(({ entry }) => entry.t === 'segment');
    const name = segment?.entry.t === 'segment' ? segment.entry.object : '';
    const found = await store.read(name);
    await store.put(name, [found?.body ?? Buffer.alloc(0), await compressBody(Buffer.from('{}'))]);
    const request = { uid, reason: 'a case', asked_at: timeText(Date.now()) };
    await store.put(requestPath(uid), [Buffer.from(JSON.stringify(request))]);

    await archived(writer, heldPages(1, 6));

    expect((await loggedIn(store)).filter(({ entry }) => entry.t === 'erased')).toEqual([]);
    expect((await verified(store)).breaks).toMatchObject([{ object: name }]);
  });
});

test('a request that names other positions and times erases the pages proven to have the record', async () => {
  const { store, writer } = await anArchive();
  const request = {
    ...{ uid, sha256: '0'.repeat(64), reason: 'a case', asked_at: timeText(Date.now()) },
    pages: [
      { index: 7, body: { sha256: '1'.repeat(64), bytes: 1, segment: 'x', at: 0, length: 9 } },
    ],
    lake: [{ cut: 'lake/cuts/x', object: 'archive.json', uids: [uid], read: [0, 1] }],
  };
  await store.put(requestPath(uid), [Buffer.from(JSON.stringify(request))]);

  await archived(writer, heldPages(1, 6));

  const erased = (await loggedIn(store)).flatMap(({ entry }) =>
    entry.t === 'erased' ? [entry] : [],
  );
  expect(erased).toMatchObject([{ rest: 'proven', records: [{ place: 0 }] }]);
  expect(await store.read('archive.json')).not.toBeNull();
  expect(await verified(store)).toMatchObject({ breaks: [], erasures: [{ reason: 'a case' }] });
});

test('a hold keeps a page whatever times a request names', async () => {
  const { store, writer } = await anArchive();
  const hold = {
    ...{ id: 'case-1', from: '2000-01-01T00:00:00Z', to: null, reason: 'a case' },
    ...{ placed_at: timeText(Date.now()), released_at: null },
  };
  await store.put(holdPath('case-1') ?? '', [encodeHold(hold)]);
  await archived(writer, heldPages(1, 6));
  const request = {
    ...{ uid, reason: 'a case', asked_at: timeText(Date.now()), pages: [] },
    lake: [{ cut: '', object: 'x', uids: [uid], read: [0, 1] }],
  };
  await store.put(requestPath(uid), [Buffer.from(JSON.stringify(request))]);

  await archived(writer, heldPages(1, 9));

  expect((await loggedIn(store)).filter(({ entry }) => entry.t.includes('erased'))).toEqual([]);
  expect((await verified(store)).breaks).toEqual([]);
});

describe('a segment that is put back from before an erasure', () => {
  const [, second = '', , other = ''] = uidsOfPages(heldPages(2));
  const textsIn = async (store: ObjectStore, name: string) => {
    const bytes = Buffer.from((await store.read(name))?.body ?? []);
    const texts: string[] = [];
    const magic = Buffer.from('28b52ffd', 'hex');
    for (let at = bytes.indexOf(magic); at >= 0; at = bytes.indexOf(magic, at + 1)) {
      texts.push(zstdDecompressSync(bytes.subarray(at)).toString());
    }
    return texts.join();
  };

  test.each([
    ['of the same page', second],
    ['of another page of the segment', other],
  ])('has that record erased again with the next one: %s', async (_, next) => {
    const { store, writer } = await anArchive();
    const segment = (await loggedIn(store)).find(({ entry }) => entry.t === 'segment');
    const name = segment?.entry.t === 'segment' ? segment.entry.object : '';
    const before = (await store.read(name))?.body ?? Buffer.alloc(0);
    await requested(store, uid);
    await archived(writer, heldPages(1, 6));
    await store.put(name, [before]);
    await requested(store, next);

    await archived(writer, heldPages(1, 9));

    expect(before.length).toBeGreaterThan(0);
    const texts = await textsIn(store, name);
    expect(texts).not.toContain('"id":"0"');
    expect(texts).toContain('"id":"2"');
    expect((await verified(store)).breaks).toEqual([]);
  });
});

test('a record that a page has too often for one entry stays as a whole, also in other pages', async () => {
  const { store, writer } = await anArchive();
  const [first] = heldPages(1);
  const [record = ''] = /\{"id":"0"[^}]*\}/.exec(first?.body.toString() ?? '') ?? [];
  const body = Buffer.from(`{"data":[${Array(501).fill(record).join()}]}`);
  const often = { ...aPage({ ids: ['0'] }), body, kept: Uint32Array.of(0), first: 6, count: 1 };
  await archived(writer, [often]);
  await requested(store, uid);

  await archived(writer, heldPages(1, 9));

  const entries = await loggedIn(store);
  expect(entries.filter(({ entry }) => entry.t === 'erased')).toEqual([]);
  const { breaks, remarks } = await verified(store);
  expect([breaks, remarks.join().includes('not carried out')]).toEqual([[], false]);
});

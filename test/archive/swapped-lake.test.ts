// An object of the lake that is removed or replaced after an erasure has proven it, and before it is rewritten: the writer
// enters nothing about it, and erases nothing.

import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Authority } from '../../src/archive/authority.ts';
import { encodeRequest, requestPath } from '../../src/archive/erasure-request.ts';
import { withoutErased } from '../../src/archive/lake-erasing.ts';
import type { ArchiveLog } from '../../src/archive/log.ts';
import { loggedEntries, newestCheckpoint } from '../../src/archive/logged.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import type { ObjectContent, ObjectStore } from '../../src/objects/store.ts';
import { eraseEvents } from '../../src/parquet/index.ts';
import { timeText } from '../../src/tools/time-text.ts';
import { archived, aWriter, heldPages, uidsOfPages } from './a-writer.ts';
import { threePages } from './page-attacks.ts';

// The first and the seventh event are rows of one object.
const [uid = '', , , , , , another = ''] = uidsOfPages(heldPages(3));

type Swap = (found: ObjectContent) => Promise<ObjectContent | null>;

/** The store, but the second read of each object of the lake returns something else. */
function swapping(store: ObjectStore, swap: Swap): { store: ObjectStore; swapped: string[] } {
  const seen = new Set<string>();
  const swapped: string[] = [];
  const read: ObjectStore['read'] = async (name, range) => {
    const found = await store.read(name, range);
    if (found === null || !name.endsWith('.parquet')) return found;
    if (!seen.has(name)) {
      seen.add(name);
      return found;
    }
    swapped.push(name);
    return await swap(found);
  };
  const made = new Proxy(store, {
    get(of, name) {
      if (name === 'read') return read;
      const value: unknown = Reflect.get(of, name);
      return typeof value === 'function' ? value.bind(of) : value;
    },
  });
  return { store: made, swapped };
}

/** The kinds of entries after a request to erase a record. */
async function kindsAfter(swap: Swap) {
  const { store, swapped } = swapping(openDirectory(await threePages(true)), swap);
  const request = { uid, reason: 'a case', asked_at: timeText(Date.now()) };
  await store.put(requestPath(uid), [encodeRequest(request)]);
  const writer = await aWriter({ store });
  for (const page of heldPages(2, 9)) await archived(writer, [page]);
  await writer.close();
  const reader = new ArchiveReader(store);
  const { size } = await newestCheckpoint(reader);
  const all = await Array.fromAsync(loggedEntries(reader, size));
  return { kinds: all.map(({ entry }) => entry.t), swapped: swapped.length };
}

test('an object that is as it was proven is rewritten', async () => {
  const { kinds, swapped } = await kindsAfter(async (found) => found);

  expect(swapped).toBeGreaterThan(0);
  expect(kinds).toContain('lake_erased');
});

test.each<[string, Swap]>([
  ['removed', async () => null],
  [
    'replaced by one without another event',
    async (found) => {
      const { body } = await eraseEvents(found.body, [another]);
      return { ...found, body: body ?? new Uint8Array(0) };
    },
  ],
])('an object that is %s then is not entered, and nothing is erased', async (_, swap) => {
  const { kinds, swapped } = await kindsAfter(swap);

  expect(swapped).toBeGreaterThan(0);
  expect(kinds).not.toContain('lake_erased');
  expect(kinds).not.toContain('erased');
});

test.each([
  ['with rows that a hold keeps', '2026-01-01T00:00:00.000Z', /hold case-1/],
  ['outside the span of a hold', '2026-02-01T00:00:00.000Z', null],
])('an object %s', async (_, heldFrom, refusal) => {
  const store = openDirectory(await threePages(true));
  const names = (await Array.fromAsync(store.list('lake/'))).map(({ name }) => name);
  const object = names.find((name) => name.endsWith('.parquet')) ?? '';
  const bytes = (await store.read(object))?.body ?? new Uint8Array(0);
  const [first, last] = ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'].map(Date.parse);
  const holds = { 'case-1': { from: heldFrom, to: null, released_at: null } };
  const log = { heads: { holds } } as unknown as ArchiveLog;
  const copy = { object, sha256: hash('sha256', bytes), uids: [uid] };

  const planned = withoutErased([{ ...copy, read: { first: first ?? 0, last: last ?? 0 } }], {
    ...{ reason: 'a case', authority: { by: 'key' } as unknown as Authority },
    ...{ store, log, now: Date.now() },
  });

  if (refusal === null) expect((await planned).lake).toHaveLength(1);
  else await expect(planned).rejects.toThrow(refusal);
});

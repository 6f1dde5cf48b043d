// Small objects of an archive's store that another user has replaced by a gigabyte of zeros: archiving continues, and
// no more is read than the longest valid object has.

import { mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { requestPath } from '../../src/archive/erasure-request.ts';
import { writerPath } from '../../src/archive/layout.ts';
import { encodeWish, prunePath } from '../../src/archive/retention.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aWriter, heldPages, readArchive } from './a-writer.ts';

const gib = 2 ** 30;

function sparse(path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, '');
  truncateSync(path, gib);
}

/** The store, and the longest body that was read from it. */
function measured(store: ObjectStore) {
  const most = { bytes: 0 };
  const read: ObjectStore['read'] = async (name, range) => {
    const found = await store.read(name, range);
    most.bytes = Math.max(most.bytes, found?.body.length ?? 0);
    return found;
  };
  return { most, store: { ...store, read } };
}

test.each([prunePath, requestPath('a'.repeat(64)), writerPath])(
  'a sparse gigabyte as %s stops nothing',
  async (name) => {
    const location = join(tempDir(), 'archive');
    const { store, most } = measured(openDirectory(location));
    const state = { mark: null };
    const first = await aWriter({ store, state });
    await archived(first, heldPages(2));
    await first.close();
    sparse(join(location, name));

    const writer = await aWriter({ store, state });
    await archived(writer, heldPages(2, 6));
    await writer.close();

    expect((await readArchive(store)).entries.filter(({ t }) => t === 'page')).toHaveLength(4);
    expect(most.bytes).toBeLessThanOrEqual(17 * 1024 * 1024);
  },
);

test('a sparse gigabyte as the checkpoint is damage, and is not read whole', async () => {
  const location = join(tempDir(), 'archive');
  const { store, most } = measured(openDirectory(location));
  const state = { mark: null };
  const first = await aWriter({ store, state });
  await archived(first, heldPages(2));
  await first.close();
  sparse(join(location, 'checkpoint'));

  await expect(aWriter({ store, state })).rejects.toThrow(/checkpoint|note|signed/);
  expect(most.bytes).toBeLessThanOrEqual(17 * 1024 * 1024);
});

test('a damaged request to prune keeps no old body that is due by the config', async () => {
  const location = join(tempDir(), 'archive');
  const store = openDirectory(location);
  const dayMs = 86_400_000;
  let at = Date.now() - 40 * dayMs;
  const writer = await aWriter({ store, now: () => at, bodiesMs: 10 * dayMs });
  const old = heldPages(2).map((page) => ({
    ...page,
    context: { ...page.context, fetchedAt: at },
  }));
  await archived(writer, old);
  writeFileSync(join(location, prunePath), encodeWish(0, 0).subarray(0, 10));

  at = Date.now();
  await archived(writer, heldPages(1, 6));

  const left: string[] = [];
  for await (const { name } of store.list('segments/')) left.push(name);
  expect(left).toHaveLength(1);
});

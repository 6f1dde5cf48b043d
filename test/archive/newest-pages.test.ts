// The pages that a comparison with upstream reads back: only those of the tree that the state has signed last.

import { expect, test } from 'vitest';
import { newestPages, signedReader } from '../../src/archive/newest-pages.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { writableStore } from '../support/archive/memory-store.ts';
import { archived, aWriter, heldPages, type State, uidsOfPages } from './a-writer.ts';

const read = async (store: ObjectStore, { mark }: State) => {
  const reader = signedReader(store, mark);
  return reader === null ? null : await Array.fromAsync(newestPages(reader, () => true));
};

async function anArchive() {
  const store = writableStore();
  const state: State = { mark: null };
  const writer = await aWriter({ store, state });
  await archived(writer, heldPages(2));
  return { store, state, writer };
}

test('a state that has signed nothing has nothing to compare', async () => {
  const { store } = await anArchive();

  expect(await read(store, { mark: null })).toBeNull();
});

test('an older checkpoint that is put back hides no page', async () => {
  const { store, state, writer } = await anArchive();
  const older = (await store.read('checkpoint'))?.body ?? Buffer.alloc(0);
  await archived(writer, heldPages(2, 6));
  await store.put('checkpoint', [older]);

  const pages = (await read(store, state)) ?? [];

  expect(uidsOfPages(pages)).toEqual(uidsOfPages(heldPages(4)));
});

test('an entry that was changed, and its tile with it, is an error', async () => {
  const { store, state } = await anArchive();
  const [bundle = ''] = await Array.fromAsync(store.list('tile/entries/'), ({ name }) => name);
  const bytes = Buffer.from((await store.read(bundle))?.body ?? []).toString('latin1');
  await store.put(bundle, [Buffer.from(bytes.replace('"kept":3', '"kept":2'), 'latin1')]);

  await expect(read(store, state)).rejects.toThrow('is not that of the signed tree');
});

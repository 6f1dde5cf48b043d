// Writing an archive: added pages are in it once and in order, whichever step a process is killed at, and another
// state's archive is not touched.

import { randomBytes } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { cp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { leafHash } from '../../src/archive/merkle.ts';
import { decodeBundle, encodeBundle } from '../../src/archive/tiles.ts';
import { ExportError } from '../../src/contracts/errors.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { writableStore } from '../support/archive/memory-store.ts';
import { tempDir } from '../support/temp.ts';
import {
  archived,
  aSigner,
  aWriter,
  heldPages,
  type Kill,
  Killed,
  mortal,
  readArchive,
  type State,
  uidsOfPages,
} from './a-writer.ts';

describe('an archive', () => {
  test('has all added pages, over several checkpoints and processes', async () => {
    const dir = tempDir();
    const state: State = { mark: null };
    const pages = heldPages(700);

    for (const [from, to] of [
      [0, 1],
      [1, 300],
      [300, 301],
      [301, 700],
    ] as const) {
      const writer = await aWriter({ store: openDirectory(dir), state });
      const middle = (from + to) >> 1;
      await archived(writer, pages.slice(from, middle));
      await archived(writer, pages.slice(middle, to));
      expect(writer.place).toEqual({ spool: 'spool-1', epoch: 1, next: to * 3 });
      await writer.close();
    }

    const read = await readArchive(dir);
    const kinds = Map.groupBy(read.entries, ({ t }) => t);
    expect(read.uids).toEqual(uidsOfPages(pages));
    expect(kinds.get('start')).toHaveLength(4);
    expect(kinds.get('stop')).toHaveLength(4);
    // Each but the last is reported by an entry.
    expect(kinds.get('checkpoint')?.length).toBeGreaterThan(7);
  });

  test('chains each stream by itself', async () => {
    const dir = tempDir();
    const writer = await aWriter({ store: openDirectory(dir) });

    await archived(writer, heldPages(2, 0, 'a'));
    await archived(writer, [...heldPages(1, 6, 'b'), ...heldPages(1, 9, 'a')]);
    await writer.close();

    const { entries } = await readArchive(dir);
    const chain = entries.flatMap((one) => (one.t === 'page' ? [[one.stream, one.seq]] : []));
    expect(chain).toEqual([
      ['a', 0],
      ['a', 1],
      ['b', 0],
      ['a', 2],
    ]);
  });

  test('is not touched by a process that adds nothing', async () => {
    const dir = tempDir();
    const state: State = { mark: null };
    const writer = await aWriter({ store: openDirectory(dir), state });
    await archived(writer, heldPages(1));
    await writer.close();
    const before = await readArchive(dir);

    await (await aWriter({ store: openDirectory(dir), state })).close();

    expect(await readArchive(dir)).toEqual(before);
  });

  test('resolves an addition only with a checkpoint that covers it', async () => {
    const dir = tempDir();
    const writer = await aWriter({ store: openDirectory(dir), checkpointEveryMs: 50 });

    await writer.add(heldPages(1));

    expect((await readArchive(dir)).uids).toHaveLength(3);
    await writer.close();
  });
});

test('an archive frees pages once it has read them, before their checkpoint', async () => {
  const dir = tempDir();
  const writer = await aWriter({ store: openDirectory(dir) });
  const [small, ...others] = heldPages(8);
  // Random text takes long to compress, and the small page is through before.
  const large = others.map((page) => {
    const records = Array.from({ length: 3 }, () => ({
      id: randomBytes(700_000).toString('base64'),
    }));
    return { ...page, body: Buffer.from(JSON.stringify({ data: records })) };
  });
  const pages = [small as HeldPage, ...large];
  const copies = pages.map((page) => ({ ...page, body: Buffer.from(page.body) }));

  const freed = Promise.withResolvers<void>();
  const added = writer.add(copies, () => {
    // As another use of the memory may.
    for (const { body } of copies) body.fill(0);
    freed.resolve();
  });
  await freed.promise;
  await Promise.all([writer.close(), added]);

  // Which verifies the bodies too.
  expect((await readArchive(dir)).uids).toEqual(uidsOfPages(pages));
});

/** Runs a process that adds pages from the archive's position on, a few at a time; rejects when killed. */
async function run(store: ObjectStore, state: State, pages: ReturnType<typeof heldPages>) {
  const writer = await aWriter({ store, state });
  for (;;) {
    const from = (writer.place?.next ?? 0) / 3;
    if (from >= pages.length) break;
    await archived(writer, pages.slice(from, from + 135));
  }
  await writer.close();
}

/** Each root that was ever signed, by its size; two of one size are a false archive. */
async function signedRoots(store: ObjectStore, roots: Map<string, string>): Promise<void> {
  for await (const { name } of store.list('checkpoint')) {
    const note = (await store.read(name))?.body ?? '';
    const [, size = '', root = ''] = Buffer.from(note).toString('utf8').split('\n');
    expect(roots.get(size) ?? root, `the root of size ${size}`).toBe(root);
    roots.set(size, root);
  }
}

describe('killed at a change of the store', () => {
  const pages = heldPages(270);

  test.each(['before', 'after'] as const)(
    '%s it is done, nothing is lost or twice',
    async (when) => {
      let at = 1;
      for (let isKilled = true; isKilled; at += 1) {
        const store = writableStore();
        const state: State = { mark: null };
        const roots = new Map<string, string>();
        const kill: Kill = { left: at, when, isDead: false };
        const ended = await run(mortal(store, kill), state, pages).catch((error: unknown) => error);
        isKilled = ended instanceof Killed;
        expect(isKilled || ended === undefined, `${ended}`).toBe(true);
        await signedRoots(store, roots);

        await run(store, state, pages);

        await signedRoots(store, roots);
        expect((await readArchive(store)).uids, `killed at ${at}`).toEqual(uidsOfPages(pages));
      }
      expect(at).toBeGreaterThan(20);
    },
  );

  test('again and again, with the state lost now and then', async () => {
    const store = writableStore();
    const roots = new Map<string, string>();
    let state: State = { mark: null };
    for (let kills = 1; kills <= 60; kills += 1) {
      const kill: Kill = { left: 1 + ((kills * 7) % 23), when: 'after', isDead: false };
      await run(mortal(store, kill), state, pages.slice(0, kills * 4)).catch((error: unknown) =>
        expect(error).toBeInstanceOf(Killed),
      );
      await signedRoots(store, roots);
      if (kills % 10 === 0) state = { mark: null };
    }

    await run(store, state, pages);

    await signedRoots(store, roots);
    expect((await readArchive(store)).uids).toEqual(uidsOfPages(pages));
  });

  test('a tree that was about to be signed is the one that is signed', async () => {
    const dir = tempDir();
    const state: State = { mark: null };
    const store = openDirectory(dir);
    const kill: Kill = { left: Number.POSITIVE_INFINITY, when: 'before', isDead: false };
    const writer = await aWriter({
      store: mortal(store, kill),
      remember: async (mark) => {
        state.mark = mark;
        kill.left = 1; // the next change is the checkpoint
      },
    });
    await expect(archived(writer, pages.slice(0, 5))).rejects.toThrow(Killed);
    expect(await store.read('checkpoint')).toBeNull();

    const next = await aWriter({ store, state });

    expect(next.place?.next).toBe(15);
    expect(await readArchive(dir)).toMatchObject({ root: (state.mark as { root: string }).root });
  });

  test('entries that change before their checkpoint are not signed', async () => {
    const dir = tempDir();
    const state: State = { mark: null };
    const store = openDirectory(dir);
    const kill: Kill = { left: Number.POSITIVE_INFINITY, when: 'before', isDead: false };
    const writer = await aWriter({
      store: mortal(store, kill),
      remember: async (mark) => {
        state.mark = mark;
        kill.left = 1; // the next change is the checkpoint
      },
    });
    await expect(archived(writer, heldPages(5))).rejects.toThrow(Killed);
    const { size } = state.mark as unknown as { readonly size: number };
    const [bundle, hashes] = ['entries', '0'].map((kind) =>
      join(dir, `tile/${kind}/000.p/${size}`),
    );
    const entries = [...decodeBundle(await readFile(bundle ?? ''), size)].map(String);
    const page = entries.findLastIndex((entry) => entry.includes('"t":"page"'));
    const forged = entries.with(
      page,
      (entries[page] ?? '').replace(/"total":\d+|"count":\d+/, '"count":9'),
    );
    expect(forged).not.toEqual(entries);
    const changed = forged.map((entry) => Buffer.from(entry));
    await writeFile(bundle ?? '', encodeBundle(changed));
    await writeFile(hashes ?? '', Buffer.concat(changed.map((entry) => leafHash(entry))));

    await expect(aWriter({ store, state })).rejects.toMatchObject({
      message: expect.stringMatching(/do not lead to the signed root/),
    });
    expect(await store.read('checkpoint')).toBeNull();
  });
});

describe('a failure', () => {
  test('reaches every waiting caller, and nothing more is accepted', async () => {
    const store = openDirectory(tempDir());
    const full = new ExportError('disk_full', 'writing: no space', { next: 'Free some.' });
    const writer = await aWriter({
      store: { ...store, create: async () => Promise.reject(full) },
    }).catch((error: unknown) => error);
    expect(writer).toBe(full);

    const broken = await aWriter({
      store,
      remember: () => Promise.reject(full),
    });

    await expect(archived(broken, heldPages(2))).rejects.toBe(full);
    await expect(broken.add(heldPages(1))).rejects.toBe(full);
    await expect(broken.close()).rejects.toBe(full);
    await broken.ready();
  });
});

describe('room', () => {
  test('is bounded, and comes with a checkpoint', async () => {
    const dir = tempDir();
    const writer = await aWriter({ store: openDirectory(dir) });
    const [page] = heldPages(1);
    if (page === undefined) throw new Error('no page');
    // Random text, which does not become small.
    const noise = () => randomBytes(3_000_000).toString('base64');
    const large = Array.from({ length: 10 }, () => ({
      ...page,
      body: Buffer.from(JSON.stringify({ data: [{ id: noise() }] })),
      uids: Buffer.alloc(32),
    }));

    const added = writer.add(large);
    const isFull = await Promise.race([writer.ready(), 'full']);
    await writer.ready();
    await added;

    expect(isFull).toBe('full');
    await expect(writer.close()).resolves.toBeUndefined();
  });
});

describe('an archive is refused before anything is written', () => {
  async function anArchive() {
    const dir = tempDir();
    const state: State = { mark: null };
    const writer = await aWriter({ store: openDirectory(dir), state });
    await archived(writer, heldPages(300));
    await writer.close();
    return { dir, state };
  }
  const refusal = (text: RegExp, next: string) => ({
    code: 'sink_refused',
    message: expect.stringMatching(text),
    next: expect.stringContaining(next),
  });
  async function openingIsRefused(
    { dir, state }: { readonly dir: string; readonly state?: State },
    text: RegExp,
    { signer = aSigner(), next = 'archive verify' } = {},
  ) {
    const names = async () => {
      const found: string[] = [];
      for await (const { name } of openDirectory(dir).list('')) found.push(name);
      return found;
    };
    const before = await names();
    const store = openDirectory(dir);
    await expect(aWriter({ store, signer, ...(state && { state }) })).rejects.toMatchObject(
      refusal(text, next),
    );
    expect(await names()).toEqual(before);
  }

  test('where another key has signed it', async () => {
    const other = { signer: aSigner('archive.test', 2), next: 'Give the key that signs' };
    await openingIsRefused(await anArchive(), /no known key/, other);
  });

  test('where it has another name', async () => {
    await openingIsRefused(
      await anArchive(),
      /archive archive\.test, and the signing key is one of other\.test/,
      { signer: aSigner('other.test'), next: 'Give the key that signs' },
    );
  });

  test('if another archive has replaced the one that this state has written', async () => {
    const { dir, state } = await anArchive();
    const other = await anArchive();
    await rm(dir, { recursive: true });
    await rename(other.dir, dir);

    await openingIsRefused({ dir, state }, /another archive than the one that this state/);
    await expect(aWriter({ store: openDirectory(dir) })).resolves.toBeDefined();
  });

  test('where it is of a newer format', async () => {
    const { dir } = await anArchive();
    const path = join(dir, 'archive.json');
    await writeFile(path, (await readFile(path, 'utf8')).replace('"version": 1', '"version": 2'));

    await openingIsRefused({ dir }, /format 2/, { next: 'Run the version of sluice' });
  });

  test.each([
    ['gone', null],
    ['an older one', 'a copy'],
  ])(
    'where its newest checkpoint is %s, and this state has not written there',
    async (_, older) => {
      const { dir } = await anArchive();
      const [path, copy] = [join(dir, 'checkpoint'), join(tempDir(), 'checkpoint')];
      await cp(path, copy);
      const writer = await aWriter({ store: openDirectory(dir) });
      await archived(writer, heldPages(2, 900));
      await writer.close();
      const whole = await readFile(path);
      rmSync(path);
      if (older !== null) await cp(copy, path);
      const size = whole.toString('utf8').split('\n')[1] ?? '';
      const names = readdirSync(join(dir, 'checkpoints'), { recursive: true }).map(String);
      const kept = names.find((name) => name.endsWith(`/${size.padStart(20, '0')}.note`));

      const next = `Copy checkpoints/${kept} to checkpoint`;
      await openingIsRefused({ dir }, new RegExp(`and ${size} were signed`), { next });
      await cp(join(dir, 'checkpoints', `${kept}`), path);
      await expect(aWriter({ store: openDirectory(dir) })).resolves.toBeDefined();
    },
  );

  test('where a log stands that is none of sluice', async () => {
    const { dir } = await anArchive();
    rmSync(join(dir, 'archive.json'));

    await openingIsRefused({ dir }, /none of sluice/);
    rmSync(join(dir, 'checkpoint'));
    await openingIsRefused({ dir }, /were signed/, { next: 'Copy checkpoints/' });
  });

  test('if everything that this state has written is gone', async () => {
    const { dir, state } = await anArchive();
    rmSync(dir, { recursive: true });

    await openingIsRefused({ dir, state }, /it is gone/);
  });

  test('if an older copy was restored', async () => {
    const { dir, state } = await anArchive();
    const copy = tempDir();
    await cp(dir, copy, { recursive: true });
    const writer = await aWriter({ store: openDirectory(dir), state });
    await archived(writer, heldPages(2, 900));
    await writer.close();
    rmSync(dir, { recursive: true });
    await cp(copy, dir, { recursive: true });

    await openingIsRefused({ dir, state }, /is missing|older copy/);
  });

  test('if another state has resumed from an older copy, and has signed more', async () => {
    const { dir, state } = await anArchive();
    const copy = tempDir();
    await cp(dir, copy, { recursive: true });
    const writer = await aWriter({ store: openDirectory(dir), state });
    await archived(writer, heldPages(2, 900));
    await writer.close();
    rmSync(dir, { recursive: true });
    await cp(copy, dir, { recursive: true });
    const other = await aWriter({ store: openDirectory(dir), spool: 'spool-2' });
    await archived(other, heldPages(9, 0));
    await other.close();

    await openingIsRefused({ dir, state }, /does not begin with the log signed at size/);
  });

  test('if another process with an older state has signed another tree of the same size', async () => {
    const { dir, state } = await anArchive();
    const [copy, before] = [tempDir(), { ...state }];
    await cp(dir, copy, { recursive: true });
    const writer = await aWriter({ store: openDirectory(dir), state });
    await archived(writer, heldPages(2, 900));
    await writer.close();
    rmSync(dir, { recursive: true });
    await cp(copy, dir, { recursive: true });
    const other = await aWriter({ store: openDirectory(dir), state: before });
    await archived(other, heldPages(2, 900, 'other'));
    await other.close();
    expect(before.mark).toMatchObject({ size: (state.mark as unknown as { size: number }).size });

    await openingIsRefused({ dir, state }, /differs from the signed one/);
  });

  test.each(['tile/0/001.p/48', 'tile/entries/001.p/48', 'tile/1/000.p/1'])(
    'where %s is missing or another',
    async (name) => {
      const { dir } = await anArchive();
      const path = join(dir, name);
      const bytes = await readFile(path);
      bytes[5] = (bytes[5] ?? 0) ^ 1;

      await writeFile(path, bytes);
      await openingIsRefused({ dir }, /not those of its checkpoint|not the entries of its tile/);
      rmSync(path);
      await openingIsRefused({ dir }, /is missing/);
    },
  );
});

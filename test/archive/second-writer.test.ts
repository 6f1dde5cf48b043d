// Two processes that write to one archive, in a directory and in a bucket: one of them stops, and what the other has signed
// stays true.

import { beforeAll, describe, expect, test } from 'vitest';
import { Claim } from '../../src/archive/claim.ts';
import { ExportError } from '../../src/contracts/errors.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { s3BuildMsMax, sharedS3 } from '../support/s3.ts';
import { s3ServerName } from '../support/s3-program.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aWriter, heldPages, readArchive, type State, uidsOfPages } from './a-writer.ts';

const places: readonly (readonly [name: string, aStore: () => Promise<ObjectStore>])[] = [
  ['a directory', async () => openDirectory(tempDir())],
  [`a bucket of ${await s3ServerName()}`, async () => await (await sharedS3()).store()],
];

beforeAll(async () => void (await sharedS3()), s3BuildMsMax);

/** The store, in which objects are replaced in another way. */
function replacing(store: ObjectStore, replace: ObjectStore['replace']): ObjectStore {
  return new Proxy(store, {
    get(target, key: keyof ObjectStore) {
      if (key === 'replace') return replace;
      const found = target[key];
      return typeof found === 'function' ? found.bind(target) : found;
    },
  });
}

describe.each(places)('a second writer to %s', (_, aStore) => {
  test('of another state is refused while the first renews its claim', async () => {
    const store = await aStore();
    const first = await aWriter({ store });
    await archived(first, heldPages(1));

    const second = aWriter({ store, spool: 'spool-2' });

    await expect(second).rejects.toMatchObject({
      code: 'sink_unreachable',
      message: expect.stringContaining('another process writes to it'),
    });
  });

  test('of another state may resume after the first has ended', async () => {
    const store = await aStore();
    const first = await aWriter({ store });
    await archived(first, heldPages(1));
    await first.close();

    const second = await aWriter({ store, spool: 'spool-2' });
    expect(second.place).toEqual({ spool: 'spool-1', epoch: 1, next: 3 });
    await archived(second, heldPages(1, 3));

    expect(second.place).toEqual({ spool: 'spool-2', epoch: 1, next: 6 });
    expect((await readArchive(store)).uids).toHaveLength(6);
  });

  test('of the same state takes over at once, and the first stops', async () => {
    const store = await aStore();
    const state: State = { mark: null };
    const first = await aWriter({ store, state });
    await archived(first, heldPages(2));
    const second = await aWriter({ store, state });

    await expect(archived(first, heldPages(1, 6))).rejects.toMatchObject({
      code: 'sink_refused',
      message: expect.stringContaining('another process writes to it as well'),
    });
    await archived(second, heldPages(3, 6));
    await expect(archived(first, heldPages(1, 6))).rejects.toThrow(ExportError);

    expect((await readArchive(store)).uids).toEqual(uidsOfPages(heldPages(5)));
  });

  test('from whom another has taken over signs no more, however late its checkpoint arrives', async () => {
    const store = await aStore();
    const state: State = { mark: null };
    await archived(await aWriter({ store, state }), heldPages(2));
    const onItsWay = Promise.withResolvers<() => Promise<unknown>>();
    let isSlow = false;
    const slow = replacing(store, (name, ...by) =>
      isSlow && name === 'checkpoint'
        ? new Promise(() => onItsWay.resolve(() => store.replace(name, ...by)))
        : store.replace(name, ...by),
    );
    const first = await aWriter({ store: slow, state: { ...state } });
    isSlow = true;
    void archived(first, heldPages(1, 6));
    const arrive = await onItsWay.promise;
    let isLate = false;
    const overtaken = replacing(store, async (name, ...by) => {
      if (isLate && name === 'checkpoint') await arrive();
      return await store.replace(name, ...by);
    });
    const second = await aWriter({ store: overtaken, state });
    isLate = true;
    await archived(second, heldPages(3, 6));

    expect((await readArchive(store)).uids).toEqual(uidsOfPages(heldPages(5)));
  });

  test('of a copy of the state, which began first, is refused while the other renews its claim', async () => {
    const store = await aStore();
    const state: State = { mark: null };
    const first = await aWriter({ store, state, epoch: 5 });
    await archived(first, heldPages(2));
    const copy = { ...state };
    const second = await aWriter({ store, state: copy, epoch: 7 });
    await archived(second, heldPages(1, 6));

    const back = aWriter({ store, state, epoch: 5 });

    await expect(back).rejects.toMatchObject({
      code: 'sink_unreachable',
      message: expect.stringContaining('another process writes to it'),
    });
    await archived(second, heldPages(1, 9));
    expect((await readArchive(store)).uids).toEqual(uidsOfPages(heldPages(4)));
  });

  test('that writes an identical claim at the same moment is recognised', async () => {
    const store = await aStore();
    const clock = { ...systemClock(), now: () => Date.UTC(2026, 10, 22) };
    const claimant = { store, clock, spool: 'spool-1', epoch: 1, staleMs: 30_000 };
    const first = await Claim.take(claimant);
    const second = await Claim.take(claimant);

    await expect(first.renew()).rejects.toMatchObject({ code: 'sink_refused' });
    await expect(second.renew()).resolves.toBeUndefined();
  });
});

// A state directory that is moved away, replaced or deleted while a spool uses it.

import { cpSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Rebuilding } from '../../src/hold/rebuild.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { anAppend } from '../support/a-page.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

async function aSpool() {
  const dir = join(tempDir(), 'state');
  const spool = await openSpool({ dir, sync: 'full', keepMs: 0, bytesMax: 1e9, sinks: ['a'] });
  let last = 0;
  /** The code of a refused page; null: it was stored. */
  const append = async () => {
    last += 1;
    const stored = spool.append(anAppend({ ids: [String(last)] }));
    return await stored.then(
      () => null,
      ({ code, message }) => `${code}: ${message}`,
    );
  };
  const until = (isRefused: boolean) =>
    waitUntil(async () => ((await append()) !== null) === isRefused, { what: 'the directory' });
  return { dir, spool, append, until };
}

test('a directory that was moved away refuses pages and still delivers, until it is put back', async () => {
  const { dir, spool, append, until } = await aSpool();
  await append();

  renameSync(dir, `${dir}-moved`);
  await until(true);
  const refused = await append();
  await spool.acknowledge('a', { position: 1 });
  const held = await spool.read(0, 1e9);
  renameSync(`${dir}-moved`, dir);
  await until(false);
  await spool.close();

  expect(refused).toMatch(/^state_unwritable: .*deleted, moved or replaced/);
  expect(held.length).toBeGreaterThan(0);
});

test.each(['replaced by a copy', 'deleted'])(
  'a directory that was %s refuses pages',
  async (how) => {
    const { dir, spool, append, until } = await aSpool();
    await append();

    if (how === 'deleted') rmSync(dir, { recursive: true });
    else {
      cpSync(dir, `${dir}-copy`, { recursive: true });
      renameSync(dir, `${dir}-moved`);
      renameSync(`${dir}-copy`, dir);
    }
    await until(true);

    expect(await append()).toMatch(/^state_unwritable/);
    await spool.close();
  },
);

test('the cache of a log that was deleted refuses everything, and the next start builds another one', async () => {
  const dir = join(tempDir(), 'cache');
  const log = { commit: async () => undefined, forgetBefore: () => undefined };
  const open = () => {
    new Rebuilding(dir).finish({ isCache: true });
    return openSpool({ dir, sync: 'none', keepMs: 0, bytesMax: 1e9, sinks: ['a'], log });
  };
  const spool = await open();
  const failure = () => spool.requests().catch((error: unknown) => error);
  await spool.append(anAppend({ ids: ['1'] }));

  rmSync(dir, { recursive: true });
  await waitUntil(async () => (await failure()) instanceof Error, { what: 'the deleted cache' });
  const refused = await failure();
  await spool.close().catch(() => undefined);
  const next = await open();
  await next.append(anAppend({ ids: ['2'] }));
  await next.close();

  expect(refused).toMatchObject({
    code: 'state_unwritable',
    message: expect.stringContaining('using the cache of the state'),
  });
});

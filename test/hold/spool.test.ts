// The spool as its stages use it: real files, real worker thread, a real SIGKILL.

import { spawn } from 'node:child_process';
import { chmodSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import { identityBytes } from '../../src/contracts/spool.ts';
import { findDamage } from '../../src/hold/damage.ts';
import { readDelivered } from '../../src/hold/delivered.ts';
import { openSpool, type SpoolSettings } from '../../src/hold/spool.ts';
import { anAppend, aPage } from '../support/a-page.ts';
import { tempDir, waitUntil } from '../support/temp.ts';
import { copied } from './accounts.ts';

const writer = new URL('./spool-writer.ts', import.meta.url).pathname;

function settings(dir: string, more: Partial<SpoolSettings> = {}): SpoolSettings {
  return { dir, sync: 'full', keepMs: 0, sinks: ['a', 'b'], bytesMax: 1e9, eager: true, ...more };
}

test('spool returns after reopening the pages that append had resolved', async () => {
  const dir = tempDir();
  const before = await openSpool(settings(dir));
  await before.append({
    ...anAppend({ ids: ['1', '2'] }),
    identities: new Uint8Array(2 * identityBytes).fill(7),
  });
  await before.append(anAppend({ ids: ['3'] }));
  await before.close();

  const after = await openSpool(settings(dir));
  const pages = await after.read(0, 1e6);
  const memory = await after.recall('audit');
  await after.close();

  expect(pages.map(({ first, count }) => [first, count])).toEqual([
    [0, 2],
    [2, 1],
  ]);
  expect(Buffer.from(pages[0]?.body ?? []).toString()).toContain('"id":"1"');
  expect(pages[1]?.uids).toEqual(new Uint8Array(aPage({ ids: ['3'] }).uids));
  expect(memory.checkpoint).toEqual({ last: '3' });
  expect(memory.identities.map(({ bytes }) => bytes.length)).toEqual([2 * identityBytes]);
});

test('spool deletes a page only when every sink of the config has passed it', async () => {
  const spool = await openSpool(settings(tempDir()));
  await spool.append(anAppend({ ids: ['1', '2'] }));
  await spool.append(anAppend({ ids: ['3'] }));

  await spool.acknowledge('a', { position: 3 });
  const afterOne = spool.gauge.oldest;
  await spool.acknowledge('b', { position: 1 });
  const withinPage = spool.gauge.oldest;
  await spool.acknowledge('b', { position: 2 });
  const afterBoth = spool.gauge.oldest;
  await spool.close();

  expect([afterOne, withinPage, afterBoth]).toEqual([0, 0, 2]);
});

test('spool keeps a position from going back, and its mark with it', async () => {
  const spool = await openSpool(settings(tempDir()));
  await spool.append(anAppend({ ids: ['1', '2', '3'] }));

  await spool.acknowledge('a', { position: 3, mark: { bytes: 9 } });
  await spool.acknowledge('a', { position: 1 });
  const progress = await spool.progress('a');
  await spool.close();

  expect(progress).toEqual({ position: 3, mark: { bytes: 9 } });
});

test('spool knows after a kill the position that a sink had reached, though no commit came', async () => {
  const dir = tempDir();
  const spool = await openSpool(settings(dir, { eager: false }));
  await spool.append(anAppend({ ids: ['1', '2', '3', '4'] }));
  spool.reached('a', 3);
  const killed = copied(dir);
  await spool.close();

  const after = await openSpool(settings(killed));
  const progress = [await after.progress('a'), await after.progress('b')];
  after.reached('b', 2);
  const killedAgain = copied(killed);
  await after.close();
  const last = await openSpool(settings(killedAgain));
  const lastProgress = [await last.progress('a'), await last.progress('b')];
  await last.close();

  expect(progress.map(({ position }) => position)).toEqual([3, 0]);
  expect(lastProgress.map(({ position }) => position)).toEqual([3, 2]);
});

test('spool makes polling wait above its cap and lets polling resume once sinks have passed', async () => {
  const spool = await openSpool(settings(tempDir(), { bytesMax: 2_000, sinks: ['a'] }));
  const signal = new AbortController().signal;
  await spool.append(anAppend({ ids: ['1'], pad: 3_000 }));
  let free = false;
  const waiting = spool.room(signal).then(() => {
    free = true;
  });

  const whileFull = free;
  await spool.acknowledge('a', { position: 1 });
  await waiting;
  await spool.close();

  expect([whileFull, free]).toEqual([false, true]);
});

test('spool refuses a second process on its directory and names the first', async () => {
  const dir = tempDir();
  const spool = await openSpool(settings(dir));

  const second = openSpool(settings(dir));

  await expect(second).rejects.toThrow(`process ${process.pid}`);
  await expect(second).rejects.toMatchObject({ code: 'state_locked' });
  await spool.close();
  await (await openSpool(settings(dir))).close();
});

test('spool says that a file which is no database is damaged, and leaves it as it is', async () => {
  const dir = tempDir();
  const { writeFileSync, readFileSync } = await import('node:fs');
  const garbage = Buffer.alloc(40_000, 'not a database ');
  writeFileSync(join(dir, 'sluice.db'), garbage);

  const opening = openSpool(settings(dir));

  await expect(opening).rejects.toBeInstanceOf(ExportError);
  await expect(opening).rejects.toMatchObject({ code: 'state_damaged' });
  expect(readFileSync(join(dir, 'sluice.db')).equals(garbage)).toBe(true);
});

test.each([0o000, 0o022, 0o777])(
  'spool allows no other user into its directory, with a umask of %o',
  async (mask) => {
    const dir = join(tempDir(), 'state');
    const before = process.umask(mask);
    try {
      const spool = await openSpool(settings(dir));
      await spool.append(anAppend({ ids: ['1'] }));
      const modes = new Map(
        readdirSync(dir).map((name) => [name, statSync(join(dir, name)).mode & 0o777]),
      );
      await spool.close();

      expect([...modes.keys()]).toEqual(
        expect.arrayContaining(['delivered.json', 'lock.db', 'owner.json', 'reserve', 'sluice.db']),
      );
      expect(new Set(modes.values())).toEqual(new Set([0o600]));
      expect(statSync(dir).mode & 0o777).toBe(0o700);
    } finally {
      process.umask(before);
    }
  },
);

test('spool closes files to others that were restored open to them', async () => {
  const dir = tempDir();
  await (await openSpool(settings(dir))).close();
  for (const name of readdirSync(dir)) chmodSync(join(dir, name), 0o644);

  await (await openSpool(settings(dir))).close();

  const open = readdirSync(dir).filter((name) => statSync(join(dir, name)).mode & 0o077);
  // What it holds is a text of our own.
  expect(open).toEqual(['reserve']);
});

test('spool loses nothing that append had resolved when its process is killed', async () => {
  const dir = tempDir();
  for (let round = 0; round < 3; round += 1) {
    const child = spawn(process.execPath, [writer, dir], { stdio: ['ignore', 'pipe', 'inherit'] });
    let reported = '';
    child.stdout.on('data', (chunk: Buffer) => {
      reported += chunk.toString();
    });
    const appends = 2 + Math.floor(Math.random() * 40);
    await waitUntil(() => reported.split('\n').length > appends, { what: `${appends} appends` });
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('close', resolve));
    const acknowledged = Number(reported.trimEnd().split('\n').at(-1));

    const damage = findDamage(join(dir, 'sluice.db'), readDelivered(dir));
    const spool = await openSpool(settings(dir, { sinks: ['a'] }));
    const { end } = spool.gauge;
    const { position } = await spool.progress('a');
    const pages = await spool.read(position, 1e9);
    const { checkpoint } = await spool.recall('audit');
    await spool.close();

    expect(damage).toBeNull();
    expect(end).toBeGreaterThanOrEqual(acknowledged);
    expect([end - 2, end - 3]).toContain(position);
    expect(pages.map(({ first }) => first)).toEqual(
      Array.from({ length: end - position }, (_, i) => position + i),
    );
    expect(pages.map(({ body }) => JSON.parse(Buffer.from(body).toString()).data[0].id)).toEqual(
      pages.map(({ first }) => String(first + 1)),
    );
    expect(checkpoint).toEqual({ last: String(end) });
  }
});

// One writer per state directory, over real processes: the lock lasts as long as its process and no longer, however
// that ends.

import { once } from 'node:events';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { holderOf, takeLock } from '../../src/hold/lock.ts';
import { endChild, spawnChild } from '../support/children.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

const holder = new URL('./lock-holder.ts', import.meta.url).pathname;

/** A process that holds the lock. */
async function holderIn(dir: string) {
  const child = spawnChild(process.execPath, [holder, dir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  afterThisTest(() => endChild(child, 'SIGKILL'));
  if (child.stdout === null) throw new Error('the child has no output');
  await once(child.stdout, 'data');
  return child;
}

test('takeLock refuses while another process holds the directory, and names it', async () => {
  const dir = tempDir();
  const child = await holderIn(dir);

  expect(() => takeLock(dir)).toThrow(`process ${child.pid} on `);
  expect(holderOf(dir)).toContain(`process ${child.pid} on `);
});

test.each(['SIGKILL', 'SIGTERM'] as const)(
  'takeLock succeeds once the holder has got a %s',
  async (signal) => {
    const dir = tempDir();
    const child = await holderIn(dir);
    await endChild(child, signal);

    const free = holderOf(dir);
    const lock = takeLock(dir);

    expect(free).toBeNull();
    expect(() => takeLock(dir)).toThrow(`process ${process.pid} on `);
    lock.release();
    takeLock(dir).release();
  },
);

test('holderOf neither makes a directory locked nor takes a lock away', async () => {
  const dir = tempDir();

  expect(holderOf(join(dir, 'nowhere'))).toBeNull();
  const lock = takeLock(dir);
  holderOf(dir);

  expect(() => takeLock(dir)).toThrow('holds it');
  lock.release();
});

test('takeLock tells that it is held also where the holder’s name cannot be read', async () => {
  const dir = tempDir();
  await holderIn(dir);
  writeFileSync(join(dir, 'owner.json'), '{"pid":');

  expect(() => takeLock(dir)).toThrow('another process holds it');
});

test('takeLock makes a missing directory that only its owner can enter', () => {
  const dir = join(tempDir(), 'a', 'state');

  takeLock(dir).release();

  expect(statSync(dir).mode & 0o077).toBe(0);
});

// One writer per state directory, over real processes: the lock lasts as long as its process and no longer, however
// that ends.

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
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
  const ended = once(child, 'exit').then(() => 'it has ended');
  expect(await Promise.race([once(child.stdout, 'data'), ended])).not.toBe('it has ended');
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

test('takeLock checks the lock alone, not a name left by a process whose number another one has now', async () => {
  const dir = tempDir();
  await endChild(await holderIn(dir), 'SIGKILL');
  const alive = { pid: process.pid, host: hostname(), since: '2026-11-01T00:00:00Z' };
  writeFileSync(join(dir, 'owner.json'), JSON.stringify(alive));

  const free = holderOf(dir);
  takeLock(dir).release();

  expect(free).toBeNull();
});

test('takeLock leaves the lock to its holder when the same process requests it again', async () => {
  const dir = tempDir();
  const lock = takeLock(dir);
  expect(() => takeLock(dir)).toThrow(`process ${process.pid} on `);
  holderOf(dir);

  const other = spawnChild(process.execPath, [holder, dir], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  afterThisTest(() => endChild(other, 'SIGKILL'));
  if (other.stdout === null) throw new Error('the child has no output');
  const outcome = await Promise.race([
    once(other.stdout, 'data').then(() => 'held'),
    once(other, 'exit').then(() => 'refused'),
  ]);

  expect(outcome).toBe('refused');
  lock.release();
});

test('takeLock names the obstacle if that is no other process', () => {
  const dir = join(tempDir(), 'state');
  writeFileSync(dir, 'a file');

  expect(() => takeLock(dir)).toThrow(
    expect.objectContaining({
      code: 'state_unwritable',
      next: expect.stringContaining('state.dir'),
    }),
  );
});

test('holderOf neither makes a directory locked nor takes a lock away', async () => {
  const dir = tempDir();

  expect(holderOf(join(dir, 'nowhere'))).toBeNull();
  const lock = takeLock(dir);
  holderOf(dir);

  expect(() => takeLock(dir)).toThrow('holds it');
  lock.release();
});

test('takeLock reports that it is held also if the holder’s name cannot be read', async () => {
  const dir = tempDir();
  await holderIn(dir);
  writeFileSync(join(dir, 'owner.json'), '{"pid":');

  expect(() => takeLock(dir)).toThrow('another process holds it');
});

describe('a damaged lock', () => {
  test('is free, and repaired by the next process; a third one sees the holder', async () => {
    const dir = tempDir();
    writeFileSync(join(dir, 'lock.db'), 'no database, and longer than its header\n'.repeat(9));

    const found = holderOf(dir);
    const child = await holderIn(dir);

    expect(found).toBeNull();
    expect(() => takeLock(dir)).toThrow(`process ${child.pid} on `);
  });

  test('leaves the lock to its holder if it is damaged meanwhile', async () => {
    const dir = tempDir();
    const child = await holderIn(dir);
    writeFileSync(join(dir, 'lock.db'), 'no database, and longer than its header\n'.repeat(9));

    expect(holderOf(dir)).toContain(`process ${child.pid} on `);
    expect(() => takeLock(dir)).toThrow(`process ${child.pid} on `);
  });

  test('is not emptied if it is another file by a second name', () => {
    const dir = tempDir();
    const other = join(tempDir(), 'other');
    writeFileSync(other, 'the text of somebody else, which is no database\n');
    linkSync(other, join(dir, 'lock.db'));

    expect(() => takeLock(dir)).toThrow('not a database');
    expect(readFileSync(other, 'utf8')).toContain('somebody else');
  });
});

describe('an attacker who can write to the directory', () => {
  const victim = () => {
    const path = join(tempDir(), 'victim');
    writeFileSync(path, 'theirs');
    return path;
  };
  const inPlace: Readonly<Record<string, (path: string, other: string) => unknown>> = {
    'a link to another file': (path, other) => symlinkSync(other, path),
    'another name of another file': (path, other) => linkSync(other, path),
    'a pipe': (path) => spawnSync('mkfifo', [path]),
    'a device': (path) => symlinkSync('/dev/zero', path),
    'a directory': (path) => mkdirSync(path),
  };

  test.each(Object.entries(inPlace))('puts %s at the path of owner.json', async (_, put) => {
    const [dir, other] = [tempDir(), victim()];
    put(join(dir, 'owner.json'), other);

    const lock = takeLock(dir);
    lock.release();
    const left = readFileSync(other, 'utf8');
    rmSync(join(dir, 'owner.json'), { recursive: true });
    await holderIn(dir);
    rmSync(join(dir, 'owner.json'));
    put(join(dir, 'owner.json'), other);

    expect(left).toBe('theirs');
    expect(() => takeLock(dir)).toThrow('another process holds it');
    expect(readdirSync(dir).toSorted()).toEqual(['lock.db', 'owner.json']);
  });

  test.each([
    ['a link to another file', (path: string, other: string) => symlinkSync(other, path)],
    ['a link to nothing', (path: string, other: string) => symlinkSync(`${other}.none`, path)],
    ['a pipe', (path: string) => spawnSync('mkfifo', [path])],
  ])('puts %s at the path of lock.db', (_, put) => {
    const [dir, other] = [tempDir(), victim()];
    const { mode } = statSync(other);
    put(join(dir, 'lock.db'), other);

    expect(() => takeLock(dir)).toThrow('lock.db is not a regular file');
    expect(statSync(other).mode).toBe(mode);
    expect(existsSync(`${other}.none`)).toBe(false);
  });
});

// Objects in a directory: whole or absent, whatever other processes write and whenever the process ends.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { openDirectory } from '../../src/objects/directory.ts';
import { tempDir } from '../support/temp.ts';
import { canMountTmpfs } from '../support/tmpfs.ts';
import { collected, textOf } from './reading.ts';
import { keepsObjects } from './store-contract.ts';

keepsObjects(async () => {
  const dir = join(tempDir(), 'not', 'there');
  return { store: openDirectory(dir), again: openDirectory(dir) };
});

const writer = fileURLToPath(new URL('directory-writer.ts', import.meta.url));
const bytes = (text: string) => [Buffer.from(text, 'utf8')];

test('only the owner writes and only the group reads as well, whatever the umask', async () => {
  const dir = join(tempDir(), 'store');
  const before = process.umask(0);
  try {
    await openDirectory(dir).create('a/b', bytes('x'));
  } finally {
    process.umask(before);
  }

  const modes = ['', 'a', 'a/b', '.sluice'].map((name) => statSync(join(dir, name)).mode & 0o777);
  expect(modes).toEqual([0o750, 0o750, 0o640, 0o750]);
});

test('a directory that is not there has no objects, and reading makes none', async () => {
  const dir = join(tempDir(), 'absent');
  const store = openDirectory(dir);

  expect(await collected(store.list(''))).toEqual([]);
  expect(await store.read('x')).toBeNull();
  await store.remove('x');
  expect(existsSync(dir)).toBe(false);
});

test('nothing is left beside the objects, and files of an ended process are removed', async () => {
  const dir = tempDir();
  mkdirSync(join(dir, '.sluice'));
  for (const [name, age] of [['old.part', 7200] as const, ['new.part', 10] as const]) {
    writeFileSync(join(dir, '.sluice', name), 'half');
    utimesSync(join(dir, '.sluice', name), Date.now() / 1000 - age, Date.now() / 1000 - age);
  }
  const store = openDirectory(dir);
  const tag = await store.replace('x', bytes('one'), null);
  await store.replace('x', bytes('two'), tag);
  await store.create('x', bytes('three'));
  await store.put('x', bytes('four'));

  expect(readdirSync(join(dir, '.sluice')).filter((name) => name.endsWith('.part'))).toEqual([
    'new.part',
  ]);
});

test('a process that is killed leaves whole objects, and all acknowledged ones are written', async () => {
  const dir = tempDir();
  let begun = 0;
  for (let kills = 0; kills < 15; kills++) {
    const child = spawn(process.execPath, [writer, dir, String(begun)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const reported: number[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => reported.push(Number(line)));
    await once(child.stdout, 'data');
    await delay(kills * 3); // so that it is killed at a different point each time
    child.kill('SIGKILL');
    await once(child, 'close');

    const store = openDirectory(dir);
    const last = reported.at(-1) ?? begun;
    const counter = JSON.parse((await textOf(store, 'counter')) ?? '{}');
    expect([last, last + 1]).toContain(counter.count);
    const objects = await collected(store.list('objects/'));
    expect(objects.length).toBeGreaterThanOrEqual(last);
    expect(objects.every((object) => object.bytes === 100_000)).toBe(true);
    begun = counter.count;
  }
  expect(begun).toBeGreaterThan(15);
});

test('links to files and directories elsewhere are objects as well', async () => {
  const [dir, elsewhere] = [tempDir(), tempDir()];
  writeFileSync(join(elsewhere, 'f'), 'there');
  symlinkSync(elsewhere, join(dir, 'd'));
  symlinkSync(join(elsewhere, 'gone'), join(dir, 'dangling'));

  expect(await collected(openDirectory(dir).list(''))).toEqual([{ name: 'd/f', bytes: 5 }]);
});

test('a file at that path is reported with the next step', async () => {
  const dir = tempDir();
  writeFileSync(join(dir, 'file'), '');

  await expect(openDirectory(join(dir, 'file')).create('x', bytes('x'))).rejects.toMatchObject({
    code: 'sink_refused',
    next: expect.stringMatching(/nothing was lost/),
  });
});

const canMount = canMountTmpfs('a directory of objects on a full disk');

test.skipIf(!canMount)('a disk that runs full is reported, and leaves whole objects', async () => {
  const dir = tempDir();
  const mount = `mount -t tmpfs -o size=1m tmpfs ${dir}; "$@"; ls -l ${dir}/objects`;
  const args = ['-rm', 'sh', '-c', mount, 'sh', process.execPath, writer, dir];

  const { stdout } = spawnSync('unshare', args, { encoding: 'utf8' });

  expect(stdout).toMatch(/^disk_full Free space on that disk; nothing was lost/m);
  const sizes = stdout.match(/^-.*$/gm)?.map((line) => line.split(/\s+/)[4]) ?? [];
  expect(sizes.length).toBeGreaterThan(5);
  expect(new Set(sizes)).toEqual(new Set(['100000']));
});

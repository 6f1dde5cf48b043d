// The space that is reserved for a full disk: little at first, and more as a repair may need more.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import { Reserve, withReserveOf } from '../../src/hold/reserve.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { anAppend } from '../support/a-page.ts';
import { tempDir } from '../support/temp.ts';
import { canMountTmpfs } from '../support/tmpfs.ts';

const mebibyte = 1024 * 1024;
const sizeIn = (dir: string) => statSync(join(dir, 'reserve')).size / mebibyte;

const canMount = canMountTmpfs('a reserve that has no room to grow');

test('reserve doubles up to its bound, and is as large again after a restart', () => {
  const dir = tempDir();
  const reserve = new Reserve(dir, 10 * mebibyte);
  const sizes = [sizeIn(dir)];
  while (reserve.grow()) sizes.push(sizeIn(dir));

  expect(sizes).toEqual([4, 8, 10]);
  expect(new Reserve(dir, 10 * mebibyte).bytes).toBe(10 * mebibyte);
  reserve.release();
  reserve.retake();
  expect([reserve.held, sizeIn(dir)]).toEqual([true, 10]);
});

test('start that reads from Kafka is repeated in the reserved space, once', async () => {
  const dir = tempDir();
  new Reserve(dir);
  const reserved: boolean[] = [];
  const start = async () => {
    reserved.push(existsSync(join(dir, 'reserve')));
    throw new ExportError('disk_full', 'building the cache', { next: '' });
  };

  await expect(withReserveOf(dir, start)).rejects.toMatchObject({ code: 'disk_full' });
  await expect(withReserveOf(dir, start)).rejects.toMatchObject({ code: 'disk_full' });

  expect(reserved).toEqual([true, false, false]);
});

test('reserve does not grow in a directory that was deleted', () => {
  const dir = join(tempDir(), 'state');
  mkdirSync(dir);
  const reserve = new Reserve(dir);
  rmSync(dir, { recursive: true });

  expect([reserve.grow(), reserve.held]).toEqual([false, true]);
});

test('reserve of a spool grows before its log does', async () => {
  const dir = tempDir();
  const settings = { dir, sync: 'none', keepMs: 0, sinks: ['a'], bytesMax: 1e9 } as const;
  const spool = await openSpool(settings);
  const sizes = [sizeIn(dir)];
  for (const id of ['1', '2', '3']) {
    await spool.append(anAppend({ ids: [id], pad: 1.5 * mebibyte }));
    sizes.push(sizeIn(dir));
  }
  await spool.close();

  expect(sizes).toEqual([4, 4, 8, 16]);
});

test.skipIf(!canMount)('reserve without room to grow keeps its size', () => {
  const dir = tempDir();
  const script = `
    import { statSync, writeFileSync } from 'node:fs';
    import { Reserve } from ${JSON.stringify(new URL('../../src/hold/reserve.ts', import.meta.url).href)};
    const [dir] = process.argv.slice(1);
    const reserve = new Reserve(dir);
    writeFileSync(dir + '/others', Buffer.alloc(26 * ${mebibyte}, 'x'));
    const grown = [reserve.grow(), reserve.grow()];
    console.log(JSON.stringify([...grown, reserve.held, reserve.bytes, statSync(dir + '/reserve').size]));`;
  const { stdout, stderr } = spawnSync(
    'unshare',
    [
      ...['-rm', 'sh', '-c', `mount -t tmpfs -o size=32m tmpfs ${dir}; exec "$@"`, 'sh'],
      ...[process.execPath, '--input-type=module', '-e', script, dir],
    ],
    { encoding: 'utf8' },
  );

  const small = 4 * mebibyte;
  expect(JSON.parse(stdout || stderr)).toEqual([false, false, true, small, small]);
});

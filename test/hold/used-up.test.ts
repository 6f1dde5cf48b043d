// A used up quota: SQLite reports an I/O error, and a file in the state directory shows the cause. A link to /dev/full
// stands for the quota: it takes no byte.

import { spawnSync } from 'node:child_process';
import { existsSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ExportError } from '../../src/contracts/index.ts';
import { storeError } from '../../src/hold/database.ts';
import { withReserve } from '../../src/hold/reserve.ts';
import { withUsedUp } from '../../src/hold/used-up.ts';
import { tempDir } from '../support/temp.ts';
import { canMountTmpfs } from '../support/tmpfs.ts';

// SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC, SQLITE_BUSY, SQLITE_CANTOPEN.
const [write, flush, busy, cannotOpen] = [778, 1034, 5, 14];
const failure = (errcode: number) =>
  storeError(Object.assign(new Error('disk I/O error'), { errcode }), 'writing');

function withoutQuota(): string {
  const dir = tempDir();
  symlinkSync('/dev/full', join(dir, 'probe'));
  return dir;
}

test.each([write, flush])('I/O error %i without room is a full disk', (errcode) => {
  const dir = withoutQuota();

  expect(withUsedUp(failure(errcode), dir)).toMatchObject({
    code: 'disk_full',
    message: 'writing: disk I/O error: the disk or its quota is used up',
  });
  expect(existsSync(join(dir, 'probe'))).toBe(false);
});

test.each(['ENOSPC', 'EDQUOT'])('a file that cannot be created (%s) is a full disk', (code) => {
  const failed = Object.assign(new Error(`${code}: open 'sluice.db'`), { code });

  expect(storeError(failed, 'opening')).toMatchObject({ code: 'disk_full' });
});

test.each([
  ['disk_full', withoutQuota],
  ['state_unwritable', tempDir],
])('a database that cannot be opened is %s by the room that is left', (code, makeDir) => {
  expect(withUsedUp(failure(cannotOpen), makeDir())).toMatchObject({ code });
});

test('I/O error of a directory that takes bytes stays one, and leaves no file', () => {
  const dir = tempDir();

  expect(withUsedUp(failure(write), dir)).toMatchObject({
    code: 'state_damaged',
    next: expect.stringMatching(/ulimit -f/),
  });
  expect(existsSync(join(dir, 'probe'))).toBe(false);
});

test.each([
  ['disk_full', withoutQuota],
  ['state_damaged', tempDir],
])('append beyond a limit of file sizes fails with %s', (code, makeDir) => {
  const at = (file: string) => JSON.stringify(new URL(`../../${file}`, import.meta.url).href);
  const script = `
    import { openSpool } from ${at('src/hold/spool.ts')};
    import { anAppend } from ${at('test/support/a-page.ts')};
    const sizes = { keepMs: 0, bytesMax: 1e9, reserveBytesMax: 1e6 };
    const spool = await openSpool({ dir: process.argv[1], sync: 'none', sinks: ['a'], ...sizes });
    await spool.append(anAppend({ ids: ['1'], pad: 5e6 })).catch(({ code }) => console.log(code));
    await spool.close();`;
  const node = [process.execPath, '-e', script, makeDir()];
  const { stdout, stderr } = spawnSync('bash', [
    '-c',
    'ulimit -f 3000; exec "$@"',
    'bash',
    ...node,
  ]);

  expect([String(stdout), String(stderr)]).toEqual([`${code}\n`, '']);
});

test.runIf(canMountTmpfs('a file system that becomes read-only'))(
  'a file system that became read-only is named',
  () => {
    const at = (file: string) => JSON.stringify(new URL(`../../${file}`, import.meta.url).href);
    const script = `
      import { execFileSync } from 'node:child_process';
      import { Store } from ${at('src/hold/store.ts')};
      import { storeError } from ${at('src/hold/database.ts')};
      import { withUsedUp } from ${at('src/hold/used-up.ts')};
      const [dir] = process.argv.slice(1);
      const mount = (how) => execFileSync('mount', ['-o', how, dir]);
      const opened = () => new Store({ dir, sync: 'none', keepMs: 0 }).close();
      // A file system that the kernel remounts while the database is open.
      const failed = () => {
        throw Object.assign(new Error('disk I/O error'), { errcode: 778 });
      };
      const attempt = (work) => {
        try {
          work();
          console.log('done');
        } catch (error) {
          const { code, message, next } = withUsedUp(storeError(error, 'writing'), dir);
          console.log(code, message.replaceAll(dir, 'DIR'), next.includes('writable again'));
        }
      };
      attempt(opened);
      mount('remount,ro');
      attempt(failed);
      attempt(opened);
      mount('remount,rw');
      attempt(opened);`;
    const shell = 'mount -t tmpfs tmpfs "$1" && exec "$2" -e "$3" "$1"';
    const words = ['-rm', 'sh', '-c', shell, 'sh', tempDir(), process.execPath, script];
    const { stdout, stderr } = spawnSync('unshare', words);

    expect([String(stdout).split('\n'), String(stderr)]).toEqual([
      [
        'done',
        'state_unwritable writing: disk I/O error: its file system is read-only (EROFS) true',
        'state_unwritable opening the state database DIR/sluice.db: it cannot be written (unable to open database file): its file system is read-only (EROFS) true',
        'done',
        '',
      ],
      '',
    ]);
  },
);

test('a database that cannot be opened for the limit of open files is no matter of rights', () => {
  const at = (file: string) => JSON.stringify(new URL(`../../${file}`, import.meta.url).href);
  const script = `
    import { openSync } from 'node:fs';
    import { Store } from ${at('src/hold/store.ts')};
    import { withReserve } from ${at('src/hold/reserve.ts')};
    const [dir] = process.argv.slice(1);
    new Store({ dir, sync: 'none', keepMs: 0 }).close();
    try {
      for (;;) openSync('/dev/null');
    } catch {}
    try {
      withReserve(dir, () => new Store({ dir, sync: 'none', keepMs: 0 }));
    } catch ({ message, next }) {
      console.log(/EMFILE/.test(message), /ulimit -n/.test(next));
    }`;
  const shell = 'ulimit -n 100; exec "$@"';
  const words = ['-c', shell, 'bash', process.execPath, '-e', script, tempDir()];
  const { stdout, stderr } = spawnSync('bash', words);

  expect([String(stdout), String(stderr)]).toEqual(['true true\n', '']);
});

test('other failures are not looked into', () => {
  const dir = withoutQuota();
  const locked = failure(busy);

  expect(withUsedUp(locked, dir)).toBe(locked);
});

test('a start without quota runs again in the reserved space', () => {
  const dir = withoutQuota();
  writeFileSync(join(dir, 'reserve'), 'x');
  const start = () => {
    if (existsSync(join(dir, 'reserve'))) throw failure(write);
    return 'started';
  };

  expect(withReserve(dir, start)).toBe('started');
  const other = () => {
    throw new ExportError('state_locked', 'held', { next: '' });
  };
  expect(() => withReserve(dir, other)).toThrow('held');
});

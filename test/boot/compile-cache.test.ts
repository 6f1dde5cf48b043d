// The directory of compiled code of the one-file release: only one that no other user can write to.

import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { compileCacheDir } from '../../src/boot/compile-cache.ts';
import { tempDir } from '../support/temp.ts';

test('it is in the cache of the user, and created', () => {
  const home = tempDir();

  expect(compileCacheDir({ HOME: home })).toBe(join(home, '.cache/sluice/compiled'));
  expect(compileCacheDir({ HOME: home, XDG_CACHE_HOME: 'relative' })).toContain(home);
  const cache = tempDir();
  expect(compileCacheDir({ HOME: home, XDG_CACHE_HOME: cache })).toBe(
    join(cache, 'sluice/compiled'),
  );
});

test('there is none without a home, and where other users could write code', () => {
  const others = tempDir();
  mkdirSync(join(others, 'sluice/compiled'), { recursive: true });
  chmodSync(join(others, 'sluice/compiled'), 0o777);
  const linked = tempDir();
  mkdirSync(join(linked, 'sluice'));
  symlinkSync(tempDir(), join(linked, 'sluice/compiled'));
  const file = join(tempDir(), 'file');
  writeFileSync(file, '');

  expect(compileCacheDir({})).toBeNull();
  expect(compileCacheDir({ XDG_CACHE_HOME: others })).toBeNull();
  expect(compileCacheDir({ XDG_CACHE_HOME: linked })).toBeNull();
  expect(compileCacheDir({ XDG_CACHE_HOME: file })).toBeNull();
});

test('a home that does not exist is not created', () => {
  const home = join(tempDir(), 'missing');

  expect(compileCacheDir({ HOME: home })).toBeNull();
  expect(existsSync(home)).toBe(false);
});

test('a home that accepts no directory does not stop the start', () => {
  // In another process: Node's recursive mkdir never returns for /proc.
  const source = new URL('../../src/boot/compile-cache.ts', import.meta.url).href;
  const code = `import { compileCacheDir } from ${JSON.stringify(source)};
    console.log(compileCacheDir({ HOME: '/proc' }));`;
  const { stdout, signal } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], {
    encoding: 'utf8',
    timeout: 60_000,
    killSignal: 'SIGKILL',
  });

  expect({ stdout, signal }).toEqual({ stdout: 'null\n', signal: null });
});

test.skipIf(process.getuid?.() !== 0)(
  'there is none that another user owns (skipped without root)',
  () => {
    const cache = tempDir();
    mkdirSync(join(cache, 'sluice/compiled'), { recursive: true });
    chownSync(join(cache, 'sluice'), 65_532, 65_532);

    expect(compileCacheDir({ XDG_CACHE_HOME: cache })).toBeNull();
  },
);

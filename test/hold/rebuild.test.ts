// The cache of a log is built again at each start, whatever is in place of its files.

import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Rebuilding } from '../../src/hold/rebuild.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { anAppend } from '../support/a-page.ts';
import { tempDir } from '../support/temp.ts';

const log = { commit: async () => undefined, forgetBefore: () => undefined };

test.each([
  ['a directory', (path: string) => mkdirSync(join(path, 'more'), { recursive: true })],
  ['other bytes', (path: string) => writeFileSync(path, Buffer.alloc(8_192, 'x'))],
])('%s in place of each file of a cache is replaced', async (_, put) => {
  const dir = tempDir();
  for (const name of ['sluice.db', 'sluice.db-wal', 'sluice.db-shm', 'sluice.db-journal'])
    put(join(dir, name));

  new Rebuilding(dir).finish({ isCache: true });
  const spool = await openSpool({ dir, sync: 'none', keepMs: 0, bytesMax: 1e9, sinks: ['a'], log });
  await spool.append(anAppend({ ids: ['1'] }));

  expect((await spool.read(0, 1e9)).length).toBe(1);
  await spool.close();
});

test('a link in place of a cache is removed, and the other file stays', () => {
  const dir = tempDir();
  const other = join(tempDir(), 'other');
  writeFileSync(other, 'content');
  symlinkSync(other, join(dir, 'sluice.db'));

  new Rebuilding(dir).finish({ isCache: true });

  expect(readFileSync(other, 'utf8')).toBe('content');
});

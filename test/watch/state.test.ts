// The state directory as those see it who only look.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openSpool } from '../../src/hold/spool.ts';
import { readState } from '../../src/watch/state.ts';
import { tempDir } from '../support/temp.ts';

test('readState reads nothing, and fails at nothing, while the database is being made', async () => {
  const dir = join(tempDir('made-'), 'state');
  const opening = openSpool({ dir, sync: 'normal', keepMs: 0, bytesMax: 1e9, sinks: ['a'] });
  let isOpen = false;
  let looks = 0;
  opening.finally(() => {
    isOpen = true;
  });

  while (!isOpen) {
    expect(readState(dir).streams.size).toBe(0);
    looks += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  await (await opening).close();

  expect(looks).toBeGreaterThan(0);
});

test('rows beside a checkpoint are no streams', async () => {
  const root = join(import.meta.dirname, '../..');
  const sources = globSync('src/**/*.ts', { cwd: root }).map((file) =>
    readFileSync(join(root, file), 'utf8'),
  );
  const endings = sources.flatMap((text) =>
    [...text.matchAll(/\}#([a-z]+)`/g)].map(([, ending]) => ending),
  );
  const dir = join(tempDir('beside-'), 'state');
  const spool = await openSpool({ dir, sync: 'normal', keepMs: 0, bytesMax: 1e9, sinks: ['a'] });
  for (const name of ['audit', ...endings.map((ending) => `audit#${ending}`)])
    await spool.append({ stream: name, pages: [], checkpoint: {} });
  await spool.close();

  expect(endings).toEqual(expect.arrayContaining(['silence', 'volume', 'encoding']));
  expect([...readState(dir).streams.keys()]).toEqual(['audit']);
});

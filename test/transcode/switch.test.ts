// SLUICE_TRANSCODER=off: .ci/run repeats the tests whose result depends on it. This holds while one module reads it.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const having = (pattern: string, sign: RegExp) =>
  globSync(pattern, { cwd: root })
    .filter((file) => sign.test(read(file)))
    .toSorted();

test('only the senders read the switch', () => {
  expect(having('src/**/*.ts', /SLUICE_TRANSCODER/)).toEqual(['src/send/sending.ts']);
});

test('each test that opens the senders runs with the switch off as well', () => {
  const [, names = ''] = /test\/send\/\{([^}]+)\}\.test\.ts/.exec(read('.ci/run')) ?? [];
  const repeated = names.split(',').map((name) => `test/send/${name}.test.ts`);

  expect(repeated).toEqual(having('test/**/*.test.ts', /^import .*\bSenders\b.* from/m));
});

test('each journey that the pass repeats is there', () => {
  const [, names = ''] = /test\/journeys\/\{([^}]+)\}\.test\.ts/.exec(read('.ci/run')) ?? [];
  const journeys = globSync('test/journeys/*.test.ts', { cwd: root });

  expect(journeys).toEqual(
    expect.arrayContaining(names.split(',').map((name) => `test/journeys/${name}.test.ts`)),
  );
  expect(names).not.toBe('');
});

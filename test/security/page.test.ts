// SECURITY.md claims only what a test shows: each test, file and page that it names is there.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');

test('SECURITY.md names only tests and pages that exist', () => {
  const page = readFileSync(join(root, 'SECURITY.md'), 'utf8');
  const named = [
    ...[...page.matchAll(/\btest\/[\w/.-]*\w/g)].map(([path]) => path),
    ...[...page.matchAll(/\]\(([^)]+)\)/g)].map(([, path = '']) => path),
  ];

  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

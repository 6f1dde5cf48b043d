// src/README.md is the way into the code: every file stands in it once, and every error code has its row.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { errorCodes } from '../../src/contracts/errors.ts';

const src = join(import.meta.dirname, '..', '..', 'src');
const guide = readFileSync(join(src, 'README.md'), 'utf8');

test('the guide names every file of src once, and no other', () => {
  const named = [...guide.matchAll(/^- `([^`]+\.ts)` — \S/gm)].map(([, file]) => file);

  expect(named.toSorted()).toEqual(globSync('**/*.ts', { cwd: src }).toSorted());
});

test('the guide has a row for every error code, and no other', () => {
  const rows = [...guide.matchAll(/^\| `(\w+)` \| (\w+) \| \S/gm)].map(([, code, fault]) => [
    code,
    fault,
  ]);

  expect(rows).toEqual(Object.entries(errorCodes));
});

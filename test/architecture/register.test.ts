// The upstream documents leave much open, and a register beside them numbers each open point as a row, A01 and so on. A
// row that concerns sluice has a test named after it. Invariant: a new row is either tested or excluded with a reason.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { describeWithShared } from '../support/shared.ts';

const tests = join(import.meta.dirname, '..');

/** Rows without a test, and why. */
const setAside: Readonly<Record<string, string>> = {
  A25: 'incidents are not read: no list of them is documented',
  A26: 'webhooks are not received: polling is the source of truth',
  A43: 'lookups are not read: numbers stay numbers',
  A45: 'tickets are not read',
  A46: 'changes are not read',
};

describeWithShared('the ambiguity register', ['upstream', 'behaviours.md'], (path) => {
  const rows = [...readFileSync(path, 'utf8').matchAll(/^\| (A\d\d) \|/gm)].map(([, row]) => row);
  const titles = globSync('**/*.test.ts', { cwd: tests }).flatMap((file) => [
    ...readFileSync(join(tests, file), 'utf8').matchAll(/['"`]((?:A\d\d )*A\d\d)[ \w.]*: /g),
  ]);
  const tested = new Set(titles.flatMap(([, named = '']) => named.split(' ')));

  test('has rows', () => {
    expect(rows.length).toBeGreaterThan(50);
    expect(new Set(rows).size).toBe(rows.length);
  });

  test('has a test for each row that is not set aside, and sets none aside that has one', () => {
    expect(rows.filter((row = '') => !(tested.has(row) || row in setAside))).toEqual([]);
    expect([...tested].filter((row) => row in setAside)).toEqual([]);
  });

  test('has each row that a test is named after or that is set aside', () => {
    const named = [...tested, ...Object.keys(setAside)];

    expect(named.filter((row) => !rows.includes(row))).toEqual([]);
  });
});

import { expect, test } from 'vitest';
import { readDeprecation } from '../../src/upstream/announced-ends.ts';

const nowMs = Date.UTC(2026, 0, 1);

test.each<[string, number | null]>([
  ['@1688169599', 1_688_169_599_000],
  ['@-1', -1_000],
  ['true', null],
  ['?1', null],
  ['Sun, 06 Nov 1994 08:49:37 GMT', 784_111_777_000],
  ['2027-01-01', Date.UTC(2027, 0, 1)],
  ['2027-01-01T00:00:00Z', Date.UTC(2027, 0, 1)],
  ['1688169599', 1_688_169_599_000],
])('A48: readDeprecation: %s', (text, atMs) => {
  expect(readDeprecation(text, nowMs)).toEqual({ atMs });
});

test.each([
  undefined,
  '',
  'false',
  '?0',
  '@',
  '@1.5',
  '@999999999999999',
  'soon',
  '12',
  'version="v1"',
])('A48: readDeprecation: %j says nothing', (text) => {
  expect(readDeprecation(text, nowMs)).toBeNull();
});

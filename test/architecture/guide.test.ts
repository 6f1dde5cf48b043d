// src/README.md is the way into the code: a short way through the files, every room, and a row for every error code.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { errorCodes } from '../../src/contracts/errors.ts';

const src = join(import.meta.dirname, '..', '..', 'src');
const guide = readFileSync(join(src, 'README.md'), 'utf8');

test('the guide leads through the code in at most ten stops, each of which is there', () => {
  const stops = guide.match(/^\d+\. `.*$/gm) ?? [];
  const named = stops.flatMap((stop) =>
    [...stop.matchAll(/`([\w/-]+\.(?:ts|js))`/g)].map(([, file = '']) => file),
  );

  expect(stops.length).toBeGreaterThan(5);
  expect(stops.length).toBeLessThanOrEqual(10);
  expect(
    named.filter((file) => ![src, join(src, '..')].some((at) => existsSync(join(at, file)))),
  ).toEqual([]);
});

test('the guide names every room once, and no other', () => {
  const rooms = [...guide.matchAll(/^- `(\w+)\/` — \S/gm)].map(([, room]) => room);
  const folders = readdirSync(src, { withFileTypes: true }).filter((entry) => entry.isDirectory());

  expect(rooms.toSorted()).toEqual(folders.map(({ name }) => name).toSorted());
});

test('the guide has a row for every error code, and no other', () => {
  const rows = [...guide.matchAll(/^\| `(\w+)` \| (\w+) \| \S/gm)].map(([, code, fault]) => [
    code,
    fault,
  ]);

  expect(rows).toEqual(Object.entries(errorCodes));
});

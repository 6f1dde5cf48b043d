// The spool's memory of recent pages against a plain list of all pages: each result is a run of whole pages from the
// requested one, the same object each time, and forgetting keeps to the bound.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { RecentPages } from '../../src/hold/recent-pages.ts';
import { aPage } from '../support/a-page.ts';

const template = aPage({ ids: ['x'] });

function held(first: number, count: number, bytes: number): HeldPage {
  return { ...template, body: new Uint8Array(bytes), first, count };
}

/** Pages in a row, of these sizes. */
function inARow(sizes: readonly (readonly [count: number, bytes: number])[]): HeldPage[] {
  let first = 0;
  return sizes.map(([count, bytes]) => {
    const page = held(first, count, bytes);
    first += count;
    return page;
  });
}

test('RecentPages gives the run of pages that holds an offset, also one within a page', () => {
  const pages = inARow([
    [3, 10],
    [2, 10],
    [4, 10],
  ]);
  const recent = new RecentPages(1_000);
  for (const page of pages) recent.add(page);

  expect(recent.from(0, 1_000)).toEqual(pages);
  expect(recent.from(4, 1_000)).toEqual(pages.slice(1));
  expect(recent.from(4, 5)).toEqual(pages.slice(1, 2));
  expect(recent.from(9, 1_000)).toEqual([]);
});

test('RecentPages forgets the oldest beyond its bound, but never the newest', () => {
  const recent = new RecentPages(25);
  const pages = inARow([
    [1, 10],
    [1, 10],
    [1, 10],
    [1, 100],
  ]);

  for (const page of pages.slice(0, 3)) recent.add(page);
  const two = [0, 1, 2].map((at) => recent.from(at, 1_000).length);
  recent.add(pages[3] as HeldPage);
  const one = [2, 3].map((at) => recent.from(at, 1_000).length);

  expect(two).toEqual([0, 2, 1]);
  expect(one).toEqual([0, 1]);
  expect(recent.bytes).toBe(100);
});

test('RecentPages gives pages read back as a run too, from within a page as well', () => {
  const recent = new RecentPages(1_000);
  const pages = inARow([
    [4, 10],
    [4, 10],
    [4, 10],
    [4, 10],
  ]);
  for (const page of pages.slice(0, 3)) recent.addCold(page);
  recent.add(pages[3] as HeldPage);

  expect(recent.from(0, 1_000)).toEqual(pages);
  expect(recent.from(6, 1_000)).toEqual(pages.slice(1));
});

test('RecentPages keeps one object for a page that is read back twice or was just appended', () => {
  const recent = new RecentPages(1_000);
  const appended = held(10, 1, 10);
  const first = recent.addCold(held(0, 1, 10));
  recent.add(appended);

  expect(recent.addCold(held(0, 1, 10))).toBe(first);
  expect(recent.addCold(held(10, 1, 10))).toBe(appended);
});

test('RecentPages does not let pages from behind push out the newest', () => {
  const recent = new RecentPages(40);
  const newest = held(1_000, 1, 10);
  recent.add(newest);

  for (let n = 0; n < 100; n += 1) recent.addCold(held(n, 1, 10));

  expect(recent.from(1_000, 1)).toEqual([newest]);
  expect(recent.from(99, 1)).toHaveLength(1);
  expect(recent.from(0, 1)).toHaveLength(0);
});

test('RecentPages forgets on request the pages that end before an offset, and no page that reaches beyond it', () => {
  const recent = new RecentPages(1_000);
  for (const page of inARow([
    [2, 10],
    [2, 10],
    [2, 10],
  ])) {
    recent.add(page);
  }

  recent.forgetBefore(3);

  expect(recent.oldest).toBe(2);
  expect(recent.bytes).toBe(20);
  expect(recent.from(1, 1)).toEqual([]);
  expect(recent.from(3, 1)).toHaveLength(1);
});

test('RecentPages gives nothing but true runs, whatever it remembers', () => {
  const sizes = fc.array(
    fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 30 })),
    {
      minLength: 1,
      maxLength: 20,
    },
  );
  fc.assert(
    fc.property(
      sizes,
      fc.integer({ min: 1, max: 200 }),
      fc.array(fc.nat({ max: 30 }), { maxLength: 30 }),
      fc.nat({ max: 40 }),
      fc.integer({ min: 1, max: 100 }),
      (given, bytesMax, readBack, from, requested) => {
        const pages = inARow(given);
        const recent = new RecentPages(bytesMax);
        const behind = Math.floor(pages.length / 2);
        for (const page of pages.slice(behind)) recent.add(page);
        for (const index of readBack) {
          const page = pages[index % pages.length];
          if (page !== undefined) recent.addCold(page);
        }

        const found = recent.from(from, requested);

        const start = pages.findIndex(({ first, count }) => first <= from && from < first + count);
        expect(found).toEqual(start < 0 ? [] : pages.slice(start, start + found.length));
        const before = found.slice(0, -1).reduce((sum, { body }) => sum + body.length, 0);
        expect(before).toBeLessThan(requested);
      },
    ),
    { numRuns: 300 },
  );
});

// Whether all records of a walk are of one second, which is known at each page of a walk however long it is.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Identified } from '../../src/list/identity.ts';
import { isOneSecond, type TimeSpan } from '../../src/list/record-time.ts';
import { identityWords } from '../../src/list/repeats.ts';
import { CursorLoopWatch } from '../../src/list/walk-end.ts';

/** A page with one record, like no other. */
function pageOf(number: number): Identified {
  const words = new Uint32Array(identityWords).fill(number + 1);
  // Nothing else of a page is looked at.
  return { count: 1, words, named: Uint8Array.of(1), digests: [] } as unknown as Identified;
}

function watchOf(spans: readonly (TimeSpan | null)[]): CursorLoopWatch {
  const watch = new CursorLoopWatch('s', false);
  for (const [number, span] of spans.entries()) {
    watch.look(pageOf(number), true);
    watch.note(span);
  }
  return watch;
}

test('CursorLoopWatch combines the times of all pages, from the first record of each page', () => {
  const span = fc.record({
    earliest: fc.nat({ max: 900 }),
    more: fc.constantFrom(0, 50, 99, 100, 5000),
  });
  const spans = fc.array(
    fc.option(span.map(({ earliest, more }) => ({ earliest, latest: earliest + more }))),
    { maxLength: 5 },
  );
  fc.assert(
    fc.property(spans, (list) => {
      const watch = watchOf(list);
      const known = list.every((one) => one !== null);
      const latest = Math.max(...list.map((one) => one?.latest ?? 0));
      const earliest = Math.min(...list.map((one) => one?.earliest ?? 0));

      expect(watch.isOneSecond).toBe(known && latest - earliest < 1000);
      expect(isOneSecond(list)).toBe(watch.isOneSecond);
      // Only of a page that had no time yet.
      watch.note({ earliest: 0, latest: 9e9 });
      expect(watch.isOneSecond).toBe(list.at(-1) === null ? false : isOneSecond(list));
    }),
  );
});

test('isOneSecond takes the pages of a very long walk', () => {
  const spans = Array.from({ length: 200_000 }, () => ({ earliest: 1, latest: 2 }));

  expect(isOneSecond(spans)).toBe(true);
});

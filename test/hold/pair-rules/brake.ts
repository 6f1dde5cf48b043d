// How long a record waits where patience is shorter than the other side's polls: while the other side is read, the brake can judge
// first; where it cannot be read, patience alone counts.

import { expect } from 'vitest';
import type { PairRule } from './a-pair.ts';

const [patienceMs, everyMs] = [500, 5_000];
const ids = (from: number, count: number) => Array.from({ length: count }, (_, at) => from + at);

/** The rules. */
export const brakeRules: readonly PairRule[] = [
  {
    name: 'ids that never match: none is delivered before the other side was read past it, and then the brake holds',
    check(aPair) {
      const pair = aPair({ patienceMs, everyMs });
      pair.reads();
      pair.now += 1;
      pair.shows('old', ids(0, 240));
      pair.shows('new', ids(1_000, 240));

      for (let poll = 1; poll <= 5; poll += 1) {
        pair.until(poll * everyMs);
        pair.reads();
        pair.shows('new', ids(2_000 + poll * 10, 10));
      }
      pair.until(6 * everyMs);

      expect([pair.events, pair.report?.waiting, pair.report?.brake !== null]).toEqual([
        240,
        290,
        true,
      ]);
    },
  },
  {
    name: 'a record of a side whose other side cannot be read is delivered when its patience is over',
    check(aPair) {
      const pair = aPair({ patienceMs, everyMs });
      pair.reads();
      pair.now += 1;
      pair.shows('new', ids(0, 240));
      pair.fails();

      pair.until(patienceMs + 501);

      expect([pair.events, pair.report?.brake]).toEqual([240, null]);
    },
  },
  {
    name: 'a record of a side whose other side reports nothing is delivered after three of its polls',
    check(aPair) {
      const pair = aPair({ patienceMs, everyMs });
      pair.shows('new', ids(0, 240));

      pair.until(3 * everyMs);
      const before = pair.events;
      pair.until(3 * everyMs + 3_000);

      expect([before, pair.events]).toEqual([0, 240]);
    },
  },
  {
    name: 'a record that only one side shows is delivered when the other side was read past it',
    check(aPair) {
      const pair = aPair({ patienceMs, everyMs });
      pair.shows('old', ids(0, 50));
      pair.shows('new', ids(0, 52));

      pair.until(4_000);
      pair.reads();
      pair.until(5_000);

      expect([pair.events, pair.report?.onlyNew.count]).toEqual([52, 2]);
    },
  },
];

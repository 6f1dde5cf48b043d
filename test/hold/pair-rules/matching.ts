// Which records are the same, and that one of them is delivered.

import { expect } from 'vitest';
import { begun, type PairRule } from './a-pair.ts';

/** The rules. */
export const matchingRules: readonly PairRule[] = [
  {
    name: 'a record that both sides show is delivered once, also if a side shows it again after a restart',
    check(aPair) {
      const pair = aPair();
      pair.shows('old', [1, 2]);
      pair.shows('new', [2, 1]);
      pair.restart();
      pair.shows('new', [1, 2]);
      pair.until(3_000);
      pair.turn('cut_over');
      pair.shows('old', [1]);
      pair.until(6_000);

      expect([pair.texts(), pair.report?.waiting]).toEqual([[1, 2], 0]);
    },
  },
  {
    name: 'a record that was delivered after its patience is not delivered again by the other side',
    check(aPair) {
      const pair = aPair();
      pair.shows('new', [1, 2]);
      pair.until(2_000);
      pair.shows('old', [2, 1]);
      pair.until(5_000);

      expect([pair.texts(), pair.report?.matched]).toEqual([[1, 2], 2]);
    },
  },
  {
    name: 'without ids, records of one time with different contents are two',
    check(aPair) {
      const pair = aPair({ hasNoIds: true });
      pair.shows('old', [{ text: 'A' }]);
      pair.shows('new', [{ text: 'B' }, { text: 'A' }]);
      pair.until(3_000);

      expect(pair.texts('text').toSorted()).toEqual(['A', 'B']);
    },
  },
  {
    name: 'two ids that differ in their last digit only are two records',
    check(aPair) {
      const pair = aPair();
      pair.shows('old', [`{"at":${begun},"id":9007199254740992,"text":"same"}`]);
      pair.shows('new', [`{"at":${begun},"id":"9007199254740993","text":"same"}`]);
      pair.until(3_000);

      expect([pair.events, pair.report?.matched]).toEqual([2, 0]);
    },
  },
  {
    name: 'one id in two companies is two records',
    check(aPair) {
      const pair = aPair();
      pair.shows('old', [{ id: 1, company_id: 'a' }]);
      pair.shows('new', [{ id: 1, company_id: 'b' }]);
      pair.until(3_000);

      expect(pair.texts('company_id')).toEqual(['a', 'b']);
    },
  },
  {
    name: 'a cutover is refused as long as the old side was not read to its end',
    check(aPair) {
      const pair = aPair();
      pair.shows('old', [1]);
      pair.shows('new', [1]);
      pair.reads();
      pair.now += 61_000;
      pair.reads('audit');
      pair.reads('late');
      const refused = pair.turn('cut_over', { isForced: false, unread: 'audit cannot be read' });
      const done = pair.turn('cut_over', { isForced: false });

      expect([refused.isDone, refused.reasons]).toEqual([false, ['audit cannot be read']]);
      expect(done.isDone).toBe(true);
    },
  },
];

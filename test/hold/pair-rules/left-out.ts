// A record that counts as one of the other side although its content differs: when that is decided, how it is undone, and how long
// its bytes stay.

import { expect } from 'vitest';
import type { APair, MakePair, PairOptions, PairRule } from './a-pair.ts';

const [a, b] = [
  { id: 7, text: 'A' },
  { id: 7, text: 'B' },
];

/** The old side has A and the new one B, which is left out. */
function withB(aPair: MakePair, options: Partial<PairOptions> = {}): APair {
  const pair = aPair(options);
  pair.shows('old', [a]);
  pair.shows('new', [b]);
  pair.until(1_500);
  return pair;
}

/** The rules. */
export const leftOutRules: readonly PairRule[] = [
  {
    name: 'a record with a value that differs is decided when its patience is over, and no earlier',
    check(aPair) {
      const pair = aPair();
      pair.shows('old', [a]);
      pair.shows('new', [b]);
      pair.until(1_000);
      const before = pair.report;
      pair.until(1_500);

      expect([before?.waiting, before?.matched, before?.differing.count]).toEqual([1, 0, 0]);
      expect([pair.report?.waiting, pair.report?.matched]).toEqual([0, 1]);
      expect(pair.report?.differing).toEqual({ count: 1, examples: ['7'] });
      expect(pair.report?.fields.map(({ path, count }) => [path, count])).toEqual([['text', 1]]);
      expect(pair.texts('text')).toEqual(['A']);
    },
  },
  ...[false, true].map((restarts) => ({
    name: `an equal that turns up later makes them two, and the match is counted no more; with a restart: ${restarts}`,
    check(aPair: MakePair) {
      const pair = withB(aPair);

      if (restarts) pair.restart();
      pair.shows('new', [a]);
      pair.tick();

      expect(pair.texts('text')).toEqual(['A', 'B']);
      expect([pair.report?.matched, pair.report?.differing, pair.report?.fields]).toEqual([
        ...[1, { count: 0, examples: [] }, []],
      ]);
      expect([pair.report?.onlyOld.count, pair.waitingBytes]).toEqual([0, 0]);
    },
  })),
  {
    name: 'an equal of the record that is left out is delivered, and the other one is open again',
    check(aPair) {
      const pair = withB(aPair);

      pair.shows('old', [b]);
      pair.shows('new', [a]);
      pair.until(5_000);

      expect(pair.texts('text')).toEqual(['A', 'B']);
      expect([pair.report?.matched, pair.report?.differing.count, pair.waitingBytes]).toEqual([
        2, 0, 0,
      ]);
    },
  },
  {
    name: 'one event stands for one record only',
    check(aPair) {
      const pair = withB(aPair);

      pair.shows('new', [{ id: 7, text: 'C' }]);
      pair.until(4_000);

      expect(pair.texts('text')).toEqual(['A', 'C']);
    },
  },
  {
    name: 'the bytes of a record that is left out count, and go when the overlap is over',
    check(aPair) {
      const pair = withB(aPair, { overlapMs: 10_000 });
      const before = pair.waitingBytes;
      pair.until(10_500);
      const within = pair.waitingBytes;
      pair.until(12_500);

      expect([before > 0, within]).toEqual([true, before]);
      expect(pair.waitingBytes).toBe(0);
      expect([pair.report?.matched, pair.report?.onlyOld.count, pair.texts('text')]).toEqual([
        1,
        0,
        ['A'],
      ]);
    },
  },
  {
    name: 'the bytes of records that are left out fill a sixteenth of the spool at most; the oldest go first',
    check(aPair) {
      const bytesMax = 1024 ** 2;
      const pair = aPair({ bytesMax });
      const record = (id: number, text: string) => ({ id, text: text.repeat(1_000) });
      const many = Array.from({ length: 100 }, (_, id) => id);
      pair.shows(
        'old',
        many.map((id) => record(id, 'A')),
      );
      pair.shows(
        'new',
        many.map((id) => record(id, 'B')),
      );
      pair.until(2_500);

      expect(pair.waitingBytes).toBeLessThanOrEqual(bytesMax / 16);
      expect(pair.waitingBytes).toBeGreaterThan(bytesMax / 20);
      pair.shows('new', [record(99, 'A')]);
      pair.tick();
      expect(pair.texts().slice(100)).toEqual([99]);
    },
  },
  {
    name: 'a cutover with more waiting records than leave at a time delivers each of them',
    check(aPair) {
      const pair = aPair({ patienceMs: 3_600_000 });
      for (let page = 0; page < 9; page += 1) {
        pair.shows(
          'new',
          Array.from({ length: 1_000 }, (_, at) => page * 1_000 + at),
        );
      }
      pair.shows('old', [{ id: 5, text: 'another' }]);

      pair.turn('cut_over');

      expect([pair.events, new Set(pair.texts()).size, pair.report?.waiting]).toEqual([
        9_000, 9_000, 0,
      ]);
    },
  },
];

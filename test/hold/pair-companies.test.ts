// Records of several companies: an id is one record within its company only. Each world is the smallest of one that the
// simulation of pairs has found (test/simulation/pairs).

import { expect, test } from 'vitest';
import { APair, ownCode } from './pair-rules/a-pair.ts';

const hourMs = 3_600_000;
const ids = [1, 2, 3, 4, 5];
const of = (company: string, later = 0) => {
  const at = new Date(Date.UTC(2026, 10, 1) + later).toISOString();
  return (id: number) => ({ id, company_id: company, at });
};

test('equal ids of two companies say nothing about the difference of the clocks', () => {
  const pair = new APair({ patienceMs: 1_000 }, ownCode);
  pair.shows('old', ids.map(of('1')));
  pair.shows('new', ids.map(of('2', hourMs)));
  pair.shows('old', [10].map(of('1')));
  pair.shows('new', [10].map(of('1')));

  pair.until(5_000);

  expect(pair.events).toBe(11);
  pair.close();
});

test('where one side only names companies, records with one id need equal content', () => {
  const pair = new APair({ patienceMs: 1_000 }, ownCode);
  pair.shows('old', [{ id: 7, text: 'of company 1' }]);
  pair.shows('new', [{ id: 7, text: 'of company 2', company_id: '2' }]);
  pair.shows('new', [{ id: 7, text: 'of company 1', company_id: '1' }]);

  pair.until(5_000);

  expect(pair.texts('text')).toEqual(['of company 1', 'of company 2']);
  pair.close();
});

test('a record that may match one that waits does not count as one-sided yet', () => {
  const pair = new APair({ patienceMs: 1_000 }, ownCode);
  const all = Array.from({ length: 20 }, (_, id) => ({ id, text: 'new' }));
  pair.shows('new', all);
  pair.until(2_000);
  pair.shows('new', [100]);
  pair.until(2_500);
  pair.shows(
    'old',
    all.map(({ id }) => ({ id, text: 'old' })),
  );
  pair.reads();

  pair.until(3_500);

  // The old records wait for equal ones for another 500 ms.
  expect(pair.events).toBe(21);
  pair.close();
});

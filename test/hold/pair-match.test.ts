// Which change of a collection is which of the other side. Rows are as the database gives them.

import { expect, test } from 'vitest';
import type { PairRecord } from '../../src/contracts/succession.ts';
import { findCandidates } from '../../src/hold/pair-match.ts';

const rules = { needsContent: false, aheadMs: () => null, pastBefore: 100 };

function change(fields: object, more: Partial<PairRecord> = {}): PairRecord {
  return {
    ...{ key: new Uint8Array(16), company: null, id: 'e-1', happenedAt: null, before: [] },
    ...{ fields: JSON.stringify(fields), as: 'change', start: 0, end: 0, ...more },
  };
}

const row = (id: number, at: number, fields: object, more: object = {}) => ({
  ...{ id, at, state: 0, company: null, happened: null, old: new Uint8Array(8), new: null },
  fields: JSON.stringify(fields),
  ...more,
});

const found = (record: PairRecord, rows: readonly ReturnType<typeof row>[]) =>
  findCandidates(record, 'new', { rows, rules }).same?.id ?? null;

test('an update matches the same new value, and no other one', () => {
  expect(
    found(change({ name: 'sB' }), [row(1, 50, { name: 'sA' }), row(2, 60, { name: 'sB' })]),
  ).toBe(2);
  expect(found(change({ name: 'sC' }), [row(1, 50, { name: 'sA' })])).toBeNull();
  expect(found(change({ port: 'n1' }), [row(1, 50, { name: 'sA' })])).toBeNull();
});

test('a value that returns is another change once a later one has followed and patience is over', () => {
  const past = [row(1, 10, { name: 'sX' }), row(2, 20, { name: 'sA' })];

  expect(found(change({ name: 'sX' }), past)).toBeNull();
});

test('within the patience, or while it waits, an earlier change still matches', () => {
  const recent = [row(1, 150, { name: 'sX' }), row(2, 160, { name: 'sA' })];
  const waiting = waitingRows([row(1, 10, { name: 'sX' }), row(2, 20, { name: 'sA' })]);

  expect(found(change({ name: 'sX' }), recent)).toBe(1);
  expect(found(change({ name: 'sX' }), waiting)).toBe(1);
});

test('a creation or deletion matches by its key, within one company', () => {
  expect(found(change({}), [row(1, 10, {})])).toBe(1);
  expect(found(change({}, { company: '2' }), [row(1, 10, {}, { company: '1' })])).toBeNull();
});

function waitingRows(rows: readonly ReturnType<typeof row>[]) {
  return rows.map((one) => ({ ...one, state: 1 }));
}

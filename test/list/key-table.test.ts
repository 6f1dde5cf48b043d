// The table and the generations over it against a Map: whatever is added in whatever order, what is known is what a Map
// would know, and forgetting takes the oldest and never the youngest.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { asWords, identityWords, KeyTable, Repeats } from '../../src/list/repeats.ts';

/** Keys that share their first words, so that they meet in the table. */
const key = fc
  .tuple(
    fc.constantFrom(0, 1, 16, 32, 0xffffffff),
    fc.constantFrom(0, 1),
    fc.constantFrom(0, 7),
    fc.constantFrom(0, 0x80000000),
  )
  .map((words) => Uint32Array.from(words));
const value = fc.constantFrom(0, 1, 2, 0xffffffff);

function isZero(words: Uint32Array): boolean {
  return words.every((word) => word === 0);
}

function numbered(n: number): Uint32Array {
  return Uint32Array.from([n * 16, n, 0, 1]);
}

test('KeyTable has the entries of a Map', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(key, value), { maxLength: 60 }), key, (entries, probe) => {
      const table = new KeyTable();
      const model = new Map<string, number>();

      for (const [words, number] of entries) {
        table.set(words, 0, number);
        if (!isZero(words)) model.set(words.join(), number);
      }

      expect(table.size).toBe(model.size);
      for (const words of [probe, ...entries.map(([each]) => each)]) {
        const slot = table.find(words, 0);
        expect(table.has(words, 0)).toBe(model.has(words.join()));
        expect(slot < 0 ? undefined : table.value(slot)).toBe(model.get(words.join()));
      }
    }),
    { numRuns: 300 },
  );
});

test('KeyTable grows to many keys whose hashes collide, and reads them at any offset of an array', () => {
  const table = new KeyTable();
  const count = 20_000;
  const padded = new Uint32Array(3 + 4);

  for (let n = 0; n < count; n += 1) table.set(numbered(n), 0, n);

  expect(table.size).toBe(count);
  for (let n = 0; n < count; n += 1) {
    padded.set(numbered(n), 3);
    expect(table.value(table.find(padded, 3))).toBe(n);
  }
  expect(table.has(numbered(count), 0)).toBe(false);
});

test('KeyTable does not take the empty slot for the all-zero key', () => {
  const table = new KeyTable();
  const zero = new Uint32Array(4);

  const before = table.has(zero, 0);
  table.set(zero, 0, 5);

  expect([before, table.has(zero, 0), table.size]).toEqual([false, false, 0]);
});

function identity(n: number, number: number): Uint32Array {
  return Uint32Array.from([...numbered(n), number]);
}

test('Repeats returns the value last added, and -1 for an unseen key', () => {
  const repeats = new Repeats();

  repeats.addAll(Uint32Array.from([...identity(1, 10), ...identity(2, 20)]), true);
  repeats.addAll(identity(1, 11), true);

  expect([1, 2, 3].map((n) => repeats.value(identity(n, 0), 0))).toEqual([11, 20, -1]);
});

test('Repeats knows unanchored keys as repeats that stop no walk, until the walk joins up', () => {
  const repeats = new Repeats();
  repeats.addAll(identity(1, 1), true);
  repeats.addAll(identity(2, 1), false);

  const before = [1, 2, 3].map((n) => repeats.isAnchored(identity(n, 0), 0));
  const known = repeats.value(identity(2, 0), 0);
  repeats.anchorAll();
  const after = [1, 2, 3].map((n) => repeats.isAnchored(identity(n, 0), 0));

  expect(before).toEqual([true, false, false]);
  expect(known).toBe(1);
  expect(after).toEqual([true, true, false]);
});

test('Repeats forgets the oldest keys beyond its bound, and never the youngest half a million', () => {
  const repeats = new Repeats();
  const count = 1_600_000;
  const block = new Uint32Array(1_000 * identityWords);
  for (let n = 0; n < count; n += 1_000) {
    for (let i = 0; i < 1_000; i += 1) block.set(identity(n + i, 1), i * identityWords);
    repeats.addAll(block, true);
  }

  const known = [0, 400_000, count - 500_000, count - 1].map(
    (n) => repeats.value(identity(n, 0), 0) >= 0,
  );

  expect(known).toEqual([false, false, true, true]);
});

test('asWords reads bytes wherever they stand in their buffer', () => {
  const bytes = Buffer.from(Uint32Array.from([1, 2, 3]).buffer);
  const shifted = Buffer.concat([Buffer.from([0]), bytes]).subarray(1);

  expect([...asWords(shifted)]).toEqual([1, 2, 3]);
});

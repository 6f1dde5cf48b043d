import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BackOff } from '../../src/tools/back-off.ts';

test('BackOff: every wait lies between the floor and the doubled bound, whatever chance says', () => {
  const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(fc.array(unit, { minLength: 1, maxLength: 60 }), (chances) => {
      let at = 0;
      const waits = new BackOff({ random: () => chances[at] ?? 0 });

      for (at = 0; at < chances.length; at++) {
        const wait = waits.next();

        expect(wait).toBeGreaterThanOrEqual(1_000);
        expect(wait).toBeLessThanOrEqual(Math.min(300_000, 1_000 * 2 ** (at + 1)));
      }
    }),
  );
});

test('BackOff: grows, stays finite and returns to the first wait on reset', () => {
  const waits = new BackOff({ minMs: 100, maxMs: 60_000, random: () => 0.5 });

  const grown = Array.from({ length: 2_000 }, () => waits.next());
  waits.reset();
  const first = waits.next();

  expect(grown.slice(0, 4)).toEqual([150, 250, 450, 850]);
  expect(grown.at(-1)).toBe(30_050);
  expect(first).toBe(grown[0]);
});

test('BackOff: a maximum below the floor does not lower the floor', () => {
  const waits = new BackOff({ minMs: 1_000, maxMs: 10, random: () => 0 });

  expect([waits.next(), waits.next()]).toEqual([1_000, 1_000]);
});

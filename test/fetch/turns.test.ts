// Turns: never more at a time than allowed, in the order of calls, and a waiter that gives up leaves no turn taken.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Turns } from '../../src/fetch/turns.ts';

const never = new AbortController().signal;

test('A55: new Turns admits a fixed number at a time, in the order of requests', async () => {
  const turns = new Turns(2);
  const order: number[] = [];
  let inside = 0;
  let most = 0;

  await Promise.all(
    [0, 1, 2, 3, 4, 5].map(async (n) => {
      const release = await turns.take(never);
      inside += 1;
      most = Math.max(most, inside);
      order.push(n);
      await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
      release();
    }),
  );

  expect(order).toEqual([0, 1, 2, 3, 4, 5]);
  expect(most).toBe(2);
});

test('slow polls pass their turns on, up to a number of them', async () => {
  const turns = new Turns(2, { afterMs: 20, max: 3 });
  const slow = await Promise.all([turns.take(never), turns.take(never)]);
  let taken = 0;
  const later = Array.from({ length: 4 }, () =>
    turns.take(never).then((release) => {
      taken += 1;
      return release;
    }),
  );

  const third = await later[2];
  const beforeRelease = taken;
  for (const release of slow) release();
  const releases = await Promise.all(later);

  // Two turns and three slow polls: the sixth waits until a poll ends.
  expect(beforeRelease).toBe(3);
  for (const release of [third, ...releases]) release?.();
  const again = await Promise.all([turns.take(never), turns.take(never)]);
  for (const release of again) release();
  expect(taken).toBe(4);
});

test('new Turns rejects an aborted waiter, and at once one that was aborted before', async () => {
  const turns = new Turns(1);
  const release = await turns.take(never);
  const giveUp = new AbortController();
  const waiting = turns.take(giveUp.signal);
  giveUp.abort(new Error('enough'));

  await expect(waiting).rejects.toThrow('enough');
  await expect(turns.take(giveUp.signal)).rejects.toThrow('enough');

  release();
  (await turns.take(never))();
});

test('new Turns keeps the turn of the one behind when a turn comes and is given up in the same moment', async () => {
  const turns = new Turns(1);
  const release = await turns.take(never);
  const giveUp = new AbortController();
  const second = turns.take(giveUp.signal);
  const third = turns.take(never);

  release();
  giveUp.abort(new Error('enough'));
  await second.then((giveBack) => giveBack());

  (await third)();
});

test('new Turns has all turns back in the end, whichever waiter gives up when', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 3 }),
      fc.array(fc.integer({ min: 0, max: 6 }), { maxLength: 10 }),
      async (max, patience) => {
        const turns = new Turns(max);
        await Promise.all(
          patience.map(async (steps) => {
            const giveUp = new AbortController();
            const taken = turns.take(giveUp.signal).catch(() => null);
            for (let i = 0; i < steps; i += 1) await Promise.resolve();
            giveUp.abort();
            const release = await taken;
            await new Promise((resolve) => setImmediate(resolve));
            release?.();
          }),
        );

        const all = await Promise.all(Array.from({ length: max }, () => turns.take(never)));
        expect(all).toHaveLength(max);
      },
    ),
    { numRuns: 100 },
  );
});

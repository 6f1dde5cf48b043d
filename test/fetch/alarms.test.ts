// The waits of all streams in one heap: each call comes at its time and in order, one sleep serves them all, and a
// cancelled call never comes.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Clock } from '../../src/contracts/tools.ts';
import { type Alarm, Alarms } from '../../src/fetch/alarms.ts';
import { manualClock } from '../support/manual-clock.ts';

test('Alarms call each of a thousand waits at its time, with one sleep of the clock', async () => {
  const clock = manualClock();
  const alarms = new Alarms(clock);
  const called: (readonly [due: number, at: number])[] = [];
  const dues = Array.from({ length: 1_000 }, (_, index) => (index * 7_919) % 4_999);
  const set = dues.map((due) => alarms.set(due, () => called.push([due, clock.monotonic()])));
  const cancelled = dues.filter((_, index) => index % 3 === 0);
  set.forEach((alarm, index) => {
    if (index % 3 === 0) alarm.cancel();
  });
  await clock.settle();

  const { sleepers } = clock;
  await clock.advance(5_000);

  const expected = dues.filter((_, index) => index % 3 !== 0).toSorted((a, b) => a - b);
  expect(cancelled.length + expected.length).toBe(1_000);
  expect(sleepers).toBe(1);
  expect(called).toEqual(expected.map((due) => [due, due]));
  expect(clock.sleepers).toBe(0);
});

test('Alarms end the sleep for a later wait if an earlier one is set', async () => {
  const clock = manualClock();
  const alarms = new Alarms(clock);
  const called: string[] = [];
  alarms.set(60_000, () => called.push('later'));
  await clock.advance(10_000);

  alarms.set(1_000, () => called.push('earlier'));
  await clock.advance(1_000);

  expect(called).toEqual(['earlier']);
  expect(clock.nextInMs).toBe(49_000);
});

test('Alarms do not call a wait of 0 ms that is set by a call, before the clock has woken again', async () => {
  const clock = manualClock();
  const alarms = new Alarms(clock);
  let calls = 0;
  const again = () => {
    calls += 1;
    if (calls < 5) alarms.set(0, again);
  };
  alarms.set(10, again);

  const counts: number[] = [];
  for (let i = 0; i < 5; i += 1) {
    await clock.advanceToNext();
    counts.push(calls);
  }

  expect(counts).toEqual([1, 2, 3, 4, 5]);
});

test('Alarms do not call a wait that a call at the same time has cancelled', async () => {
  const clock = manualClock();
  const alarms = new Alarms(clock);
  const called: string[] = [];
  const both: Alarm[] = [];
  const other = (name: string, index: number) => () => {
    called.push(name);
    both[index]?.cancel();
  };
  both.push(alarms.set(10, other('first', 1)), alarms.set(10, other('second', 0)));

  await clock.advance(20);

  expect(called).toHaveLength(1);
});

test('Alarms call the other waits although one call throws, and report its error', async () => {
  const clock = manualClock();
  const alarms = new Alarms(clock);
  const called: string[] = [];
  alarms.set(10, () => {
    throw new Error('a bug in a call');
  });
  alarms.set(10, () => called.push('at the same time'));
  alarms.set(20, () => called.push('later'));

  const errors = await uncaughtDuring(() => clock.advance(20));

  expect(errors).toEqual([new Error('a bug in a call')]);
  expect(called).toEqual(['at the same time', 'later']);
});

test('Alarms sleep again after a sleep that failed, and report its error', async () => {
  const clock = manualClock();
  let isBroken = true;
  const sleep: Clock['sleep'] = (ms, signal) =>
    isBroken ? Promise.reject(new Error('no timer')) : clock.sleep(ms, signal);
  const alarms = new Alarms({ ...clock, sleep });
  const called: string[] = [];

  const errors = await uncaughtDuring(async () => {
    alarms.set(10, () => called.push('first'));
    await clock.settle();
  });
  isBroken = false;
  alarms.set(20, () => called.push('second'));
  await clock.advance(20);

  expect(errors).toEqual([new Error('no timer')]);
  expect(called).toEqual(['first', 'second']);
});

/** The errors that would end the process. */
async function uncaughtDuring(work: () => Promise<void>): Promise<readonly unknown[]> {
  const errors: unknown[] = [];
  const before = process.listeners('uncaughtException');
  const rejections = process.listeners('unhandledRejection');
  process.removeAllListeners('uncaughtException').removeAllListeners('unhandledRejection');
  const keep = (error: unknown) => errors.push(error);
  process.on('uncaughtException', keep).on('unhandledRejection', keep);
  try {
    await work();
  } finally {
    process.removeAllListeners('uncaughtException').removeAllListeners('unhandledRejection');
    for (const listener of before) process.on('uncaughtException', listener);
    for (const listener of rejections) process.on('unhandledRejection', listener);
  }
  return errors;
}

const step = fc.oneof(
  fc.record({ set: fc.integer({ min: 0, max: 1_000 }) }),
  fc.record({ cancel: fc.nat({ max: 60 }) }),
);

test('Alarms call what is set and not cancelled, at its time, in any order of both', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 120 }), async (steps) => {
      const clock = manualClock();
      const alarms = new Alarms(clock);
      const called: (readonly [due: number, at: number])[] = [];
      const all: { readonly due: number; readonly alarm: Alarm; isCancelled: boolean }[] = [];
      for (const one of steps) {
        if ('set' in one) {
          const { set: due } = one;
          const alarm = alarms.set(due, () => called.push([due, clock.monotonic()]));
          all.push({ due, alarm, isCancelled: false });
        } else {
          const cancelled = all[one.cancel % Math.max(1, all.length)];
          cancelled?.alarm.cancel();
          if (cancelled !== undefined) cancelled.isCancelled = true;
        }
      }
      await clock.advance(1_000);

      const left = all.filter(({ isCancelled }) => !isCancelled).map(({ due }) => due);
      expect(called).toEqual(left.toSorted((a, b) => a - b).map((due) => [due, due]));
    }),
    { numRuns: 30 },
  );
});

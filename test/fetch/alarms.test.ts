// The waits of all streams in one heap: each call comes at its time and in order, one sleep serves them all, and a
// cancelled call never comes.

import { expect, test } from 'vitest';
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

// A check that is repeated: at its interval, never two at a time, and once more when it is stopped.

import { expect, test } from 'vitest';
import { Alarms } from '../../src/fetch/alarms.ts';
import { Repeated } from '../../src/fetch/repeated.ts';
import { manualClock } from '../support/manual-clock.ts';

/** A repeated check that takes `tookMs`. */
function aCheck(tookMs: number) {
  const clock = manualClock();
  const begun: number[] = [];
  let ended = 0;
  const check = {
    everyMs: 1_000,
    look: async () => {
      begun.push(clock.monotonic());
      if (tookMs > 0) await clock.sleep(tookMs);
      ended += 1;
    },
  };
  return { clock, begun, ended: () => ended, repeated: new Repeated(new Alarms(clock), check) };
}

test('Repeated checks at its interval, counted from the end of the check before', async () => {
  const { clock, begun, repeated } = aCheck(300);
  repeated.start();

  await clock.advance(4_000);

  expect(begun).toEqual([1_000, 2_300, 3_600]);
});

test('Repeated checks once more when it is stopped, after the check under way, and then no more', async () => {
  const { clock, begun, ended, repeated } = aCheck(300);
  repeated.start();
  await clock.advance(1_100);

  const stopping = repeated.stop();
  await clock.advance(600);
  await stopping;
  const atStop = ended();
  await clock.advance(5_000);

  expect(begun).toEqual([1_000, 1_300]);
  expect([atStop, ended()]).toEqual([2, 2]);
});

test('Repeated does not check if it is stopped before it has begun', async () => {
  const { clock, begun, repeated } = aCheck(0);

  await repeated.stop();
  repeated.start();
  await clock.advance(5_000);

  expect(begun).toEqual([]);
});

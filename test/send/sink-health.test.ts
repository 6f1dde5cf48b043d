// How long a sink that was refused is left alone.

import { expect, test } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import { SinkHealth } from '../../src/send/sink-health.ts';
import { manualClock } from '../support/manual-clock.ts';
import { silent } from '../support/silent-log.ts';

const hourMs = 3_600_000;
const cause = new ExportError('sink_refused', 'testing: 401', { next: 'nothing' });

test('a secret that was corrected while its rejection was on the way is tried at once, and only once', async () => {
  const clock = manualClock();
  let secret = 'wrong';
  const backOff = { next: () => hourMs, reset: () => undefined };
  const health = new SinkHealth({
    ...{ clock, log: silent, backOff, refusedWaitMs: hourMs, retryMinMs: 1_000 },
    fingerprint: () => secret,
  });
  const begun = clock.now();
  const never = new AbortController().signal;
  const waited = async () => {
    const from = clock.now();
    const rest = health.rest(cause, never);
    let over = false;
    void rest.then(() => {
      over = true;
    });
    while (!over) await clock.advanceToNext();
    return clock.now() - from;
  };

  secret = 'right';
  const first = await waited();
  const second = await waited();

  expect(first).toBeLessThan(60_000);
  expect(second).toBe(hourMs);
  expect(clock.now() - begun).toBe(first + second);
});

test('the commands behind the secrets run again for a receiver that refuses, and not for one that is down', async () => {
  const clock = manualClock();
  let runs = 0;
  const health = new SinkHealth({
    ...{ clock, log: silent, refusedWaitMs: 10_000, retryMinMs: 1_000 },
    backOff: { next: () => 10_000, reset: () => undefined },
    fingerprint: () => 'the same',
    refresh: async () => {
      runs += 1;
    },
  });
  const never = new AbortController().signal;
  const during = async (waiting: Promise<void>) => {
    const before = runs;
    let over = false;
    void waiting.then(() => {
      over = true;
    });
    while (!over) await clock.advanceToNext();
    return runs - before;
  };
  const down = new ExportError('sink_unreachable', 'testing: reset', { next: 'nothing' });

  expect(await during(health.pause(down, never))).toBe(0);
  expect(await during(health.pause(cause, never))).toBeGreaterThan(0);
  expect(await during(health.rest(cause, never))).toBeGreaterThan(0);
});

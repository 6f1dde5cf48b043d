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

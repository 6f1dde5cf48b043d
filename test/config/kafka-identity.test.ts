// The pauses after a failed token request of state.kafka.

import { expect, test } from 'vitest';
import { spaced } from '../../src/config/kafka-identity.ts';
import { manualClock } from '../support/manual-clock.ts';

/** An identity whose requests fail until `accept` is called. */
function failing() {
  let [requests, accepts] = [0, false];
  const identity = {
    mechanism: 'oauthbearer' as const,
    async token() {
      requests += 1;
      if (!accepts) throw new Error(`failure ${requests}`);
      return 'a token';
    },
    drop: () => undefined,
  };
  return {
    identity,
    count: () => requests,
    accept: () => {
      accepts = true;
    },
  };
}

test('a failed request is repeated after 1 s at first, and after 30 s at most', async () => {
  const clock = manualClock(0);
  const { identity, count } = failing();
  const { token } = spaced(identity, clock);
  const moments: number[] = [];
  for (let second = 0; second <= 120; second += 1) {
    const before = count();
    await expect(token()).rejects.toThrow('failure');
    if (count() > before) moments.push(second);
    await clock.advance(1_000);
  }

  expect(moments).toEqual([0, 1, 3, 7, 15, 31, 61, 91]);
});

test('callers at the same time share one failure, and a token ends the pauses', async () => {
  const clock = manualClock(0);
  const { identity, count, accept } = failing();
  const { token } = spaced(identity, clock);

  const failures = await Promise.allSettled([token(), token()]);
  const requests = count();
  await expect(token()).rejects.toThrow('failure');
  accept();
  await clock.advance(1_000);

  expect(failures.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(count()).toBe(requests);
  expect(await token()).toBe('a token');
  expect(await token()).toBe('a token');
});

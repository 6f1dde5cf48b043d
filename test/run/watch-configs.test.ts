// The shards of one process share what they read about the processes of a state in Kafka.

import { expect, onTestFinished, test, vi } from 'vitest';
import type { MemberSettings } from '../../src/cluster/log/settings.ts';
import { OwnerQuery } from '../../src/cluster/queries.ts';
import { sharedProcesses } from '../../src/run/watch-configs.ts';

const kafka: MemberSettings = {
  ...{ brokers: [{ host: '127.0.0.1', port: 1 }], prefix: 'p' },
  ...{ sessionMs: 6_000, deployment: () => [] },
};

test('all shards that look within half of a session share an answer, and no failure', async () => {
  const asked = vi.spyOn(OwnerQuery.prototype, 'group');
  onTestFinished(() => asked.mockRestore());
  const clock = {
    nowMs: 0,
    now: () => 0,
    monotonic: () => clock.nowMs,
    sleep: async () => undefined,
  };
  const processes = sharedProcesses(clock);
  const look = () => Promise.allSettled([processes(kafka), processes(kafka)]);
  const states = async () => (await look()).map(({ status }) => status);

  asked.mockRejectedValueOnce(new Error('no broker')).mockResolvedValue(null);
  expect(await states()).toEqual(['rejected', 'rejected']);
  expect(await states()).toEqual(['fulfilled', 'fulfilled']);
  expect(asked).toHaveBeenCalledTimes(2);
  clock.nowMs = 3_000;
  await look();
  expect(asked).toHaveBeenCalledTimes(2);
  clock.nowMs = 3_001;
  await look();
  expect(asked).toHaveBeenCalledTimes(3);
});

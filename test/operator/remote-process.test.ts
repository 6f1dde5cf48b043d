// The request of a command on another machine while Kafka cannot be reached: an answer counts although the request cannot be
// deleted, and a request that could not be withdrawn is not reported as withdrawn.

import { expect, test } from 'vitest';
import type { ControlCommand } from '../../src/cluster/control.ts';
import { ExportError } from '../../src/contracts/errors.ts';
import type { JsonObject } from '../../src/contracts/json.ts';
import { remoteAnswer } from '../../src/operator/remote-process.ts';
import { manualClock } from '../support/manual-clock.ts';

const command: ControlCommand = {
  ...{ id: 'a', name: 'audit', shard: 0, at: 1 },
  wish: { what: 'reset', forget: true },
};
const away = () => new ExportError('sink_unreachable', 'reading: away', { next: 'wait' });

/** A control topic that is away at times; `come` sets the answer. */
function aTopic() {
  const answers = new Map<string, JsonObject>();
  const topic = { isAway: false, asked: 0, withdrawn: 0 };
  const clock = manualClock();
  const unlessAway = async () => {
    if (topic.isAway) throw away();
  };
  const control = {
    answers,
    ask: async () => {
      topic.asked += 1;
    },
    read: async () => {
      await unlessAway();
      await clock.sleep(1_000);
    },
    withdraw: async () => {
      await unlessAway();
      topic.withdrawn += 1;
      answers.delete(command.id);
    },
  };
  const asking = remoteAnswer(command, control, { clock, forMs: 30_000 });
  asking.catch(() => undefined);
  return { topic, clock, asking, come: () => answers.set('a', { forgotten: 7 }) };
}

test('an answer counts although Kafka cannot be reached to delete the request', async () => {
  const { topic, clock, asking, come } = aTopic();
  await clock.settle();
  come();
  topic.isAway = true;

  await clock.advance(2_000);

  expect(await asking).toEqual({ forgotten: 7 });
});

test('a command waits for Kafka, and reads its answer then', async () => {
  const { topic, clock, asking, come } = aTopic();
  topic.isAway = true;
  await clock.advance(10_000);
  topic.isAway = false;
  come();
  await clock.advance(2_000);

  expect(await asking).toEqual({ forgotten: 7 });
  expect([topic.asked, topic.withdrawn]).toEqual([1, 1]);
});

test('a request that cannot be withdrawn may still be carried out, and the command says so', async () => {
  const { topic, clock, asking } = aTopic();
  topic.isAway = true;

  await clock.advance(40_000);

  await expect(asking).rejects.toMatchObject({
    code: 'sink_unreachable',
    next: expect.stringContaining('may still be carried out'),
  });
});

test('without an answer in time a request is withdrawn', async () => {
  const { topic, clock, asking } = aTopic();

  await clock.advance(40_000);

  expect([await asking, topic.withdrawn]).toEqual([null, 1]);
});

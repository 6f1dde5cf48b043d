// Which shards a process has, and which of their workers run, from the start of a worker to its end.

import { expect, test } from 'vitest';
import { ShardTally } from '../../src/run/shard-tally.ts';

const shard = 3;
const error = { code: 'disk_full', message: 'no space', next: 'Free some.' };
const aWorker = () => ({
  runs: false,
  isStopped: false,
  error: null as typeof error | null,
  takeovers: 0,
});

test('a shard counts as running from when its worker works to when it ends, also while it is stopped in order', () => {
  const tally = new ShardTally();
  tally.gained(shard);
  const worker = aWorker();
  tally.started(shard, worker);
  expect(tally.share).toEqual({
    ...{ owned: [3], running: [] },
    failing: [{ shard, sink: null, ends: 0, error: null }],
  });
  worker.runs = true;
  expect(tally.share).toEqual({ owned: [3], running: [3], failing: [] });

  worker.isStopped = true;
  tally.ended(shard, 0);
  tally.released(shard);
  expect(tally.share).toEqual({ owned: [], running: [], failing: [] });
});

test('a worker that ends by itself is failing until it runs again or another process has its shard, also in the pause between', () => {
  const tally = new ShardTally();
  for (const ends of [1, 2, 3]) {
    tally.gained(shard);
    tally.started(shard, { ...aWorker(), error });
    tally.ended(shard, 1);
    tally.released(shard);
    expect(tally.share).toEqual({
      ...{ owned: [3], running: [] },
      failing: [{ shard, sink: null, ends, error }],
    });
  }
  tally.gained(shard);
  const worker = { ...aWorker(), runs: true };
  tally.started(shard, worker);
  expect(tally.share.failing).toEqual([]);
  tally.ended(shard, 1);
  tally.released(shard);
  expect(tally.share.failing).toEqual([{ shard, sink: null, ends: 1, error: null }]);
  tally.given(shard);
  expect(tally.share).toEqual({ owned: [], running: [], failing: [] });
});

test('takeovers are counted over the ends of workers', () => {
  const tally = new ShardTally();
  expect(tally.takeovers).toBe(0);
  tally.gained(shard);
  tally.started(shard, { ...aWorker(), runs: true, takeovers: 1 });
  expect(tally.takeovers).toBe(1);
  tally.ended(shard, 0);
  tally.released(shard);
  tally.gained(shard);
  tally.started(shard, { ...aWorker(), takeovers: 0 });
  expect(tally.takeovers).toBe(1);
});

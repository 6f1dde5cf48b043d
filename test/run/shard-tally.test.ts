// Which shards a process has, and which of their workers run, from the start of a worker to its end.

import { expect, test } from 'vitest';
import { ShardTally } from '../../src/run/shard-tally.ts';

const key = { shard: 3, sink: null };
const error = { code: 'disk_full', message: 'no space', next: 'Free some.' };
const aWorker = () => ({
  runs: false,
  isStopped: false,
  error: null as typeof error | null,
  takeovers: 0,
});

test('a shard counts as running from when its worker works to when it ends, also while it is stopped in order', () => {
  const tally = new ShardTally();
  tally.gained(key);
  const worker = aWorker();
  tally.started(key, worker);
  expect(tally.share).toEqual({
    ...{ owned: [3], running: [] },
    failing: [{ ...key, ends: 0, error: null }],
  });
  worker.runs = true;
  expect(tally.share).toEqual({ owned: [3], running: [3], failing: [] });

  worker.isStopped = true;
  tally.ended(key, 0);
  tally.released(key);
  expect(tally.share).toEqual({ owned: [], running: [], failing: [] });
});

test('a worker that ends by itself is failing until it runs again or another process has its shard, also in the pause between', () => {
  const tally = new ShardTally();
  for (const ends of [1, 2, 3]) {
    tally.gained(key);
    tally.started(key, { ...aWorker(), error });
    tally.ended(key, 1);
    tally.released(key);
    expect(tally.share).toEqual({
      ...{ owned: [3], running: [] },
      failing: [{ ...key, ends, error }],
    });
  }
  tally.gained(key);
  const worker = { ...aWorker(), runs: true };
  tally.started(key, worker);
  expect(tally.share.failing).toEqual([]);
  tally.ended(key, 1);
  tally.released(key);
  expect(tally.share.failing).toEqual([{ ...key, ends: 1, error: null }]);
  tally.given(key);
  expect(tally.share).toEqual({ owned: [], running: [], failing: [] });
});

test('takeovers are counted over the ends of workers, and the oldest answer of all groups is told', () => {
  const tally = new ShardTally();
  expect([tally.takeovers, tally.heardAt]).toEqual([0, null]);
  tally.gained(key);
  tally.started(key, { ...aWorker(), runs: true, takeovers: 1 });
  expect(tally.takeovers).toBe(1);
  tally.ended(key, 0);
  tally.released(key);
  tally.gained(key);
  tally.started(key, { ...aWorker(), takeovers: 0 });
  expect(tally.takeovers).toBe(1);
  tally.heard(key, 2_000);
  tally.heard({ shard: 4, sink: 'lake' }, 1_000);
  expect(tally.heardAt).toBe(1_000);
  tally.left({ shard: 4, sink: 'lake' });
  expect(tally.heardAt).toBe(2_000);
});

test('a worker of a sink that does not run is failing, and its shard is not owned by that', () => {
  const tally = new ShardTally();
  const sink = { shard: 3, sink: 'lake' };
  tally.gained(sink);
  expect(tally.share).toEqual({
    ...{ owned: [], running: [] },
    failing: [{ ...sink, ends: 0, error: null }],
  });
});

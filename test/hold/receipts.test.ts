// Moments kept for receipts are never later than the time of their number, however many are dropped.
import { expect, test } from 'vitest';
import { Store } from '../../src/hold/store.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

function aStore(): Store {
  const store = new Store({ dir: tempDir(), sync: 'normal', keepMs: 0 });
  afterThisTest(() => store.close());
  return store;
}

function hold(store: Store, count: number): void {
  const context = { source: 's', stream: 'a', kind: 'audit', company: 'c', fetchedAt: 0 } as const;
  const page = { context, body: Buffer.from('[]'), items: '', kept: null };
  store.transaction(() => store.hold({ ...page, uids: Buffer.alloc(32 * count) }, 0));
}

test('of many moments enough are kept for each position, and none is too late', () => {
  const store = aStore();
  const all = Array.from({ length: 500 }, (_, i) => {
    hold(store, 1 + (i % 3));
    store.receipts.reached('a', 1000 * i, 0);
    return { at: 1000 * i, end: store.end };
  });

  const kept = store.receipts.moments().get('a') ?? [];

  expect(kept.length).toBeLessThanOrEqual(24);
  expect(kept.at(-1)).toEqual(all.at(-1));
  for (const moment of kept) expect(all).toContainEqual(moment);
  const middle = kept.findLast(({ end }) => end <= store.end / 2);
  expect(middle).toBeDefined();
});

test('while nothing new comes, the newest moment stands for all of them', () => {
  const store = aStore();
  hold(store, 5);
  for (const at of [1, 2, 3]) store.receipts.reached('a', at, 0);

  expect(store.receipts.moments().get('a')).toEqual([{ at: 3, end: 5 }]);
});

test('a sink begins at the oldest event that is held when it first takes one, once', () => {
  const store = aStore();
  store.retainFor(['first']);
  hold(store, 5);
  store.transaction(() => store.acknowledge('first', { position: 5 }, 10));
  store.transaction(() => store.prune(10));
  hold(store, 2);

  store.transaction(() => store.acknowledge('later', { position: 6 }, 20));
  store.transaction(() => store.acknowledge('later', { position: 7 }, 30));

  expect(store.receipts.history('first', 5).begun).toEqual({ at: 10, first: 0 });
  expect(store.receipts.history('later', 7).begun).toEqual({ at: 20, first: 5 });
});

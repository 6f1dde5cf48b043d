// The tails of several shards as one: an event of any is sent at once, each gets its share, and omitted events are
// counted.

import { expect, test } from 'vitest';
import { joinedTap, type TailPart } from '../../src/watch/joined-tail.ts';
import type { TailTake } from '../../src/watch/tail.ts';
import { manualClock } from '../support/manual-clock.ts';

const wish = { form: 'readable', stream: '', text: '', where: '' };
const linesOf = (stream: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({ stream, severity: 1, text: `${stream} ${n}` }));
const aTake = (stream: string, count: number): TailTake => ({
  ...{ lines: linesOf(stream, count), looked: count, missed: 1, unjudged: 0 },
});

/** A shard whose responses are the test's, in the order of requests. */
function aPart(shard: number) {
  const asked: PromiseWithResolvers<TailTake>[] = [];
  const part: TailPart = {
    shard,
    tail: () => ({
      take() {
        const answer = Promise.withResolvers<TailTake>();
        asked.push(answer);
        return answer.promise;
      },
    }),
  };
  return { part, asked };
}

function aView(present: TailPart[], shards: readonly number[]) {
  const clock = manualClock();
  const deps = { forms: ['readable'], check: () => undefined, clock };
  const tap = joinedTap({ ...deps, parts: () => present, shards: () => shards });
  const view = tap.open(wish);
  const over = new AbortController();
  return { clock, take: () => view.take(over.signal), over };
}

test('a slow one delays no other, and is queried once until it answers', async () => {
  const [slow, quick] = [aPart(0), aPart(1)];
  const { take, clock } = aView([slow.part, quick.part], [0, 1]);
  const first = take();
  await clock.settle();
  quick.asked[0]?.resolve(aTake('quick', 2));
  expect(await first).toEqual({ ...aTake('quick', 2), unseen: [] });

  const second = take();
  await clock.settle();
  quick.asked[1]?.resolve(aTake('quick', 1));
  await second;
  // One response ahead of the reader, and no more.
  quick.asked[2]?.resolve(aTake('quick', 3));
  await clock.settle();
  expect([slow.asked.length, quick.asked.length]).toEqual([1, 3]);
  expect((await take()).lines).toEqual(linesOf('quick', 3));
});

test('each gets its share of the lines, and omitted lines are counted as missed', async () => {
  const parts = [aPart(0), aPart(1), aPart(2)];
  const { take, clock } = aView(
    parts.map(({ part }) => part),
    [0, 1, 2],
  );
  const taken = take();
  await clock.settle();
  for (const [n, count] of [50, 5, 40].entries())
    parts[n]?.asked[0]?.resolve(aTake(`s${n}`, count));
  const { lines, looked, missed } = await taken;

  const of = (stream: string) => lines.filter((line) => line.stream === stream);
  expect(lines.length).toBe(50);
  expect(of('s1')).toEqual(linesOf('s1', 5));
  // The newest of each.
  expect(of('s0')).toEqual(linesOf('s0', 50).slice(-of('s0').length));
  expect(of('s0').length).toBeGreaterThan(20);
  expect([looked, missed]).toEqual([50, 95 - 50 + 3]);
});

test('shards that are not looked at are named, at once and when that changes; one that fails is tried again', async () => {
  const { part, asked } = aPart(1);
  const present: TailPart[] = [];
  const { take, clock } = aView(present, [0, 1, 2]);
  expect((await take()).unseen).toEqual([0, 1, 2]);

  present.push(part);
  expect((await take()).unseen).toEqual([0, 2]);
  const failing = take();
  asked[0]?.reject(new Error('reading its config'));
  expect((await failing).unseen).toEqual([0, 1, 2]);
  const repaired = take();
  await clock.advance(6_000);
  expect((await repaired).unseen).toEqual([0, 2]);
  expect(asked.length).toBe(2);
});

test('a client that has left receives nothing', async () => {
  const { take, over } = aView([aPart(0).part], [0]);
  const taken = take();
  over.abort(new Error('gone'));
  await expect(taken).rejects.toThrow('gone');
});

// What can happen to a sink with a memory of its deliveries, as acts in any order: sends whose answers are noted or not,
// restarts, states that are copied, restored from the copy, or lost.

import fc from 'fast-check';
import type { FakeEngine } from './file-engine.ts';

const act = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      act: fc.constant('send' as const),
      count: fc.integer({ min: 1, max: 6 }),
      keep: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constantFrom(
        'restart' as const,
        'copy' as const,
        'restore' as const,
        'lose' as const,
      ),
    }),
  },
);

/** Any acts. */
export const anyActs = fc.array(act, { maxLength: 14 });

/** Performs them, then sends the rest and closes the sink. Throws if a batch is not delivered. */
export async function perform(
  engine: FakeEngine,
  acts: readonly (typeof act extends fc.Arbitrary<infer A> ? A : never)[],
): Promise<void> {
  let copy = engine.copy();
  for (const one of acts) {
    if (one.act === 'send') {
      const { outcome } = await engine.send(one.count, one);
      if (outcome !== 'delivered') throw new Error(`a batch is ${outcome}`);
      if (!one.keep) await engine.restart();
    } else if (one.act === 'restart') await engine.restart();
    else if (one.act === 'copy') copy = engine.copy();
    else if (one.act === 'restore') await engine.restore(copy);
    else await engine.restore();
  }
  await engine.catchUp();
  await engine.restart();
}

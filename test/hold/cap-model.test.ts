// The spool's cap against a sum: whatever is appended and passed, polling has room exactly while the content is below
// the cap, and after reaching the cap, while it is below nine tenths; a waiting poller continues at that moment, and no
// page is dropped for it. SLUICE_SPOOL_RUNS and SLUICE_SPOOL_SEED set more runs.

import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Spool } from '../../src/contracts/spool.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { anAppend } from '../support/a-page.ts';
import { tempDir } from '../support/temp.ts';

const bytesMax = 3_000;

type Action =
  | { readonly do: 'append'; readonly pad: number }
  | { readonly do: 'pass'; readonly pages: number };

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('append' as const), pad: fc.nat(600) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      pages: fc.integer({ min: 1, max: 2 }),
    }),
  },
);

function open(dir: string): Promise<Spool> {
  const settings = { dir, sync: 'normal', keepMs: 0, sinks: ['a'], eager: true } as const;
  return openSpool({ ...settings, bytesMax, reserveBytesMax: 2 ** 20 });
}

/** Waits as polling does; returns whether it could continue. */
function waitForRoom(spool: Spool): readonly [AbortController, () => boolean] {
  const waiting = new AbortController();
  let letGo = false;
  spool.room(waiting.signal).then(
    () => {
      letGo = true;
    },
    () => undefined,
  );
  return [waiting, () => letGo];
}

test('spool has room for polling by the bytes it has, and keeps every page', async () => {
  const spool = await open(tempDir());
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 40, size: 'max' }), async (actions) => {
      const begin = spool.gauge.end;
      await spool.acknowledge('a', { position: begin });
      const sizes: number[] = [];
      let passed = 0;
      let full = false;

      for (const step of actions) {
        const [waiting, letGo] = waitForRoom(spool);
        switch (step.do) {
          case 'append': {
            const entry = anAppend({ ids: [String(sizes.length)], pad: step.pad });
            sizes.push(entry.pages[0]?.body.length ?? 0);
            await spool.append(entry);
            break;
          }
          case 'pass':
            passed = Math.min(sizes.length, passed + step.pages);
            await spool.acknowledge('a', { position: begin + passed });
            break;
        }
        const bytes = sizes.slice(passed).reduce((sum, size) => sum + size, 0);
        const wasFull: boolean = full;
        full = wasFull ? bytes > bytesMax * 0.9 : bytes >= bytesMax;
        await turn();
        waiting.abort();
        const [asking, isLetGoAtOnce] = waitForRoom(spool);
        await turn();
        asking.abort();

        const [oldest, end] = [begin + passed, begin + sizes.length];
        expect(spool.gauge).toEqual({ bytes, oldest, end, answers: [], waiting: 0 });
        expect(isLetGoAtOnce()).toBe(!full);
        if (wasFull && step.do === 'pass') expect(letGo()).toBe(!full);
      }
      const held = await spool.read(begin + passed, 1e9);
      const kept = sizes.map((_, n) => begin + n).slice(passed);
      expect(held.map(({ first }) => first)).toEqual(kept);
    }),
    {
      numRuns: Number(process.env.SLUICE_SPOOL_RUNS ?? 40),
      seed: Number(process.env.SLUICE_SPOOL_SEED ?? 1),
    },
  );
  await spool.close();
});

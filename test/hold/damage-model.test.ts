// Whatever is damaged, wherever: after the next start each undelivered event is still stored as appended, or is read
// again. SLUICE_SPOOL_RUNS and SLUICE_SPOOL_SEED set more runs; a failure names the seed and path to replay it.

import { rmSync } from 'node:fs';
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import { type Accounts, copied, lossesIn, repair, twoRuns } from './accounts.ts';
import { damage, damages } from './damages.ts';

let both: readonly [Accounts, Accounts];

beforeAll(async () => {
  const { closed, killed } = await twoRuns();
  both = [closed, killed];
});

test('a damaged state directory loses nothing', () => {
  fc.assert(
    fc.property(fc.nat(1), damages, (which, given) => {
      const accounts = both[which] ?? both[0];
      const dir = copied(accounts.dir);
      damage(dir, given);

      try {
        repair(dir);
        expect(lossesIn(dir, accounts)).toEqual([]);
        expect(repair(dir).repaired).toBeNull();
      } catch (error) {
        // A changed version is one that a newer sluice may have: nothing was touched.
        if (!(error instanceof ExportError && error.message.includes('newer sluice'))) throw error;
      } finally {
        rmSync(dir, { recursive: true });
      }
    }),
    {
      numRuns: Number(process.env.SLUICE_SPOOL_RUNS ?? 25),
      seed: Number(process.env.SLUICE_SPOOL_SEED ?? 1),
    },
  );
});

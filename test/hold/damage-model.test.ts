// Whatever is damaged, wherever: after the next start each event that was not delivered is still held as it was appended, or
// is read again. SLUICE_SPOOL_RUNS and SLUICE_SPOOL_SEED ask for more of it; a failure names the seed and path to replay it.

import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import { type Accounts, copied, lossesIn, mend, twoRuns } from './accounts.ts';

let both: readonly [Accounts, Accounts];

beforeAll(async () => {
  const { closed, killed } = await twoRuns();
  both = [closed, killed];
});

/** One damage to one file; places are shares of its length. */
type Damage =
  | { readonly do: 'flip'; readonly at: number; readonly bit: number }
  | { readonly do: 'fill'; readonly at: number; readonly blocks: number; readonly with: number }
  | { readonly do: 'swap'; readonly at: number; readonly other: number }
  | { readonly do: 'cut'; readonly at: number }
  | { readonly do: 'remove' };

/** Not `double`, nearly all of which are next to 0. */
const share = fc.nat(999_999).map((n) => n / 1e6);
const damage: fc.Arbitrary<Damage> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('flip' as const), at: share, bit: fc.nat(7) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('fill' as const),
      at: share,
      blocks: fc.integer({ min: 1, max: 40 }),
      with: fc.constantFrom(0, 0xff, 0x41),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('swap' as const), at: share, other: share }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cut' as const), at: share }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const) }) },
);
const file = fc.oneof(
  { weight: 6, arbitrary: fc.constant('sluice.db') },
  { weight: 2, arbitrary: fc.constant('sluice.db-wal') },
  { weight: 1, arbitrary: fc.constant('delivered.json') },
);
const block = 512;

function apply(path: string, how: Damage): void {
  if (!existsSync(path)) return;
  const bytes = readFileSync(path);
  const { length } = bytes;
  const blockAt = (at: number) => {
    const start = Math.floor((at * length) / block) * block;
    return bytes.subarray(start, start + block);
  };
  switch (how.do) {
    case 'remove':
      rmSync(path);
      return;
    case 'cut':
      truncateSync(path, Math.floor(how.at * length));
      return;
    case 'flip': {
      const at = Math.floor(how.at * length);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << how.bit);
      break;
    }
    case 'fill': {
      const { byteOffset } = blockAt(how.at);
      const start = byteOffset - bytes.byteOffset;
      bytes.fill(how.with, start, Math.min(length, start + how.blocks * block));
      break;
    }
    case 'swap': {
      const [one, other] = [blockAt(how.at), blockAt(how.other)];
      const copy = Buffer.from(one);
      one.set(other.subarray(0, one.length));
      other.set(copy.subarray(0, other.length));
      break;
    }
  }
  writeFileSync(path, bytes);
}

test('a damaged state directory loses nothing', () => {
  fc.assert(
    fc.property(
      fc.nat(1),
      fc.array(fc.tuple(file, damage), { minLength: 1, maxLength: 4 }),
      (which, damages) => {
        const accounts = both[which] ?? both[0];
        const dir = copied(accounts.dir);
        for (const [name, how] of damages) apply(join(dir, name), how);

        try {
          mend(dir);
          expect(lossesIn(dir, accounts)).toEqual([]);
          expect(mend(dir).mended).toBeNull();
        } catch (error) {
          // A changed version is one that a newer sluice may have: nothing was touched.
          if (!(error instanceof ExportError && error.message.includes('newer sluice')))
            throw error;
        } finally {
          rmSync(dir, { recursive: true });
        }
      },
    ),
    {
      numRuns: Number(process.env.SLUICE_SPOOL_RUNS ?? 25),
      seed: Number(process.env.SLUICE_SPOOL_SEED ?? 1),
    },
  );
});

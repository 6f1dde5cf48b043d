// The torture run, short: 25 seconds in which everything breaks, then the accounts. A failing seed is run again, as long
// as one likes, with `npm run torture -- --seed N --minutes M`. SLUICE_TORTURE_SEED chooses another seed.

import { expect, test } from 'vitest';
import { reportOf, runTorture } from '../torture/torture.ts';

const seed = Number(process.env.SLUICE_TORTURE_SEED ?? 1);

test(`sluice loses, invents and repeats nothing while everything breaks (seed ${seed})`, async () => {
  const story: string[] = [];

  const result = await runTorture({ seed, forMs: 25_000, tell: (line) => story.push(line) });

  expect(result.findings, [...story, result.dir].join('\n')).toEqual([]);
  expect(result.accounts.events).toBeGreaterThan(2_000);
  console.log(reportOf(result).join('\n'));
});

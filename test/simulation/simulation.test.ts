// Some hundred worlds of test/simulation at each run of the tests; `npm run simulate -- --seeds 10000` has many more.

import { expect, test } from 'vitest';
import { type Kind, worlds } from './worlds.ts';

/** Worlds of each kind, and those in which something was found once. */
const kinds: readonly { kind: Kind; count: number; found: readonly number[] }[] = [
  {
    kind: 'list',
    count: 60,
    found: [85, 320, 609, 2051, 2092, 3896, 4540, 5440, 5948, 6326, 8469, 8641, 9355],
  },
  { kind: 'collection', count: 25, found: [126, 1438, 2150, 3402] },
  { kind: 'parents', count: 10, found: [68, 78, 829, 1077, 1751, 4873, 5152, 5662, 6842, 7426] },
];

test.each(kinds)(
  'whatever the server, the faults and the kills, every expected record is reported, once: $kind',
  async ({ kind, count, found }) => {
    const findings: string[] = [];
    for (const seed of [...Array.from({ length: count }, (_, n) => n + 1), ...found]) {
      const verdict = await worlds[kind](seed);
      findings.push(...verdict.findings.map((finding) => `seed ${seed}: ${finding}`));
    }

    expect(findings).toEqual([]);
  },
);

test.each(kinds)('a seed does the same again: $kind', async ({ kind }) => {
  const lines = async () => {
    const reported: string[] = [];
    await worlds[kind](7, (line) => reported.push(line));
    return reported;
  };

  expect(await lines()).toEqual(await lines());
});

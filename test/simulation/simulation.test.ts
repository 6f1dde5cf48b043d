// Some hundred worlds of test/simulation at each run of the tests; `npm run simulate -- --seeds 10000` has many more.

import { expect, test } from 'vitest';
import { runSeed } from './run.ts';

/** Worlds in which something was found once. */
const found = [320, 2051, 2092, 3896, 4540, 8641, 9355];

test('every record that is owed is held, once, whatever the server, the faults and the kills', async () => {
  const findings: string[] = [];
  for (const seed of [
    ...Array(250)
      .keys()
      .map((n) => n + 1),
    ...found,
  ]) {
    const verdict = await runSeed(seed);
    findings.push(...verdict.findings.map((finding) => `seed ${seed}: ${finding}`));
  }

  expect(findings).toEqual([]);
});

test('a seed does the same again', async () => {
  const lines = async () => {
    const told: string[] = [];
    await runSeed(7, (line) => told.push(line));
    return told;
  };

  expect(await lines()).toEqual(await lines());
});

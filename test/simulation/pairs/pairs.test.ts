// Some hundred pairs of APIs at each run of the tests; `npm run simulate -- --of pairs --seeds 10000` has many more.

import { expect, test } from 'vitest';
import { runPairs } from './run.ts';

const count = 300;

test('whatever the two APIs, the operator and the kills do, each record is delivered once', async () => {
  const findings: string[] = [];
  for (let seed = 1; seed <= count; seed += 1) {
    const verdict = await runPairs(seed);
    findings.push(...verdict.findings.map((finding) => `seed ${seed}: ${finding}`));
  }

  expect(findings).toEqual([]);
});

test('a seed does the same again', async () => {
  const lines = async () => {
    const reported: string[] = [];
    await runPairs(7, (line) => reported.push(line));
    return reported;
  };

  expect(await lines()).toEqual(await lines());
});

// Some dozens of pairs of APIs at each run of the tests; `npm run simulate -- --of pairs --seeds 10000` has many more.

import { expect, test } from 'vitest';
import { runPairs } from './run.ts';

const count = 60;
/** Each shows a flaw of the table of mutations that no other seed of this test shows. */
const showing = [63, 68, 94, 167, 280];

test('whatever the two APIs, the operator and the kills do, each record is delivered once', async () => {
  const findings: string[] = [];
  for (const seed of [...Array.from({ length: count }, (_, n) => n + 1), ...showing]) {
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

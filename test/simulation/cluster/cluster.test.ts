// Some dozens of simulated clusters at each run of the tests; `npm run simulate -- --of cluster
// --seeds 10000` runs many more.

import { beforeAll, expect, test, vi } from 'vitest';
import { findMutations } from '../mutate.ts';
import { runCluster } from './run.ts';

vi.mock('@platformatic/kafka', () => import('./kafka.ts'));
vi.mock('../../../src/hold/rebuild.ts', () => import('./rebuilding.ts'));
vi.mock('../../../src/run/shard-child.ts', () => import('./machine.ts'));

const count = 40;
/** Seeds that have found a fault once. */
const found = [368, 425];

// Modules that are loaded on first use are loaded in real time, and no simulated world waits for real time.
beforeAll(async () => {
  await runCluster(1);
});

test('whoever is killed, stopped or cut off, each record is held and delivered, and once', async () => {
  const findings: string[] = [];
  for (const seed of [...Array.from({ length: count }, (_, n) => n + 1), ...found]) {
    const verdict = await runCluster(seed);
    findings.push(...verdict.findings.map((finding) => `seed ${seed}: ${finding}`));
  }

  expect(findings).toEqual([]);
});

test('a seed does the same again', async () => {
  const lines = async () => {
    const reported: string[] = [];
    await runCluster(7, (line) => reported.push(line));
    return reported;
  };

  expect(await lines()).toEqual(await lines());
});

test('each flaw that the code could have is found', { tags: ['long'] }, async () => {
  expect(await findMutations(['cluster'], { rare: false })).toBe(0);
});

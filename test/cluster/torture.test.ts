// The torture of three processes that share their state in Kafka, short: then every record is once in the sink's topic and once in
// the archive. A failing seed is run again, as long as one likes, with `npm run torture -- --cluster --seed N --minutes M`.
// SLUICE_TORTURE_SEED chooses another seed.

import { expect, test } from 'vitest';
import { clusterReportOf, runClusterTorture } from '../torture/cluster/torture.ts';

const seed = Number(process.env.SLUICE_TORTURE_SEED ?? 1);

test(`three processes lose and repeat nothing while they, Kafka and upstream break (seed ${seed})`, {
  tags: ['long'],
}, async () => {
  const story: string[] = [];

  const result = await runClusterTorture({ seed, forMs: 20_000, tell: (line) => story.push(line) });

  expect(result.findings, [...story, result.dir].join('\n')).toEqual([]);
  expect(result.records).toBeGreaterThan(500);
  console.log(clusterReportOf(result).join('\n'));
});

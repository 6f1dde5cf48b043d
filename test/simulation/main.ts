// `npm run simulate -- --seeds 10000`: that many seeds, from `--from` on, or the one of `--seed`, told step by step. Ends with
// 1 and the seeds that failed if any did.

import { setImmediate } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { runSeed } from './run.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
  },
});

const one = values.seed === undefined ? null : Number(values.seed);
const from = one ?? Number(values.from);
const to = one === null ? from + Number(values.seeds) : from + 1;
const begun = performance.now();
let [requests, records, crashes, failed] = [0, 0, 0, 0];
for (let seed = from; seed < to; seed += 1) {
  // What ends between turns of the event loop, which the injected clock never lets come: weak references are let go.
  await setImmediate();
  const verdict = await runSeed(seed, one === null ? undefined : (line) => console.log(line));
  requests += verdict.requests;
  records += verdict.records;
  crashes += verdict.crashes;
  if (verdict.findings.length === 0) continue;
  failed += 1;
  console.error(`seed ${seed}: ${JSON.stringify(verdict.traits)}`);
  for (const finding of verdict.findings.slice(0, 5)) console.error(`  ${finding}`);
}
const seconds = (performance.now() - begun) / 1_000;
console.log(
  `${to - from} seeds in ${seconds.toFixed(1)} s: ${requests} requests, ${records} records, ${crashes} kills; ${failed} failed`,
);
process.exit(failed === 0 ? 0 : 1);

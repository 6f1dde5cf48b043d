// `npm run simulate -- --seeds 10000`: that many seeds of each kind of world, from `--from` on, or the one of `--seed`,
// logged step by step; `--of` names one kind. Ends with 1 and the seeds that failed if any did, at the first of them
// with `--first`. `--mutations`: see mutate.ts.

import { setImmediate } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import './archive/hooks.ts';
import './cluster/hooks.ts';
import { findMutations } from './mutate.ts';
import { type Kind, worlds } from './worlds.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    of: { type: 'string' },
    first: { type: 'boolean', default: false },
    mutations: { type: 'boolean', default: false },
  },
});

const kinds = (Object.keys(worlds) as Kind[]).filter((kind) => (values.of ?? kind) === kind);
if (kinds.length === 0) throw new Error(`--of is one of ${Object.keys(worlds).join(', ')}`);
let failed = 0;
if (values.mutations) failed = await findMutations(kinds);
else for (const kind of kinds) failed += await simulate(kind);
process.exit(failed === 0 ? 0 : 1);

async function simulate(kind: Kind): Promise<number> {
  const one = values.seed === undefined ? null : Number(values.seed);
  const from = one ?? Number(values.from);
  const to = one === null ? from + Number(values.seeds) : from + 1;
  const begun = performance.now();
  let [requests, records, crashes, failed] = [0, 0, 0, 0];
  let seed = from;
  for (; seed < to && !(values.first && failed > 0); seed += 1) {
    // Runs work between turns of the event loop, which the injected clock never yields to: weak references are
    // released.
    await setImmediate();
    const report = one === null ? undefined : (line: string) => console.log(line);
    const verdict = await worlds[kind](seed, report);
    requests += verdict.requests;
    records += verdict.records;
    crashes += verdict.crashes;
    if (verdict.findings.length === 0) continue;
    failed += 1;
    console.error(`${kind} seed ${seed}: ${JSON.stringify(verdict.traits)}`);
    for (const finding of verdict.findings.slice(0, 5)) console.error(`  ${finding}`);
  }
  const seconds = (performance.now() - begun) / 1_000;
  console.log(
    `${kind}: ${seed - from} seeds in ${seconds.toFixed(1)} s: ${requests} requests, ${records} records, ${crashes} kills; ${failed} failed`,
  );
  return failed;
}

// `npm run torture -- --minutes 20 --seed 7`: a torture run as long as one likes. Prints the seed first, so that a run that
// fails can be run again, and at the end what was survived. Ends with 1 and what is missing where if anything is. With
// `--cluster` three processes that share their state in Kafka are tortured (cluster/torture.ts), with `--shards 4` as several.

import { parseArgs } from 'node:util';
import { endAllChildren } from '../support/children.ts';
import { clusterReportOf, runClusterTorture } from './cluster/torture.ts';
import { reportOf, runTorture } from './torture.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    rate: { type: 'string', default: '8' },
    cluster: { type: 'boolean', default: false },
    shards: { type: 'string', default: '1' },
    quiet: { type: 'boolean', default: false },
  },
});
const seed = Number(values.seed);
const forMs = Number(values.minutes) * 60_000;
const begun = performance.now();
const tell = (line: string) => {
  if (values.quiet) return;
  console.log(`${((performance.now() - begun) / 1000).toFixed(1).padStart(7)} s  ${line}`);
};

console.log(`torture: ${values.minutes} minutes, --seed ${seed}`);
const options = { seed, forMs, rate: Number(values.rate), tell };
const { findings, dir, report } = await (values.cluster ? clusterRun() : run());
for (const line of report) console.log(line);
for (const finding of findings) console.error(finding);
console.log(
  findings.length === 0
    ? `seed ${seed}: nothing lost, nothing invented, nothing repeated where once is promised`
    : `seed ${seed}: FAILED, see ${dir}`,
);
await endAllChildren();
process.exit(findings.length === 0 ? 0 : 1);

async function run() {
  const result = await runTorture(options);
  return { ...result, report: reportOf(result) };
}

async function clusterRun() {
  const result = await runClusterTorture({
    ...options,
    shards: Number(values.shards),
  });
  return { ...result, report: clusterReportOf(result) };
}

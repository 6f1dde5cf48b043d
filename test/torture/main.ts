// `npm run torture -- --minutes 20 --seed 7`: a torture run as long as one likes. Prints the seed first, so that a run that
// fails can be run again, and at the end what was survived. Ends with 1 and what is missing where if anything is.

import { parseArgs } from 'node:util';
import { endAllChildren } from '../support/children.ts';
import { reportOf, runTorture } from './torture.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    rate: { type: 'string', default: '8' },
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
const result = await runTorture({ seed, forMs, rate: Number(values.rate), tell });
for (const line of reportOf(result)) console.log(line);
for (const finding of result.findings) console.error(finding);
console.log(
  result.findings.length === 0
    ? `seed ${seed}: nothing lost, nothing invented, nothing repeated where once is promised`
    : `seed ${seed}: FAILED, see ${result.dir}`,
);
await endAllChildren();
process.exit(result.findings.length === 0 ? 0 : 1);

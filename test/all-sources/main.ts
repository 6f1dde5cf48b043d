// `npm run all-sources -- --minutes 10`: every source of both APIs, from the sandbox under its
// fault script to a file and a real Kafka. Prints what was owed of each source and what came, and
// ends with 1 where anything is missing, invented or there twice.

import { parseArgs } from 'node:util';
import { endAllChildren } from '../support/children.ts';
import { runAllSources } from './run.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    rate: { type: 'string', default: '2' },
  },
});
const begun = performance.now();
const report = (line: string) => {
  console.log(`${((performance.now() - begun) / 1_000).toFixed(1).padStart(7)} s  ${line}`);
};

const { accounts, events, findings, dir } = await runAllSources({
  forMs: Number(values.minutes) * 60_000,
  rate: Number(values.rate),
  seed: Number(values.seed),
  tell: report,
});
for (const { source, owed, found } of accounts) {
  console.log(`${source.padEnd(16)} ${String(found).padStart(6)} of ${owed}`);
}
const all = [
  ...findings,
  ...accounts.flatMap((account) =>
    account.findings.slice(0, 10).map((finding) => `${account.source}: ${finding.slice(0, 600)}`),
  ),
];
for (const finding of all) console.error(finding);
console.log(`${events} events; ${all.length === 0 ? 'all is there, once' : `FAILED, see ${dir}`}`);
await endAllChildren();
process.exit(all.length === 0 ? 0 : 1);

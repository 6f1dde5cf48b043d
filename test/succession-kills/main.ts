// `npm run succession-kills -- --state kafka --kills 50 --records 10000 --seed 7`: moves a source from one API to the other while
// the process that works on it is killed so many times (kills.ts), and ends with 1 where a record is lost, or is there twice
// where the sink delivers once.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { randomFrom } from '../archive-kills/kills.ts';
import { endAllChildren } from '../support/children.ts';
import { startKafka } from '../support/kafka.ts';
import { findingsOf, runKills } from './kills.ts';

const { values } = parseArgs({
  options: {
    state: { type: 'string', default: 'sqlite' },
    kills: { type: 'string', default: '50' },
    records: { type: 'string', default: '10000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const [kills, records, seed] = [values.kills, values.records, values.seed].map(Number) as [
  number,
  number,
  number,
];
const state = values.state === 'kafka' ? 'kafka' : 'sqlite';
const dir = mkdtempSync(join(tmpdir(), 'sluice-succession-kills-'));

console.log(
  `succession-kills: ${kills} kills, --state ${state} --records ${records} --seed ${seed}`,
);
const kafka = await startKafka();
const brokers = [kafka.addresses.plain];
const report = (line: string) => console.log(line);
const result = await runKills({
  state,
  kills,
  records,
  random: randomFrom(seed),
  brokers,
  dir,
  tell: report,
});
const findings = findingsOf(result);
console.log(`${result.records} records; kills: ${JSON.stringify(result.kills)}`);
console.log(`kills in a cutover or rollback: ${JSON.stringify(result.turned)}`);
for (const [name, marks] of Object.entries(result.repeated)) {
  console.log(`${name}: ${result.lost[name]?.length} lost, ${marks.length} repeated`);
}
for (const finding of findings) console.error(finding);
const isWhole = findings.length === 0;
console.log(isWhole ? `seed ${seed}: each record once` : `seed ${seed}: FAILED, see ${dir}`);
await kafka.kill();
if (isWhole) rmSync(dir, { recursive: true, force: true });
await endAllChildren();
process.exit(isWhole ? 0 : 1);

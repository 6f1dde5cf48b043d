// `npx node test/security/fuzz-main.ts --records 1000000 --seed 1`: any number of torture records through normalising,
// every format and framing, each read back by independent decoders. The same seed gives the same records; `--from`
// starts at a record, so that a long run can be split and one finding replayed alone. Ends with 1 if anything was
// found.

import { parseArgs } from 'node:util';
import { fuzz } from './fuzz.ts';
import { pageRecords } from './torture-page.ts';

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '100000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    from: { type: 'string', default: '0' },
  },
});
const seed = Number(values.seed);
const firstPage = Math.floor(Number(values.from) / pageRecords);
const pages = Math.ceil(Number(values.records) / pageRecords);
const stepPages = 200;
const findingsMax = 20;
const begun = performance.now();
const begunCpu = process.cpuUsage();

console.log(`fuzz: ${pages * pageRecords} records from ${firstPage * pageRecords}, --seed ${seed}`);
let decoded = 0;
let found = 0;
for (let page = firstPage; page < firstPage + pages && found < findingsMax; page += stepPages) {
  const result = fuzz(seed, page, Math.min(stepPages, firstPage + pages - page));
  decoded += result.decoded;
  found += result.findings.length;
  for (const { record, what } of result.findings.slice(0, findingsMax)) {
    console.error(`record ${record} (--seed ${seed} --from ${record} --records 1): ${what}`);
  }
  if (page % (stepPages * 10) === firstPage % (stepPages * 10)) {
    const seconds = Math.round((performance.now() - begun) / 1_000);
    console.log(`${String(seconds).padStart(6)} s  ${decoded} frames read back`);
  }
}
const { user, system } = process.cpuUsage(begunCpu);
console.log(
  `seed ${seed}: ${decoded} frames read back, ${found} findings, ${((user + system) / 1e6).toFixed(0)} s of CPU`,
);
process.exit(found === 0 ? 0 : 1);

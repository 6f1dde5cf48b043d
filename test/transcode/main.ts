// `npx node test/transcode/main.ts --records 10000000`: that many hostile records, each written with and without the
// transcoder, in formats and contexts that the seed chooses; from `--from` on. Ends with 1 and the first records that
// differ, if any did.

import { parseArgs } from 'node:util';
import { compareSeed } from './differences.ts';

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '200000' },
    from: { type: 'string', default: '1' },
  },
});
const pagesASeed = 150;
const reported = 5;

let records = 0;
let written = 0;
let different = 0;
const begun = performance.now();
for (let seed = Number(values.from); records < Number(values.records); seed += 1) {
  const found = await compareSeed(seed, pagesASeed);
  records += found.records;
  written += found.written;
  for (const { record, on, off } of found.differences.slice(0, Math.max(0, reported - different))) {
    console.log(`seed ${seed}\n record ${record}\n     on ${on}\n    off ${off}`);
  }
  different += found.differences.length;
}
const seconds = Math.round((performance.now() - begun) / 1000);
console.log(
  `${records} records, ${written} of them transcoded, ${different} different, in ${seconds} s`,
);
process.exit(different === 0 ? 0 : 1);

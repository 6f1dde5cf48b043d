// `npm run archive-kills -- --kills 300 --seed 7`: kills the program that writes an archive so many times, and ends with 1
// where the archive is not whole then, or has an event twice, or lacks one.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { endAllChildren } from '../support/children.ts';
import { findingsOf, randomFrom, runKills } from './kills.ts';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '300' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const [kills, seed] = [Number(values.kills), Number(values.seed)];
const dir = mkdtempSync(join(tmpdir(), 'sluice-archive-kills-'));

console.log(`archive-kills: ${kills} kills, --seed ${seed}`);
const random = randomFrom(seed);
const result = await runKills({ kills, random, dir, tell: (line) => console.log(line) });
const findings = findingsOf(result);
const { archived, entries, starts } = result;
console.log(`${archived.length} events in ${entries} entries, written by ${starts} processes`);
for (const finding of findings) console.error(finding);
console.log(
  findings.length === 0
    ? `seed ${seed}: whole, nothing twice, nothing missing`
    : `seed ${seed}: FAILED, see ${dir}`,
);
if (findings.length === 0) rmSync(dir, { recursive: true, force: true });
await endAllChildren();
process.exit(findings.length === 0 ? 0 : 1);

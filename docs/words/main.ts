// `npm run words`: the lint, for people and .ci/run. `--all` shows each finding, `--update` lowers the counts
// in exceptions.json; it never raises one.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Exceptions, flawsOf, measured, neededFor } from './lint.ts';

const file = join(import.meta.dirname, 'exceptions.json');
const allowed = JSON.parse(readFileSync(file, 'utf8')) as Exceptions;
const [option] = process.argv.slice(2);
const measures = measured();
const flaws = flawsOf(measures, allowed);

const show = (line: string) => void process.stdout.write(`${line}\n`);
if (option === '--all') measures.findings.forEach(show);
flaws.forEach(show);
if (flaws.length > 0) {
  const names = new Set(flaws.map((flaw) => flaw.slice(0, flaw.indexOf(': '))));
  const isOf = (finding: string) => [...names].some((name) => finding.startsWith(name));
  for (const finding of measures.findings.filter(isOf)) show(`  ${finding}`);
  show('Use the words of docs/words/dictionary.ts.');
  process.exitCode = 1;
} else if (option === '--update') {
  writeFileSync(file, `${JSON.stringify(neededFor(measures), null, 2)}\n`);
}

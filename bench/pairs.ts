// `npx node bench/pairs.ts --before DIR [--job TEXT] [--events N] [--rounds N]`: the CPU of a job in this checkout and in
// another one with its own bundle, in turn, so that both see the same machine. Prints each pair, then the medians.

import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Cost, costOf, mediansOf, spreadOf } from './cost.ts';
import { type Job, jobs, runJob } from './jobs.ts';
import { parseUs } from './parse-cost.ts';
import type { Usage } from './program.ts';
import { pageEvents } from './work.ts';

const { values } = parseArgs({
  options: {
    before: { type: 'string' },
    job: { type: 'string', default: 'CEF' },
    events: { type: 'string', default: '150000' },
    rounds: { type: 'string', default: '5' },
  },
});
if (values.before === undefined) throw new Error('--before names the other checkout');

const original: Job = {
  ...{ name: 'JSON (original) over TCP', floor: 'original', frames: 1 },
  sinks: ({ tcp }) =>
    `text: { type: syslog, address: "tcp://127.0.0.1:${tcp}", resend_window: 500ms, format: { type: json, schema: original } }`,
};
const job = [...jobs, original].find(({ name }) => name.includes(values.job));
if (job === undefined) throw new Error(`no job has ${values.job} in its name`);
const other = join(resolve(values.before), 'bench/jobs.ts');
const before = (await import(other)) as { readonly runJob: typeof runJob };
const pages = Math.max(3, Math.round(Number(values.events) / pageEvents));

const sides = [before.runJob, runJob].map((run) => ({
  measure: () => costOf((count) => run(job, count), pages),
  costs: [] as Cost<Usage>[],
}));
const ratios: number[] = [];
for (let round = 0; round < Number(values.rounds); round += 1) {
  const order = round % 2 === 0 ? sides : sides.toReversed();
  for (const side of order) side.costs.push(await side.measure());
  const [was = 0, is = 0] = sides.map(({ costs }) => costs[round]?.cpuUs ?? 0);
  ratios.push(is / was);
  const load = readFileSync('/proc/loadavg', 'utf8').split(' ')[0];
  console.log(
    `before ${was.toFixed(1)} us, now ${is.toFixed(1)}, times ${(is / was).toFixed(2)}, load ${load}`,
  );
}
console.table(
  sides.map(({ costs }, i) => ({ side: i === 0 ? 'before' : 'now', ...mediansOf(costs) })),
);
const { median, least, most } = spreadOf(ratios);
console.log(
  `${job.name}: ${median.toFixed(2)} times (${least.toFixed(2)} to ${most.toFixed(2)}) the CPU; JSON.parse ${parseUs().toFixed(1)} us an event`,
);

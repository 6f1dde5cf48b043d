// `npm run bench [-- --events N] [--job TEXT] [--json FILE]`: the journey of the real program, measured from outside. A
// static upstream and counting receivers run in processes of their own; sluice runs as `run --once` on a durable spool.
// CPU is user + system time of the sluice process, start-up taken off by a run over a single page. Beside each job
// stands its floor, measured in the same run: the same events cut, parsed, built and written to memory by the same
// functions, with no network, no spool and no loop between. `JSON.parse` tells how fast this machine is.

import { parseArgs } from 'node:util';
import { backlogMemory } from './backlog.ts';
import { floors } from './floor.ts';
import { jobs, runJob } from './jobs.ts';
import { writeResults } from './results.ts';
import { pageBody, pageEvents } from './work.ts';

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '300000' },
    job: { type: 'string', default: '' },
    json: { type: 'string' },
  },
});
const pages = Math.max(2, Math.round(Number(values.events) / pageEvents));
const events = pages * pageEvents;
const megabytes = (bytes: number) => Math.round(bytes / 1e6);

/** CPU microseconds that `JSON.parse` takes for an event. */
function parseUs(): number {
  const body = pageBody(0, false).toString();
  const rounds = 100;
  for (let i = 0; i < rounds; i += 1) JSON.parse(body);
  const begun = process.cpuUsage();
  for (let i = 0; i < rounds; i += 1) JSON.parse(body);
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / rounds / pageEvents;
}

const floor = floors();
const rows: Record<string, string | number | null>[] = [];
for (const job of jobs.filter(({ name }) => name.includes(values.job))) {
  const startUp = await runJob(job, 1);
  const whole = await runJob(job, pages);
  const cpuUs = (whole.cpuUs - startUp.cpuUs) / (events - pageEvents);
  rows.push({
    job: job.name,
    'CPU us/event': Number(cpuUs.toFixed(1)),
    'floor us/event': Number(floor[job.floor].toFixed(1)),
    'times the floor': Number((cpuUs / floor[job.floor]).toFixed(2)),
    'events/CPU-second': Math.round(1e6 / cpuUs),
    'events/second': Math.round(events / whole.seconds),
    'RSS peak MB': megabytes(whole.rssPeakBytes),
    'loop delay p99 ms': whole.delayP99Ms,
    'disk bytes/event': Math.round(whole.writtenBytes / events),
  });
}
console.table(rows);
const memory = await backlogMemory(pages);
const parse = parseUs();
console.log(
  `A sink down: RSS ${megabytes(memory.quarter)} MB at a quarter of the backlog, at most ${megabytes(memory.filling)} MB until its end, at most ${megabytes(memory.draining)} MB while it was drained.`,
);
console.log(
  `${events} events of about 700 bytes, pages of ${pageEvents}, Node ${process.versions.node}, JSON.parse ${parse.toFixed(1)} us/event`,
);
if (values.json !== undefined) writeResults(values.json, events, { parseUs: parse, rows, memory });

// `npm run bench [-- --events N] [--rounds N] [--job TEXT] [--json FILE]`: the journey of the real program, measured
// from outside. A static upstream and counting receivers run in processes of their own; sluice runs as `run --once` on
// a durable spool. CPU is user + system time of the sluice process, minus start-up; jobs run in turn (cost.ts). Beside
// each job is its floor, measured in the same run: the same events cut, parsed, built and written to memory by the same
// functions, without network, spool and loop. `JSON.parse` shows the speed of this machine.

import { parseArgs } from 'node:util';
import { backlogCost } from './backlog.ts';
import { costOf, inTurn, median, mediansOf } from './cost.ts';
import { floors } from './floor.ts';
import { jobs, runJob } from './jobs.ts';
import { parseUs } from './parse-cost.ts';
import { writeResults } from './results.ts';
import { pageEvents } from './work.ts';

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '300000' },
    rounds: { type: 'string', default: '3' },
    job: { type: 'string', default: '' },
    json: { type: 'string' },
  },
});
const pages = Math.max(3, Math.round(Number(values.events) / pageEvents));
const events = pages * pageEvents;
const megabytes = (bytes: number) => Math.round(bytes / 1e6);

const floor = floors();
const cases = jobs.filter(({ name }) => name.includes(values.job));
const said = await inTurn(cases, Number(values.rounds), (job) =>
  costOf((count) => runJob(job, count), pages),
);
const rows = cases.map((job, i) => {
  const rounds = said[i] ?? [];
  const cpuUs = median(rounds.map((round) => round.cpuUs));
  const delays = rounds.flatMap(({ whole }) => whole.delayP99Ms ?? []);
  return {
    job: job.name,
    ...mediansOf(rounds),
    'floor us/event': Number(floor[job.floor].toFixed(1)),
    'times the floor': Number((cpuUs / floor[job.floor]).toFixed(2)),
    'events/CPU-second': Math.round(1e6 / cpuUs),
    'events/second': Math.round(events / median(rounds.map(({ whole }) => whole.seconds))),
    'loop delay p99 ms': delays.length === 0 ? null : median(delays),
    'disk bytes/event': Math.round(median(rounds.map((one) => one.whole.writtenBytes)) / events),
  };
});
console.table(rows);
const memory = await backlogCost(pages);
const parse = parseUs();
console.log(
  `A sink down: RSS ${megabytes(memory.quarter)} MB at a quarter of the backlog, at most ${megabytes(memory.filling)} MB until its end, at most ${megabytes(memory.draining)} MB while it was drained.`,
);
console.log(
  `${events} events of about 700 bytes, pages of ${pageEvents}, Node ${process.versions.node}, JSON.parse ${parse.toFixed(1)} us/event`,
);
if (values.json !== undefined) {
  const rounds = Number(values.rounds);
  writeResults(values.json, events, { rounds, parseUs: parse, rows, memory });
}

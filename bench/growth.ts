// `npx node bench/growth.ts --by page|bytes|sinks|events [--events N]`: how the cost of an event grows with the size of pages,
// its own size, the number of sinks and the number of events, CEF over TCP each time. What streams cost is in streams.ts.

import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { type Job, jobs, runJob } from './jobs.ts';
import { pageEvents } from './work.ts';

const { values } = parseArgs({
  options: {
    by: { type: 'string', default: 'page' },
    events: { type: 'string', default: '200000' },
    row: { type: 'boolean', default: false },
  },
});
const [cef] = jobs as readonly [Job];

/** The job with so many sinks instead of one, all of the same kind. */
function times(sinks: number): Job {
  const each = (far: Parameters<Job['sinks']>[0]) =>
    Array.from({ length: sinks }, (_, i) => cef.sinks(far).replace(/^\w+/, `siem${i}`));
  return { ...cef, frames: sinks, sinks: (far) => each(far).join('\n  ') };
}

/** CPU microseconds per event of a job over so many events, start-up taken off. */
async function measure(job: Job, events: number) {
  const pages = Math.max(2, Math.round(events / pageEvents));
  const startUp = await runJob(job, 1);
  const whole = await runJob(job, pages);
  return {
    'CPU us/event': Number(((whole.cpuUs - startUp.cpuUs) / ((pages - 1) * pageEvents)).toFixed(1)),
    'RSS peak MB': Math.round(whole.rssPeakBytes / 1e6),
    'disk bytes/event': Math.round(whole.writtenBytes / (pages * pageEvents)),
  };
}

/** The row of a page size, measured in a process of its own, since the size holds for a whole process. */
function ofPages(size: number, eventBytes = 0): object {
  const args = [import.meta.filename, '--row', '--events', values.events];
  const { stdout, status } = spawnSync(process.execPath, args, {
    env: { ...process.env, SLUICE_BENCH_PAGE: String(size), ...sized(eventBytes) },
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`measuring pages of ${size} failed`);
  return JSON.parse(stdout) as object;
}

function sized(eventBytes: number): Record<string, string> {
  return eventBytes === 0 ? {} : { SLUICE_BENCH_EVENT_BYTES: String(eventBytes) };
}

const events = Number(values.events);
const rows: object[] = [];
if (values.row) console.log(JSON.stringify(await measure(cef, events)));
else if (values.by === 'page') {
  for (const page of [100, 250, 500, 1_000]) rows.push({ page, ...ofPages(page) });
} else if (values.by === 'bytes') {
  for (const [page, bytes] of [
    [1_000, 700],
    [1_000, 2_300],
    [100, 23_700],
  ] as const) {
    rows.push({ 'bytes/event': bytes, page, ...ofPages(page, bytes) });
  }
} else if (values.by === 'sinks') {
  for (const sinks of [1, 2, 4]) rows.push({ sinks, ...(await measure(times(sinks), events)) });
} else if (values.by === 'events') {
  for (const part of [1 / 4, 1 / 2, 1, 2]) {
    rows.push({ events: events * part, ...(await measure(cef, events * part)) });
  }
} else throw new Error(`--by takes page, bytes, sinks or events, not ${values.by}`);
if (!values.row) console.table(rows);

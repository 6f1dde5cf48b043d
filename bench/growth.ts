// `npx node bench/growth.ts [--by bytes|page|sinks|streams|backlog|events] [--events N] [--rounds N] [--json FILE]`: how the cost
// grows with an event's size, the size of pages, and the number of sinks, idle streams, held events and events; all of them
// without `--by`. One thing is changed at a time, its values taken in turn (cost.ts), CEF over TCP.

import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';
import { backlogCost } from './backlog.ts';
import { costOf, inTurn, median, spreadOf } from './cost.ts';
import { type Job, jobs, runJob } from './jobs.ts';
import { writeResults } from './results.ts';
import { streamsCost } from './streams.ts';
import { pageEvents } from './work.ts';

/** One value in one pass. */
interface Said {
  readonly cpu: number;
  readonly rssBytes: number;
}

/** What is changed. */
interface Axis {
  readonly by: string;
  /** What its values count. */
  readonly of: string;
  readonly unit: 'CPU µs an event' | 'CPU, % of a core';
  readonly values: readonly number[];
  readonly measure: (value: number) => Promise<Said>;
}

/** The results of an axis, as stored for charts. */
export interface Growth extends Pick<Axis, 'by' | 'of' | 'unit'> {
  readonly points: readonly {
    readonly at: number;
    readonly cpu: number;
    readonly least: number;
    readonly most: number;
    readonly rssMb: number;
  }[];
}

const { values } = parseArgs({
  options: {
    by: { type: 'string' },
    events: { type: 'string', default: '200000' },
    rounds: { type: 'string', default: '3' },
    json: { type: 'string' },
    row: { type: 'boolean', default: false },
  },
});
const events = Number(values.events);
const streamsWindowMs = 60_000;
const [cef] = jobs as readonly [Job];

/** The job with so many sinks instead of one, all of the same kind. */
function times(sinks: number): Job {
  const each = (far: Parameters<Job['sinks']>[0]) =>
    Array.from({ length: sinks }, (_, i) => cef.sinks(far).replace(/^\w+/, `siem${i}`));
  return { ...cef, frames: sinks, sinks: (far) => each(far).join('\n  ') };
}

async function ofJob(job: Job, count: number): Promise<Said> {
  const pages = Math.max(3, Math.round(count / pageEvents));
  const { cpuUs, whole } = await costOf((some) => runJob(job, some), pages);
  return { cpu: cpuUs, rssBytes: whole.rssPeakBytes };
}

/** Measures in a process of its own: the sizes of pages and events hold for a whole process. */
async function ofPages(page: number, count: number, eventBytes = 0): Promise<Said> {
  const child = spawn(process.execPath, [import.meta.filename, '--row', '--events', `${count}`], {
    env: {
      ...process.env,
      SLUICE_BENCH_PAGE: String(page),
      SLUICE_BENCH_EVENT_BYTES: String(eventBytes),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const reported = await child.stdout.setEncoding('utf8').reduce((all, part) => all + part, '');
  if (reported === '') throw new Error(`measuring pages of ${page} failed`);
  return JSON.parse(reported) as Said;
}

async function ofBacklog(count: number): Promise<Said> {
  const pages = Math.round(count / pageEvents);
  const { drainingCpuUs, draining } = await backlogCost(pages);
  return { cpu: drainingCpuUs / (pages * pageEvents), rssBytes: draining };
}

async function ofStreams(streams: number): Promise<Said> {
  const { cpuPercent, rssBytes } = await streamsCost(streams, streamsWindowMs);
  return { cpu: cpuPercent, rssBytes };
}

const parts = (shares: readonly number[]) => shares.map((share) => events * share);
const unit = 'CPU µs an event';
const axes: readonly Axis[] = [
  {
    ...{ by: 'bytes', of: 'bytes an event, pages of 100', unit, values: [700, 2_300, 23_700] },
    measure: (bytes) => ofPages(100, events / 4, bytes),
  },
  {
    ...{ by: 'page', of: 'records a page', unit, values: [100, 250, 500, 1_000] },
    measure: (page) => ofPages(page, events),
  },
  {
    ...{ by: 'sinks', of: 'sinks of the same format', unit, values: [1, 2, 4] },
    measure: (sinks) => ofJob(times(sinks), events),
  },
  {
    ...{ by: 'streams', of: 'idle streams, each polled once a minute' },
    ...{ unit: 'CPU, % of a core', values: [1, 1_000, 10_000], measure: ofStreams },
  },
  {
    ...{ by: 'backlog', of: 'events in the backlog of a sink that recovers', unit },
    ...{ values: parts([1 / 4, 1 / 2, 1]), measure: ofBacklog },
  },
  {
    ...{ by: 'events', of: 'events', unit, values: parts([1 / 4, 1 / 2, 1, 2]) },
    measure: (count) => ofJob(cef, count),
  },
];

async function growthBy({ by, of, unit, values: at, measure }: Axis): Promise<Growth> {
  const said = await inTurn(at, Number(values.rounds), measure);
  const points = said.map((rounds, i) => {
    const cpu = spreadOf(rounds.map((round) => round.cpu));
    return {
      at: at[i] ?? 0,
      cpu: Number(cpu.median.toFixed(1)),
      least: Number(cpu.least.toFixed(1)),
      most: Number(cpu.most.toFixed(1)),
      rssMb: Math.round(median(rounds.map(({ rssBytes }) => rssBytes)) / 1e6),
    };
  });
  console.log(`${by}: ${of}; cpu is ${unit}`);
  console.table(points);
  return { by, of, unit, points };
}

if (values.row) console.log(JSON.stringify(await ofJob(cef, events)));
else {
  const chosen = axes.filter(({ by }) => values.by === undefined || by === values.by);
  if (chosen.length === 0) {
    throw new Error(`--by takes ${axes.map(({ by }) => by).join(', ')}, not ${values.by}`);
  }
  const growth: Growth[] = [];
  for (const axis of chosen) growth.push(await growthBy(axis));
  if (values.json !== undefined) {
    writeResults(values.json, events, { rounds: Number(values.rounds), growth });
  }
}

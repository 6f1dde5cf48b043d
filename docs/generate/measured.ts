// The generated parts of docs/performance.md, from the results of the last measurement in `bench/results/`: tables, and
// the sentences that follow from them, so that no figure is copied by hand. `npx node bench/publish.ts` measures again.

import { join } from 'node:path';
import type { Growth } from '../../bench/growth.ts';
import { type Circumstances, readResults } from '../../bench/results.ts';
import { table } from './settings-table.ts';

type Row = Readonly<Record<string, string | number>>;
type Rows = { readonly rows: readonly Row[] };

const results = join(import.meta.dirname, '../../bench/results');

/** What was measured last. Throws where nothing was. */
function kept<T>(name: string): Circumstances & T {
  const found = readResults<T>(join(results, `${name}.json`));
  if (found === null)
    throw new Error(`bench/results/${name}.json is missing: run bench/publish.ts`);
  return found;
}

const grouped = (n: number) => n.toLocaleString('en');
const thousands = (n: number) => grouped(Math.round(n / 1_000) * 1_000);
const fixed = (value: unknown, digits = 1) => Number(value).toFixed(digits);
const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;

/** When and on what, as a sentence. */
function reported({ date, cores, node, events, rounds = 1, load = 0 }: Circumstances): string {
  const how = rounds === 1 ? 'one run' : `medians of ${rounds} runs in turn`;
  const busy = load > cores + 1 ? `, a machine busy with other work (load ${load})` : '';
  return `Measured on ${date}: ${grouped(events)} events, ${how}, ${cores} shared cores, Node ${node}${busy}`;
}

/** Each job beside its floor, and what memory was while a sink was down. */
export function jobsMeasured(): string {
  type Memory = Readonly<Record<'quarter' | 'filling' | 'draining', number>>;
  const jobs = kept<Rows & { parseUs: number; memory: Memory }>('jobs');
  const rows = jobs.rows.map((row) => [
    String(row.job),
    fixed(row['CPU us/event']),
    fixed(row['floor us/event']),
    fixed(row['times the floor']),
    thousands(Number(row['events/CPU-second'])),
    `${row['RSS peak MB']} MB`,
    `${Math.round(Number(row['loop delay p99 ms']))} ms`,
  ]);
  const head = ['job', 'CPU µs an event', 'floor', 'times', 'events a CPU second', 'RSS at most'];
  const { quarter, filling, draining } = jobs.memory;
  return `${reported(jobs)}. \`JSON.parse\` alone took ${fixed(jobs.parseUs)} µs an event.

${table([...head, 'loop delay p99'], rows)}

With a sink down, memory was ${megabytes(quarter)} at a quarter of the backlog, and at most ${megabytes(filling)} until the backlog was complete. While
the recovered sink received the backlog, memory was at most ${megabytes(draining)}.`;
}

/** Each job by sluice and by other programs. */
export function peersMeasured(): string {
  const peers = kept<Rows>('peers');
  const rows = peers.rows.map((row) => {
    const own = row.program === 'sluice';
    const between = `${fixed(row['times, least'], 2)} to ${fixed(row['times, most'], 2)}`;
    return [
      ...[String(row.job), String(row.program)],
      ...[fixed(row['CPU us/event']), own ? '1' : `${fixed(row['times sluice'], 2)} (${between})`],
      ...[fixed(row['warm us/event']), own ? '1' : fixed(row['times warm'], 2)],
      `${row['RSS peak MB']} MB`,
    ];
  });
  const head = ['job', 'program', 'CPU µs an event', 'times sluice (least to most)'];
  return `${reported(peers)}.

${table([...head, 'warm, µs', 'times', 'RSS at most'], rows)}`;
}

/** A picture and a table for each thing that grows. */
export function growthMeasured(): string {
  const measured = kept<{ growth: readonly Growth[] }>('growth');
  const parts = measured.growth.map(({ by, of, unit, points }) => {
    const line = (name: string, cell: (point: Growth['points'][number]) => string) => [
      name,
      ...points.map(cell),
    ];
    const rows = [
      line(unit, ({ cpu }) => fixed(cpu)),
      line('least to most', ({ least, most }) => `${fixed(least)} to ${fixed(most)}`),
      line('RSS at most', ({ rssMb }) => `${rssMb} MB`),
    ];
    return `![${unit} and memory by ${of}, as in the table below](assets/growth-${by}.svg)

${table(
  line(of, ({ at }) => grouped(at)),
  rows,
)}`;
  });
  return `${reported(measured)}.

${parts.join('\n\n')}`;
}

/** The age of events on arrival, by load. */
export function latencyMeasured(): string {
  const latency = kept<Rows & { everyMs: number }>('latency');
  const rows = latency.rows.map((row) => [
    grouped(Number(row['events/s'])),
    `${Math.round(Number(row['CPU % of a core']))} %`,
    ...['p50', 'p99', 'most'].map((name) => `${grouped(Math.round(Number(row[`${name} ms`])))} ms`),
    `${row['RSS peak MB']} MB`,
  ]);
  const head = ['events a second', 'CPU, of a core', 'age of half of them, at most', 'age of 99 %'];
  return `${reported(latency)}. Polled each ${grouped(latency.everyMs)} ms, CEF over TCP.

${table([...head, 'age of the oldest', 'RSS at most'], rows)}`;
}

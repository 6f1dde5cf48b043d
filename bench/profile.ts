// `npx node bench/profile.ts [--events N] [--job TEXT]`: runs one job of the bench under V8's sampling profiler and
// prints how the main thread's time is spread over the parts of the program, and which functions use most of the time.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { jobs, runJob } from './jobs.ts';
import { inDirectory } from './program.ts';
import { pageEvents } from './work.ts';

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '300000' },
    job: { type: 'string', default: 'CEF' },
  },
});
const functionsTold = 20;

/** The parts of a CPU profile (https://chromedevtools.github.io/devtools-protocol/tot/Profiler/#type-Profile) that are read. */
interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: {
      readonly functionName: string;
      readonly url: string;
      readonly lineNumber: number;
    };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** The part of the program that a file belongs to. */
function partOf(name: string, path: string): string {
  if (name === '(garbage collector)') return 'garbage collection';
  const [, dependency] = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path) ?? [];
  if (dependency !== undefined) return dependency;
  const [, own] = /\/(src\/[a-z]+|connectors\/[a-z]+|formats)\//.exec(path) ?? [];
  if (own !== undefined) return own;
  return path.startsWith('node:') ? 'node' : 'engine and kernel';
}

function addTo(sums: Map<string, number>, key: string, value: number): void {
  sums.set(key, (sums.get(key) ?? 0) + value);
}

function report(title: string, sums: Map<string, number>, count: number): void {
  const total = [...sums.values()].reduce((sum, value) => sum + value, 0);
  const rows = [...sums].sort(([, a], [, b]) => b - a).slice(0, count);
  console.log(`\n${title}`);
  for (const [key, us] of rows) {
    console.log(`${((us / total) * 100).toFixed(1).padStart(6)} %  ${key}`);
  }
}

const job = jobs.find(({ name }) => name.includes(values.job));
if (job === undefined) throw new Error(`no job has ${values.job} in its name`);
await inDirectory(async (dir) => {
  // The bundle has its parts under other names.
  process.env.SLUICE_FROM = 'sources';
  process.env.SLUICE_BENCH_NODE_OPTIONS = `--cpu-prof --cpu-prof-dir=${dir}`;
  await runJob(job, Math.max(2, Math.round(Number(values.events) / pageEvents)));
  // The worker that owns the database writes one as well; the main thread's is more useful.
  const files = readdirSync(dir).map((file) => join(dir, file));
  const largest = files.sort((a, b) => statSync(b).size - statSync(a).size)[0] ?? '';
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(largest, 'utf8')) as Profile;
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const parts = new Map<string, number>();
  const functions = new Map<string, number>();
  samples.forEach((id, i) => {
    const { functionName: name = '', url = '', lineNumber = 0 } = frames.get(id) ?? {};
    if (name === '(idle)') return;
    const us = timeDeltas[i] ?? 0;
    addTo(parts, partOf(name, url), us);
    addTo(functions, `${name || 'anonymous'} ${url.replace(/^.*\//, '')}:${lineNumber + 1}`, us);
  });
  report(`${job.name}, main thread, by part`, parts, parts.size);
  report('by function', functions, functionsTold);
});

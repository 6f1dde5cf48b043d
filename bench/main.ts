// `npm run bench [-- --events N]`: the journey of the real program, measured from outside. A static upstream and counting
// receivers run in processes of their own; sluice runs as `run --once` on a durable spool. CPU is user + system time of the
// sluice process, start-up taken off by a run over a single page. Beside each job stands its floor, measured in the
// same run: parse, build and write the same events with no pipeline between.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { floors } from './floor.ts';
import { pageEvents } from './work.ts';

const { values } = parseArgs({ options: { events: { type: 'string', default: '300000' } } });
const pages = Math.max(2, Math.round(Number(values.events) / pageEvents));
const main = new URL('../src/boot/main.ts', import.meta.url).pathname;

interface Usage {
  readonly cpuUs: number;
  readonly rssPeakBytes: number;
  readonly seconds: number;
}

interface Job {
  readonly name: string;
  readonly floor: keyof ReturnType<typeof floors>;
  sinks(dir: string, port: number): string;
}

const jobs: readonly Job[] = [
  {
    name: 'CEF in RFC 5424 over TCP',
    floor: 'cef',
    sinks: (_, port) =>
      `siem: { type: syslog, address: "tcp://127.0.0.1:${port}", resend_window: 100ms, format: cef }`,
  },
  {
    name: 'JSON (OCSF) to file',
    floor: 'json',
    sinks: (dir) => `disk: { type: file, path: ${dir}/events.ndjson, format: json }`,
  },
  {
    name: 'JSON (original) to file',
    floor: 'original',
    sinks: (dir) =>
      `disk: { type: file, path: ${dir}/events.ndjson, format: { type: json, schema: original } }`,
  },
];

/** Starts a helper process and resolves with it and the port it prints. */
async function helper(
  script: string,
  ...args: string[]
): Promise<{ child: ChildProcess; port: number }> {
  const path = new URL(script, import.meta.url).pathname;
  const child = spawn(process.execPath, [path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  return { child, port: Number(line.toString()) };
}

/** Asks the counting receiver. */
async function framesOf(sink: ChildProcess): Promise<number> {
  sink.stdin?.write('\n');
  const [line] = (await once(sink.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  return Number(line.toString());
}

/** What the kernel says of a process so far: clock ticks are hundredths of a second on Linux. */
function usageOf(pid: number): { cpuUs: number; rssPeakBytes: number } | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    if (peak === null) return null;
    return {
      cpuUs: (Number(fields[11]) + Number(fields[12])) * 10_000,
      rssPeakBytes: Number(peak[1]) * 1024,
    };
  } catch {
    return null;
  }
}

async function measured(config: string, dir: string): Promise<Usage> {
  const file = join(dir, 'sluice.yaml');
  writeFileSync(file, config);
  const begun = performance.now();
  const child = spawn(main, ['run', '--once', '-c', file], {
    cwd: dir,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let told = '';
  child.stderr.on('data', (chunk: Buffer) => {
    told += chunk.toString();
  });
  let usage = { cpuUs: 0, rssPeakBytes: 0 };
  const watch = setInterval(() => {
    usage = usageOf(child.pid ?? 0) ?? usage;
  }, 10);
  const [code] = (await once(child, 'close')) as [number];
  clearInterval(watch);
  if (code !== 0) throw new Error(`sluice ended with ${code}:\n${told}`);
  return { ...usage, seconds: (performance.now() - begun) / 1_000 };
}

async function runJob(job: Job, pageCount: number): Promise<Usage> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
  const upstream = await helper('./upstream-server.ts', String(pageCount));
  const sink = await helper('./counting-sink.ts');
  try {
    const usage = await measured(
      `state: { dir: ${dir}/state }
upstreams:
  edge: { api: unified, base_url: "http://127.0.0.1:${upstream.port}", allow_http: true, auth: { api_key: bench } }
sources:
  audit: { type: audit_events, upstream: edge, every: 30s, page_limit: ${pageEvents}, path: /audit/events }
sinks:
  ${job.sinks(dir, sink.port)}
`,
      dir,
    );
    if (job.floor === 'cef') {
      const frames = await framesOf(sink.child);
      if (frames !== pageCount * pageEvents)
        throw new Error(`${frames} frames arrived, not ${pageCount * pageEvents}`);
    }
    return usage;
  } finally {
    upstream.child.kill();
    sink.child.kill();
    rmSync(dir, { recursive: true, force: true });
  }
}

const events = pages * pageEvents;
const floor = floors();
const rows: Record<string, string | number>[] = [];
for (const job of jobs) {
  const startUp = await runJob(job, 1);
  const whole = await runJob(job, pages);
  const cpuUs = (whole.cpuUs - startUp.cpuUs) / (events - pageEvents);
  rows.push({
    job: job.name,
    'CPU us/event': cpuUs.toFixed(1),
    'floor us/event': floor[job.floor].toFixed(1),
    'times the floor': (cpuUs / floor[job.floor]).toFixed(2),
    'events/CPU-second': Math.round(1e6 / cpuUs),
    'events/second': Math.round(events / whole.seconds),
    'RSS peak MB': Math.round(whole.rssPeakBytes / 1e6),
  });
}
console.table(rows);
console.log(
  `${events} events of about 700 bytes, pages of ${pageEvents}, Node ${process.versions.node}`,
);

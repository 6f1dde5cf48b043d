// The real program as a child process, measured from outside: CPU is what the kernel counts for the process, all threads,
// user and system; memory is its peak resident set; disk is what it caused to be written. The delay of its event loop is
// what a histogram within it saw (delay.js), since nothing outside can see that.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = new URL('..', import.meta.url).pathname;
/** What `npx sluice` starts. */
export const main: string = join(
  root,
  JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).bin.sluice,
);
const delay = new URL('./delay.js', import.meta.url).pathname;
/** A tick of the kernel's CPU accounting on Linux. */
const tickUs = 10_000;
const lookEveryMs = 10;

/** What one run has used. */
export interface Usage {
  readonly cpuUs: number;
  readonly rssPeakBytes: number;
  readonly writtenBytes: number;
  readonly seconds: number;
  /** 99th percentile of the event loop's delay; null: the run was too short. */
  readonly delayP99Ms: number | null;
}

type Counted = Pick<Usage, 'cpuUs' | 'rssPeakBytes' | 'writtenBytes'>;

/** What the kernel says of a process so far; null once it is gone. */
export function countedOf(pid: number): (Counted & { readonly rssBytes: number }) | null {
  try {
    const ticks = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const io = readFileSync(`/proc/${pid}/io`, 'utf8');
    const kilobytes = (name: string) =>
      Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1] ?? Number.NaN);
    if (Number.isNaN(kilobytes('VmHWM'))) return null;
    return {
      cpuUs: (Number(ticks[11]) + Number(ticks[12])) * tickUs,
      rssPeakBytes: kilobytes('VmHWM') * 1024,
      rssBytes: kilobytes('VmRSS') * 1024,
      writtenBytes: Number(/^write_bytes: (\d+)/m.exec(io)?.[1] ?? 0),
    };
  } catch {
    return null;
  }
}

/** A directory for one run, gone when `use` is done. */
export async function inDirectory<T>(use: (dir: string) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
  try {
    return await use(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Starts sluice on a config; its log goes to `said`. */
export function startSluice(command: readonly string[], config: string, dir: string) {
  const file = join(dir, 'sluice.yaml');
  writeFileSync(file, config);
  const child = spawn(main, [...command, '-c', file], {
    cwd: dir,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      NODE_OPTIONS: `--import=${delay} ${process.env.SLUICE_BENCH_NODE_OPTIONS ?? ''}`,
    },
  });
  const said = { log: '', delay: '' };
  child.stderr?.on('data', (chunk: Buffer) => {
    said.log += chunk.toString();
  });
  child.stdio[3]?.on('data', (chunk: Buffer) => {
    said.delay += chunk.toString();
  });
  return { child, said };
}

/** Watches a process to its end: what the kernel counted for it last, and the code it ended with. */
export async function watched(child: ChildProcess): Promise<Counted & { readonly code: number }> {
  let counted: Counted = { cpuUs: 0, rssPeakBytes: 0, writtenBytes: 0 };
  const watch = setInterval(() => {
    counted = countedOf(child.pid ?? 0) ?? counted;
  }, lookEveryMs);
  const [code] = (await once(child, 'close')) as [number];
  clearInterval(watch);
  return { ...counted, code };
}

/** Runs `sluice run --once` to its end. Throws with its log where it fails. */
export async function runOnce(config: string, dir: string): Promise<Usage> {
  const begun = performance.now();
  const { child, said } = startSluice(['run', '--once'], config, dir);
  const { code, cpuUs, rssPeakBytes, writtenBytes } = await watched(child);
  if (code !== 0) throw new Error(`sluice ended with ${code}:\n${said.log}`);
  const delayP99Ms = said.delay === '' ? null : Number(said.delay);
  const seconds = (performance.now() - begun) / 1_000;
  return { cpuUs, rssPeakBytes, writtenBytes, seconds, delayP99Ms };
}

/** Another process of the bench, which prints its port when it is ready and ends with its input. */
export interface Helper {
  readonly child: ChildProcess;
  readonly port: number;
  /** Requests a line. */
  ask(): Promise<string>;
}

/** Starts a helper, e.g. `./upstream-server.ts`. */
export async function startHelper(script: string, ...args: readonly string[]): Promise<Helper> {
  const path = new URL(script, import.meta.url).pathname;
  const child = spawn(process.execPath, [path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const line = async () => {
    const [chunk] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
    return chunk.toString();
  };
  const port = Number(await line());
  const ask = () => {
    child.stdin?.write('\n');
    return line();
  };
  return { child, port, ask };
}

// Starting and ending the real servers that the tests use. A test run can end in many ways (a
// time-out, Ctrl-C, SIGKILL of a worker) and must leave no server behind, so each child is started
// with a parent-death signal where the system has one (Linux, util-linux `setpriv`), and is listed
// here so that a run that ends in order can wait for it.
import { type ChildProcess, execFile, type SpawnOptions, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const setpriv = '/usr/bin/setpriv';
const running = new Set<ChildProcess>();

/** What a program said and how it ended; `output` is stdout, `errors` is stderr. */
export interface ProgramResult {
  readonly output: string;
  readonly errors: string;
  /** 0 when it went well; null when it could not be started or was killed. */
  readonly exitCode: number | null;
}

/** Runs a program to its end and returns its output; a failure is a result, not an exception. */
export function runProgram(command: string, args: readonly string[]): Promise<ProgramResult> {
  return new Promise((resolve) => {
    execFile(command, args, { maxBuffer: 64 * 1024 * 1024 }, (error, output, errors) => {
      const exitCode = error === null ? 0 : typeof error.code === 'number' ? error.code : null;
      resolve({ output, errors: errors || (error?.message ?? ''), exitCode });
    });
  });
}

/**
 * Starts a server that cannot outlive this process. Its pid is the server's own: no shell or
 * wrapper stays between, so signals reach it.
 */
export function spawnChild(
  command: string,
  args: readonly string[],
  options: SpawnOptions,
): ChildProcess {
  const child = existsSync(setpriv)
    ? spawn(setpriv, ['--pdeathsig', 'KILL', command, ...args], options)
    : spawn(command, args, options);
  running.add(child);
  child.once('exit', () => running.delete(child));
  child.once('error', () => running.delete(child));
  return child;
}

/** True until the child has ended, in whatever way. */
export function isRunning(child: ChildProcess): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null;
}

/** True while a process that another program started runs; one that waits to be collected has ended. */
export function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** Sends the signal and waits for the end; a child that ignores it for `graceMs` gets SIGKILL. */
export async function endChild(
  child: ChildProcess,
  signal: NodeJS.Signals = 'SIGTERM',
  graceMs = 10_000,
): Promise<void> {
  if (!isRunning(child)) return;
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const lastResort = setTimeout(() => child.kill('SIGKILL'), graceMs);
  child.kill(signal);
  await ended;
  clearTimeout(lastResort);
}

/** Ends everything this process started that still runs. For the end of a run, where no state matters. */
export async function endAllChildren(): Promise<void> {
  await Promise.all([...running].map((child) => endChild(child, 'SIGKILL')));
}

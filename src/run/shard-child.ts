// The start of a worker process for shards, and a clock that the supervisor and its workers share. Apart from the rest,
// since a simulated cluster (test/simulation) has machines of its own.

import { type ChildProcess, spawn } from 'node:child_process';
import { isSea } from 'node:sea';

/** Starts this program again, with a channel between the two (shard-messages.ts). */
export function startChild(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ChildProcess {
  // The one-file release has its flags and its script inside.
  const program = isSea() ? [] : [...process.execArgv, process.argv[1] ?? ''];
  return spawn(process.execPath, [...program, ...args], {
    env: { ...env },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    serialization: 'advanced',
    // Ctrl-C reaches all that a terminal has started; only the process that started it ends it.
    detached: true,
  });
}

/** Milliseconds by the clock that all processes of a machine share. */
export function uptimeMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

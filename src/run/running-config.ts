// The config that a process runs with, stored in its state directory for read-only commands: `running.json` has the
// name of its file, the content at that time (without its secrets), and whether the present content was refused. So an
// invalid file does not hide a running process, and a process is found whose state directory a shell does not know,
// because it has another environment or working directory. Invariants: only a process that still runs is shown, and a
// failure to read or write here never stops the journey.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import type { Config } from '../config/index.ts';
import type { Json, Log } from '../contracts/index.ts';
import { holderOf, replacePrivateFile } from '../hold/index.ts';

const name = 'running.json';

const refusal = z.object({
  /** Epoch milliseconds. */
  at: z.number(),
  code: z.string(),
  message: z.string(),
  next: z.string(),
});

/** Why the present content of the config file does not run. */
export type ReloadRefusal = Readonly<z.infer<typeof refusal>>;

const running = z.object({
  version: z.literal(1),
  pid: z.int(),
  file: z.string(),
  /** Epoch milliseconds since which this config runs. */
  since: z.number(),
  config: z.json(),
  refused: refusal.nullable(),
});

/** The running config, and the directory of its state. */
export type RunningConfig = Readonly<z.infer<typeof running>> & { readonly dir: string };

/** Stores the running config. */
export function noteRunning(
  { file, kept, state }: Config,
  since: number,
  refused: ReloadRefusal | null,
  log: Log,
): void {
  const note = { version: 1, pid: process.pid, file: resolve(file), since, config: kept, refused };
  try {
    replacePrivateFile(join(state.dir, name), `${JSON.stringify(note)}\n`);
  } catch (error) {
    // For example a full disk: the note only serves read-only commands.
    log.debug('running_config_not_noted', 'cannot write the note about the running config', {
      error: String(error),
    });
  }
}

/** The config of the last run from this directory, whether or not it still runs; null: unknown. */
export function lastConfigIn(dir: string): Json | null {
  try {
    return running.parse(JSON.parse(readFileSync(join(dir, name), 'utf8'))).config;
  } catch {
    return null;
  }
}

/** The config of the process that holds this directory; null: no process, or it has left no note. */
export function runningIn(dir: string): RunningConfig | null {
  try {
    const found = running.parse(JSON.parse(readFileSync(join(dir, name), 'utf8')));
    return holderOf(dir)?.startsWith(`process ${found.pid} `) ? { ...found, dir } : null;
  } catch {
    return null;
  }
}

/**
 * The config of a process that was started with this file, wherever its state is; with `directory`, only if the
 * directory has this name.
 */
export function runningWith(
  file: string,
  places: readonly string[],
  directory?: string,
): RunningConfig | null {
  const isOf = (found: RunningConfig | null) =>
    found?.file === resolve(file) && (directory === undefined || basename(found.dir) === directory);
  for (const dir of new Set([...places, resolve(dirname(file), 'state')])) {
    const found = runningIn(dir);
    if (isOf(found)) return found;
  }
  return lockedDirs().map(runningIn).find(isOf) ?? null;
}

/** The state directories of all processes that this user may look into: each has its lock open. */
function lockedDirs(): readonly string[] {
  const locks = lockingProcesses()
    .flatMap((pid) => listed(`/proc/${pid}/fd`).map((fd) => targetOf(`/proc/${pid}/fd/${fd}`)))
    .filter((target) => target.endsWith('/lock.db'));
  return [...new Set(locks.map((lock) => dirname(lock)))];
}

/** Ids of the processes that hold a lock of any file; where the kernel does not list locks, of all. */
function lockingProcesses(): readonly string[] {
  try {
    const locks = readFileSync('/proc/locks', 'utf8').matchAll(/ (?:READ|WRITE) +(\d+) /g);
    return [...new Set(Array.from(locks, ([, pid = '']) => pid))];
  } catch {
    return listed('/proc').filter((name) => /^\d+$/.test(name));
  }
}

function listed(dir: string): readonly string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

function targetOf(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return '';
  }
}

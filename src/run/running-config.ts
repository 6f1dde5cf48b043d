// The config that a process runs with, kept in its state directory for the commands that look:
// `running.json` says which file it came from, what stood in it then (without its secrets), and
// whether what stands there now was refused. So a file that is broken since blinds nobody, and a
// process is found whose state directory a shell does not know, because it has another environment
// or stands elsewhere. What must stay true: only a process that still runs is shown, and nothing
// that cannot be read or written here is ever in the way of the journey.

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

/** Why the config as it now stands in its file does not run. */
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

/** What runs, and where its state is. */
export type RunningConfig = Readonly<z.infer<typeof running>> & { readonly dir: string };

/** Notes what runs from now on. */
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
    // On a full disk, say: it is only for who looks.
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

/** What a process runs that holds this directory; null where none does, or it does not say. */
export function runningIn(dir: string): RunningConfig | null {
  try {
    const found = running.parse(JSON.parse(readFileSync(join(dir, name), 'utf8')));
    return holderOf(dir)?.startsWith(`process ${found.pid} `) ? { ...found, dir } : null;
  } catch {
    return null;
  }
}

/**
 * What a process runs that was started with this file, wherever its state is; with `directory`, only
 * where that directory has this name.
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
  const locks = listed('/proc')
    .filter((pid) => /^\d+$/.test(pid))
    .flatMap((pid) => listed(`/proc/${pid}/fd`).map((fd) => targetOf(`/proc/${pid}/fd/${fd}`)))
    .filter((target) => target.endsWith('/lock.db'));
  return [...new Set(locks.map((lock) => dirname(lock)))];
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

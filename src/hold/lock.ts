// One writer per state directory. The lock is an SQLite database of its own held in an exclusive transaction: the
// operating system lets go of it when the process ends, however it ends, so there is never a stale lock to remove.

import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { ExportError } from '../contracts/errors.ts';

/** Held until `release`, or until the process ends. */
export interface Lock {
  release(): void;
}

/** Takes the state directory, making it if need be; throws `state_locked`, naming the holder. */
export function takeLock(dir: string): Lock {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const path = join(dir, 'lock.db');
  closeSync(openSync(path, 'a', 0o600));
  const database = new DatabaseSync(path);
  try {
    // A look by `status` holds the lock for an instant.
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA busy_timeout = 250; BEGIN EXCLUSIVE;');
  } catch (error) {
    database.close();
    throw new ExportError(
      'state_locked',
      `opening the state directory ${dir}: ${holder(dir)} holds it`,
      {
        next: 'Stop that process, or give this one a state.dir of its own.',
        cause: error,
      },
    );
  }
  const owner = { pid: process.pid, host: hostname(), since: new Date().toISOString() };
  writeFileSync(join(dir, 'owner.json'), `${JSON.stringify(owner)}\n`, { mode: 0o600 });
  return { release: () => database.close() };
}

/** Who holds the directory, as `process PID on HOST`; null while nobody does. */
export function holderOf(dir: string): string | null {
  const path = join(dir, 'lock.db');
  if (!existsSync(path)) return null;
  const database = new DatabaseSync(path);
  try {
    database.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE; ROLLBACK;');
    return null;
  } catch {
    return holder(dir);
  } finally {
    database.close();
  }
}

function holder(dir: string): string {
  try {
    const owner: unknown = JSON.parse(readFileSync(join(dir, 'owner.json'), 'utf8'));
    if (typeof owner === 'object' && owner !== null && 'pid' in owner && 'host' in owner) {
      return `process ${String(owner.pid)} on ${String(owner.host)}`;
    }
  } catch {
    // The holder has not written its name yet, or cannot: that it holds the lock is known all the same.
  }
  return 'another process';
}

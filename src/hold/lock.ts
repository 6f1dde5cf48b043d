// One writer per state directory. The lock is an SQLite database of its own held in an exclusive
// transaction: the operating system lets go of it when the process ends, however it ends, so there
// is never a stale lock to remove.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { ExportError } from '../contracts/errors.ts';
import { makePrivateDirectory, makePrivateFile } from './private-files.ts';
import { unwritableError } from './unwritable.ts';

const sqliteBusy = 5;
/** The journal is kept in memory, so that a full disk has room for it. */
const exclusive = `
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = MEMORY;
BEGIN EXCLUSIVE;
`;
/** Who looks whether it is held holds it for an instant, which is longer under load. */
const lookMsMax = 1_000;

/** SQLite takes long to load: `check` needs it only where there is something to lock. */
function sqlite(): typeof import('node:sqlite') {
  return process.getBuiltinModule('node:sqlite');
}

/** Held until `release`, or until the process ends. */
export interface Lock {
  release(): void;
}

/** Takes the state directory, made if need be; throws `state_locked`, `state_unwritable` or `state_damaged`. */
export function takeLock(dir: string): Lock {
  const doing = `opening the state directory ${dir}`;
  let release: () => void;
  try {
    makePrivateDirectory(dir);
    const path = join(dir, 'lock.db');
    makePrivateFile(path);
    release = exclusiveOn(path);
  } catch (error) {
    if (isBusy(error)) {
      throw new ExportError('state_locked', `${doing}: ${holder(dir)} holds it`, {
        next: 'Stop that process, or give this one a state.dir of its own.',
        cause: error,
      });
    }
    const unwritable = unwritableError(doing, error);
    if (unwritable !== null) throw unwritable;
    throw new ExportError('state_damaged', `${doing}: ${String(error)}`, {
      next: 'Check state.dir and its permissions; nothing held was lost. lock.db in it may be deleted while no sluice runs.',
      cause: error,
    });
  }
  nameOwner(dir);
  return { release };
}

/**
 * Holds a file for this process until it is released or the process ends. Throws SQLite's error,
 * which `isBusy` judges.
 */
export function exclusiveOn(path: string): () => void {
  const database = new (sqlite().DatabaseSync)(path, { timeout: lookMsMax });
  try {
    database.exec(exclusive);
  } catch (error) {
    database.close();
    throw error;
  }
  return () => database.close();
}

/** Says who holds the directory. */
function nameOwner(dir: string): void {
  const path = join(dir, 'owner.json');
  const owner = { pid: process.pid, host: hostname(), since: new Date().toISOString() };
  try {
    makePrivateFile(path);
    writeFileSync(path, `${JSON.stringify(owner)}\n`);
  } catch {
    // On a full disk, say. It is for people: what counts is the lock.
  }
}

/** Who holds the directory, as `process PID on HOST`; null while nobody does. */
export function holderOf(dir: string): string | null {
  const path = join(dir, 'lock.db');
  if (!existsSync(path)) return null;
  const database = new (sqlite().DatabaseSync)(path, { readOnly: true });
  try {
    // Two who look do not take each other for the holder: reading waits for exclusive locks only.
    database.prepare('SELECT count(*) FROM sqlite_master').get();
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
    // The holder has not written its name yet, or cannot: the lock is held all the same.
  }
  return 'another process';
}

/** Whether another process holds what was to be held. */
export function isBusy(error: unknown): boolean {
  const code =
    typeof error === 'object' && error !== null && 'errcode' in error ? Number(error.errcode) : 0;
  return (code & 0xff) === sqliteBusy;
}

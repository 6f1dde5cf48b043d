// One writer per state directory. The lock is a separate SQLite database held in an exclusive
// transaction: the operating system releases it when the process ends in any way, so there is never
// a stale lock to remove. An archive's directory has the same lock, and other users may write
// there: a symbolic link or a pipe in place of a file is not followed and does not block.

import { randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { ExportError } from '../contracts/index.ts';
import { makePrivateDirectory, makePrivateFile } from './private-files.ts';
import { unwritableError } from './unwritable.ts';

const sqliteBusy = 5;
const sqliteNotADatabase = 26;
/** The journal is kept in memory, so that a full disk has space for it. */
const exclusive = `
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = MEMORY;
BEGIN EXCLUSIVE;
`;
/** A process that only checks the lock holds it for an instant, which is longer under load. */
const lookMsMax = 1_000;

/** SQLite is slow to load: `check` needs it only if there is something to lock. */
function sqlite(): typeof import('node:sqlite') {
  return process.getBuiltinModule('node:sqlite');
}

/** Held until `release`, or until the process ends. */
export interface Lock extends Disposable {
  release(): void;
}

/**
 * Locks the state directory, creating it if needed; throws `state_locked`, `state_unwritable` or
 * `state_damaged`. `isBrief`: a command holds it for one change, so that a process that starts
 * meanwhile waits (`isBrieflyHeld`).
 */
export function takeLock(dir: string, { isBrief = false } = {}): Lock {
  const doing = `opening the state directory ${dir}`;
  let release: () => void;
  try {
    makePrivateDirectory(dir);
    const path = join(dir, 'lock.db');
    refuseOther(path);
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
  nameOwner(dir, isBrief);
  return { release, [Symbol.dispose]: release };
}

/**
 * Locks a file for this process until released or the process ends. A damaged file is emptied.
 * Throws SQLite's error, which `isBusy` classifies.
 */
export function exclusiveOn(path: string): () => void {
  try {
    return lockedOn(path);
  } catch (error) {
    if (codeOf(error) !== sqliteNotADatabase || !isEmptied(path)) throw error;
    return lockedOn(path);
  }
}

function lockedOn(path: string): () => void {
  const database = new (sqlite().DatabaseSync)(path, { timeout: lookMsMax });
  try {
    database.exec(exclusive);
  } catch (error) {
    database.close();
    throw error;
  }
  return () => database.close();
}

/**
 * Empties a damaged lock, which has no content. A new file instead would be a second lock: a
 * process that has just emptied the old one may hold it. A link to another file is not followed.
 */
function isEmptied(path: string): boolean {
  const file = openSync(path, constants.O_RDWR | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const found = fstatSync(file);
    const isOurs = found.isFile() && found.nlink === 1;
    if (isOurs) ftruncateSync(file);
    return isOurs;
  } finally {
    closeSync(file);
  }
}

/** SQLite would follow a link to another user's database. */
function refuseOther(path: string): void {
  const isOther = lstatSync(path, { throwIfNoEntry: false })?.isFile() === false;
  if (isOther) throw new Error('lock.db is not a regular file');
}

/**
 * Writes the holder's name to a new file that then takes the name, so that an existing file is
 * never written to.
 */
function nameOwner(dir: string, isBrief: boolean): void {
  const next = join(dir, `${randomUUID()}.part`);
  const since = new Date().toISOString();
  const owner = { pid: process.pid, host: hostname(), since, ...(isBrief && { brief: true }) };
  try {
    const file = openSync(next, 'wx', 0o600);
    try {
      // The umask may remove even the owner's rights.
      fchmodSync(file, 0o600);
      writeFileSync(file, `${JSON.stringify(owner)}\n`);
    } finally {
      closeSync(file);
    }
    renameSync(next, join(dir, 'owner.json'));
  } catch {
    rmSync(next, { force: true });
    // For example a full disk. The content is for operators: the lock decides.
  }
}

/** The holder of the directory, as `process PID on HOST`; null if the lock is free. */
export function holderOf(dir: string): string | null {
  const path = join(dir, 'lock.db');
  if (!existsSync(path)) return null;
  using database = new (sqlite().DatabaseSync)(path, { readOnly: true });
  try {
    // Two concurrent checks do not block each other: a read waits for exclusive locks only.
    database.prepare('SELECT count(*) FROM sqlite_master').get();
    return null;
  } catch (error) {
    // A damaged lock is free: a holder would be noticed before the content.
    return codeOf(error) === sqliteNotADatabase ? null : holder(dir);
  }
}

/** Whether a command holds the directory for one change (`takeLock`), and not a process that runs. */
export function isBrieflyHeld(dir: string): boolean {
  return holderOf(dir) !== null && ownerOf(dir)?.brief === true;
}

function holder(dir: string): string {
  const { pid, host } = ownerOf(dir) ?? {};
  if (pid === undefined || host === undefined) return 'another process';
  return `process ${String(pid)} on ${String(host)}`;
}

interface Owner {
  readonly pid?: unknown;
  readonly host?: unknown;
  readonly brief?: unknown;
}

/** What the holder has written about itself; null: nothing yet, or it cannot, and the lock is held all the same. */
function ownerOf(dir: string): Owner | null {
  try {
    const owner: unknown = JSON.parse(smallText(join(dir, 'owner.json')));
    return typeof owner === 'object' ? owner : null;
  } catch {
    return null;
  }
}

/** More than the holder's name needs. */
const ownerBytesMax = 4_096;

/** The text of a small regular file; empty for anything else. */
function smallText(path: string): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const found = fstatSync(file);
    return found.isFile() && found.size <= ownerBytesMax ? readFileSync(file, 'utf8') : '';
  } finally {
    closeSync(file);
  }
}

/** Whether the error means that another process holds the lock. */
export function isBusy(error: unknown): boolean {
  return codeOf(error) === sqliteBusy;
}

/** SQLite's primary result code (sqlite.org/rescode.html); 0: another error. */
function codeOf(error: unknown): number {
  const code =
    typeof error === 'object' && error !== null && 'errcode' in error ? Number(error.errcode) : 0;
  return code & 0xff;
}

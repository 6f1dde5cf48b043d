// One writer per output file. The lock is a file beside it, held in the same way as the state
// directory's (lock.ts): the operating system releases it when the process ends in any way. So the
// next process takes over after a crash, and process ids, which have no meaning on another machine,
// decide nothing. On a network file system the lock depends on byte-range locks (fcntl). Invariant:
// one file has one lock, by whatever path: a symbolic link, another relative path, or, on one
// machine, a hard link.

import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { hostname, tmpdir, userInfo } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { ExportError, type FileLock, type FileWriter, realPathOf } from '../contracts/index.ts';
import { exclusiveOn, isBusy } from './lock.ts';
import { makePrivateDirectory, replacePrivateFile } from './private-files.ts';

const lockMode = 0o640;

/**
 * Locks an output file for one writer; its directory must exist. Throws `sink_unreachable` with
 * `details.owner` while another process holds it, and the system's error if no lock file can be
 * created.
 */
export function lockFile(path: string, writer: FileWriter): FileLock {
  const real = realPathOf(path);
  const beside = lockPath(real);
  const held: FileLock[] = [];
  try {
    held.push(locked(beside, real, writer));
    for (const place of hardLinkLock(real)) held.push(locked(place, real, writer));
  } catch (error) {
    for (const lock of held) lock.release();
    throw error;
  }
  return {
    release: () => {
      for (const lock of held) lock.release();
    },
  };
}

/**
 * The error if another process writes to an output file; null: the file is free. Creates no file.
 */
export function fileInUse(path: string): ExportError | null {
  try {
    const real = realPathOf(path);
    for (const place of [lockPath(real), ...hardLinkLock(real)]) {
      if (statSync(place, { throwIfNoEntry: false }) === undefined) continue;
      try {
        exclusiveOn(place)();
      } catch (error) {
        if (isBusy(error)) return inUse(place, real, error);
      }
    }
  } catch {
    // Other faults are reported when the file itself is opened.
  }
  return null;
}

function locked(path: string, file: string, { spool, sharesState }: FileWriter): FileLock {
  // Created here, so that a failure is the system's own error.
  if (statSync(path, { throwIfNoEntry: false }) === undefined) {
    closeSync(openSync(path, 'a', lockMode));
  }
  let release: () => void;
  try {
    release = exclusiveOn(path);
  } catch (error) {
    if (!isBusy(error)) throw error;
    const owner = ownerOf(path);
    // A replaced process may be suspended while its successor resumes with the same state.
    if (sharesState && owner?.spool === spool) return { release: () => undefined };
    throw inUse(path, file, error);
  }
  const owner = { pid: process.pid, host: hostname(), spool, since: new Date().toISOString() };
  try {
    replacePrivateFile(ownerPath(path), `${JSON.stringify(owner)}\n`);
  } catch {
    // For example a full disk. The content is for operators: the lock decides.
  }
  return { release };
}

function inUse(lock: string, file: string, cause: unknown): ExportError {
  const owner = ownerOf(lock);
  const who = owner === null ? 'another process' : `process ${owner.pid} on ${owner.host}`;
  return new ExportError('sink_unreachable', `opening ${file}: ${who} writes to it`, {
    next: 'Give each process a path of its own, or stop the other one. This one takes over when the other ends. Nothing is lost: the events stay in the spool.',
    details: { owner: who },
    cause,
  });
}

function lockPath(path: string): string {
  return join(dirname(path), `.${basename(path)}.sluice.lock`);
}

function ownerPath(lock: string): string {
  return `${lock.replace(/\.lock$/, '')}.owner`;
}

/** A second lock for a file with several names, by its inode, in a directory of this user. */
function hardLinkLock(path: string): readonly string[] {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined || !found.isFile() || found.nlink < 2) return [];
  const dir = join(tmpdir(), `sluice-files-${userInfo().uid}`);
  makePrivateDirectory(dir);
  const { uid, mode } = statSync(dir);
  // Other users could lock the file against this process.
  if (uid !== userInfo().uid || (mode & 0o077) !== 0) return [];
  return [join(dir, `${found.dev}-${found.ino}.lock`)];
}

interface Owner {
  readonly pid: string;
  readonly host: string;
  readonly spool: string;
}

const ownerBytesMax = 4_096;

function ownerOf(lock: string): Owner | null {
  try {
    const path = ownerPath(lock);
    if (statSync(path).size > ownerBytesMax) return null;
    const { pid, host, spool } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
    return { pid: String(pid), host: String(host), spool: String(spool) };
  } catch {
    return null;
  }
}

// SQLite reports a disk without space as a full disk, but a used up quota (EDQUOT: ZFS, Btrfs, ext4, NFS) or a file system that
// became read-only (EROFS) only as an I/O error, and a disk without inodes only as a file that cannot be opened, without the
// system's code. A small file shows the code. What recovers when space is freed is `disk_full`.

import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { asExportError, ExportError, errorCodeOf, isFileLimit } from '../contracts/index.ts';
import { isCannotOpen, isInputOutputError } from './database.ts';
import { unwritableError, usedUpCodes } from './unwritable.ts';

/** Larger than a page of the database, of which a used up quota has no room for one. */
const probeBytes = 64 * 1024;

const fileName = 'probe';

/**
 * The failure as `disk_full` or `state_unwritable` if SQLite does not report its cause and the directory takes no more bytes;
 * else unchanged.
 */
export function withUsedUp(error: ExportError, dir: string): ExportError {
  const isUnclear = isInputOutputError(error) || isCannotOpen(error);
  const cause = isUnclear ? probed(dir) : null;
  if (cause === null) return error;
  if (isFileLimit(cause)) return asExportError(cause, error.message);
  if (!usedUpCodes.has(errorCodeOf(cause))) return unwritableError(error.message, cause) ?? error;
  return new ExportError('disk_full', `${error.message}: the disk or its quota is used up`, {
    next: 'Make room in state.dir, or raise its quota; polling pauses meanwhile and nothing is lost.',
    cause: error,
  });
}

/** Why the directory takes no small file; null: it does. */
function probed(dir: string): unknown {
  const path = join(dir, fileName);
  try {
    // Some systems report it only when the bytes are flushed.
    writeFileSync(path, Buffer.alloc(probeBytes, 'x'), { mode: 0o600, flush: true });
    return null;
  } catch (error) {
    return error;
  } finally {
    removed(path);
  }
}

/** A file system that is read-only keeps what is there. */
function removed(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // The next probe writes over it.
  }
}

// SQLite reports a disk without space as a full disk, but a used up quota (EDQUOT: ZFS, Btrfs, ext4, NFS) only as an I/O
// error, and a disk without inodes only as a file that cannot be opened, without the system's code. A small file shows the
// code. All recover when space is freed, so all are `disk_full`.

import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ExportError, errorCodeOf } from '../contracts/index.ts';
import { isCannotOpen, isInputOutputError } from './database.ts';
import { usedUpCodes } from './unwritable.ts';

/** Larger than a page of the database, of which a used up quota has no room for one. */
const probeBytes = 64 * 1024;

const fileName = 'probe';

/** The failure as `disk_full` if SQLite does not report its cause and the directory takes no more bytes; else unchanged. */
export function withUsedUp(error: ExportError, dir: string): ExportError {
  const isUnclear = isInputOutputError(error) || isCannotOpen(error);
  if (!isUnclear || !isUsedUp(dir)) return error;
  return new ExportError('disk_full', `${error.message}: the disk or its quota is used up`, {
    next: 'Make room in state.dir, or raise its quota; polling pauses meanwhile and nothing is lost.',
    cause: error,
  });
}

function isUsedUp(dir: string): boolean {
  const path = join(dir, fileName);
  try {
    // Some systems report it only when the bytes are flushed.
    writeFileSync(path, Buffer.alloc(probeBytes, 'x'), { mode: 0o600, flush: true });
    return false;
  } catch (error) {
    return usedUpCodes.has(errorCodeOf(error));
  } finally {
    rmSync(path, { force: true });
  }
}

// A state directory that this user cannot write to: permissions, a read-only file system, or a path
// such as /proc where no directory can be created. Nothing in it is damaged, so its error does not
// suggest a backup.

import { ExportError, errorCodeOf } from '../contracts/index.ts';

const systemCodes: ReadonlySet<string> = new Set([
  ...['EACCES', 'EPERM', 'EROFS', 'ENOENT', 'ENOTDIR', 'EEXIST', 'ELOOP', 'ENAMETOOLONG'],
]);
/** A disk or a quota without space or inodes. */
export const usedUpCodes: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT']);
/** SQLITE_PERM, SQLITE_READONLY, SQLITE_CANTOPEN (https://www.sqlite.org/rescode.html). */
const sqliteCodes: ReadonlySet<number> = new Set([3, 8, 14]);

/** The failure as `state_unwritable`, or as `disk_full` if no file can be created; null for any other. */
export function unwritableError(doing: string, error: unknown): ExportError | null {
  const code = errorCodeOf(error);
  if (usedUpCodes.has(code)) {
    return new ExportError('disk_full', `${doing}: the disk is full (${code})`, {
      next: 'Make room in state.dir: delete files, or raise its quota. Nothing is damaged.',
      cause: error,
    });
  }
  const { errcode } = error instanceof Error && 'errcode' in error ? error : {};
  const isSqlite = typeof errcode === 'number' && sqliteCodes.has(errcode & 0xff);
  if (!systemCodes.has(code) && !isSqlite) return null;
  if (code === 'EROFS') {
    return new ExportError('state_unwritable', `${doing}: its file system is read-only (EROFS)`, {
      next: 'Mount the file system of state.dir writable again; Linux makes one read-only after an error of its disk, which dmesg shows. Nothing is damaged.',
      cause: error,
    });
  }
  const why = isSqlite && error instanceof Error ? error.message : code;
  return new ExportError('state_unwritable', `${doing}: it cannot be written (${why})`, {
    next: 'Set state.dir to a directory that the user who runs sluice may write to, or correct its owner and mode. Nothing is damaged.',
    cause: error,
  });
}

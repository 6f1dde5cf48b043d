// Faults of a file that last until an operator repairs them. A full disk is none: it concerns all files, and passes.

import { ExportError, errorCodeOf } from '../../../src/contracts/index.ts';

const lasting: ReadonlySet<string> = new Set([
  ...['EACCES', 'EPERM', 'EROFS'],
  // A part of the path is a file, a link in a loop, or too long.
  ...['EEXIST', 'EISDIR', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG'],
]);

/** True for a missing permission, or a path that cannot be a file. */
export function isOfFile(error: unknown): boolean {
  if (error instanceof ExportError) return error.code === 'sink_refused';
  return lasting.has(errorCodeOf(error));
}

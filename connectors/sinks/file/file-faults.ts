// Faults of a file that last until an operator repairs them, and their words. A full disk is none: it concerns all files,
// and passes.

import { ExportError, errorCodeOf, errorText } from '../../../src/contracts/index.ts';

/** What is wrong with a file, and the next step. */
export interface FileFault {
  readonly what: string;
  readonly next: string;
}

const denied: FileFault = {
  what: 'no permission',
  next: 'Let the user that runs sluice write the file and its directory, or change path.',
};
const blocked: FileFault = {
  what: 'a directory of the path is a file',
  next: 'Change path, or move that file away.',
};
const lasting: Readonly<Record<string, FileFault>> = {
  EACCES: denied,
  EPERM: denied,
  EROFS: {
    what: 'the file system is read-only',
    next: 'Mount the file system of path writable again, or change path.',
  },
  EEXIST: blocked,
  ENOTDIR: blocked,
  EISDIR: { what: 'it is a directory', next: 'Set path to a file in it, such as events.ndjson.' },
  ELOOP: { what: 'its links are a loop', next: 'Repair the links, or change path.' },
  ENAMETOOLONG: { what: 'the name is too long', next: 'Shorten path.' },
};

/** Repairs itself once the directory can be created. */
const missing = 'a directory of the path is missing and cannot be created';

/** True for a missing permission, or a path that cannot be a file. */
export function isOfFile(error: unknown): boolean {
  if (error instanceof ExportError) return error.code === 'sink_refused';
  return Object.hasOwn(lasting, errorCodeOf(error));
}

/** The words of a fault, with the system's code; `next`: the step if the code has none of its own. */
export function faultOf(error: unknown, next: string): FileFault {
  if (error instanceof ExportError) return { what: error.message, next: error.next };
  const code = errorCodeOf(error);
  const known = Object.hasOwn(lasting, code) ? lasting[code] : undefined;
  if (known !== undefined) return { what: `${known.what} (${code})`, next: known.next };
  if (code === 'ENOENT') return { what: `${missing} (${code})`, next };
  return { what: code || errorText(error), next };
}

// Files and directories of a file sink.

import type { FileHandle } from 'node:fs/promises';

/** Permissions of files: the owner writes, the group reads, other users have no access. */
export const fileMode = 0o640;
/** Permissions of created directories. */
export const directoryMode = 0o750;

/** Writes all of `bytes` at `position`; the system may accept them in pieces. */
export async function writeAll(file: FileHandle, bytes: Uint8Array, position: number) {
  let written = 0;
  while (written < bytes.length) {
    const { bytesWritten } = await file.write(
      bytes,
      written,
      bytes.length - written,
      position + written,
    );
    written += bytesWritten;
  }
}

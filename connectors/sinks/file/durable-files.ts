// Files and directories of a file sink.

import type { FileHandle } from 'node:fs/promises';

/** Permissions of files: the owner writes, the group reads; events are nobody else's business. */
export const fileMode = 0o640;
/** Permissions of directories made for them. */
export const directoryMode = 0o750;

/** Writes all of `bytes` at `position`; the system may take them in pieces. */
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

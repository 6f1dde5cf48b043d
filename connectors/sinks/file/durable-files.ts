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

/** Uses a file that was just opened, and closes it if that fails: Node ends the process when it collects a forgotten one. */
export async function closedOnFailure<T>(
  file: FileHandle,
  use: (file: FileHandle) => Promise<T>,
): Promise<T> {
  try {
    return await use(file);
  } catch (error) {
    await file.close().catch(() => undefined);
    throw error;
  }
}

// Small file operations that survive a power cut: a name is durable only once its directory has
// been flushed.

import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errorCodeOf } from '../../../src/contracts/errors.ts';

/** Permissions of files: the owner writes, the group reads; events are nobody else's business. */
export const fileMode = 0o640;
/** Permissions of directories made for them. */
export const directoryMode = 0o750;

/** Makes the names in the directory of `path` durable. */
export async function flushNames(path: string): Promise<void> {
  const directory = await open(dirname(path), constants.O_RDONLY);
  try {
    await directory.sync();
  } catch (error) {
    // Some network and FUSE file systems cannot flush a directory; they keep names by other rules.
    if (errorCodeOf(error) !== 'EINVAL') throw error;
  } finally {
    await directory.close();
  }
}

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

// Reads a file that other users may replace: a named pipe would block the process, and a device has no end.

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

/** `code` of the error for a pipe, a device or a socket. */
export const notRegular = 'NOT_REGULAR';

/**
 * The bytes of a regular file, at most `bytesMax` + 1, so that a longer result is too large. Throws as node:fs does,
 * `EISDIR` for a directory, and an error with the code `notRegular`.
 */
export function readRegularFile(path: string, bytesMax: number): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = fstatSync(file);
    if (!found.isFile()) {
      const code = found.isDirectory() ? 'EISDIR' : notRegular;
      throw Object.assign(new Error(`${path} is no regular file`), { code });
    }
    const bytes = Buffer.alloc(Math.min(found.size, bytesMax + 1));
    let length = 0;
    while (length < bytes.length) {
      const read = readSync(file, bytes, length, bytes.length - length, null);
      if (read === 0) break;
      length += read;
    }
    return bytes.subarray(0, length);
  } finally {
    closeSync(file);
  }
}

// Files and directories that only their owner may look into, whatever the umask: what is held is
// security events, and checkpoints hold cursors, which are credentials of a kind.

import { chmodSync, closeSync, existsSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { makeDirectory } from '../contracts/directory.ts';

const fileMode = 0o600;
const directoryMode = 0o700;

/** Makes a directory; one that is there keeps the mode that its owner gave it. */
export function makePrivateDirectory(path: string): void {
  if (makeDirectory(path, directoryMode)) chmodSync(path, directoryMode);
}

/** Makes an empty file, or closes one that is there to others, as after a restore. */
export function makePrivateFile(path: string): void {
  // Never opened where it is there: closing it would let go of this process's locks (fcntl(2)).
  if (!existsSync(path)) closeSync(openSync(path, 'a', fileMode));
  try {
    chmodSync(path, fileMode);
  } catch {
    // Someone else's file, which this process may write to: its owner decides who reads it.
  }
}

/** Replaces a file: at each moment there is the old or the new. `durable`: on the disk. */
export function replacePrivateFile(path: string, text: string, durable = false): void {
  const next = `${path}.next`;
  makePrivateFile(next);
  writeFileSync(next, text, { flush: durable });
  renameSync(next, path);
}

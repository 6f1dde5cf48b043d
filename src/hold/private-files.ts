// Files and directories that only their owner can read, whatever the umask: they hold security
// events, and checkpoints hold cursors, which are a kind of credential.

import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { makeDirectory } from '../contracts/index.ts';

const fileMode = 0o600;
const directoryMode = 0o700;

/** Creates a directory; an existing one keeps the mode that its owner set. */
export function makePrivateDirectory(path: string): void {
  if (makeDirectory(path, directoryMode)) chmodSync(path, directoryMode);
}

/**
 * Creates an empty file, or restricts an existing one to its owner, for example after a restore.
 */
export function makePrivateFile(path: string): void {
  // Never opened if it exists: closing it would release this process's locks (fcntl(2)).
  if (!existsSync(path)) closeSync(openSync(path, 'a', fileMode));
  try {
    chmodSync(path, fileMode);
  } catch {
    // Another user's file that this process may write to: its owner decides who reads it.
  }
}

/** Replaces a file atomically. `durable`: flushed to the disk. */
export function replacePrivateFile(path: string, text: string, durable = false): void {
  const next = `${path}.next`;
  makePrivateFile(next);
  writeFileSync(next, text, { flush: durable });
  renameSync(next, path);
}

/** Flushes a file, or the entries of a directory, to the disk. */
export function syncPath(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

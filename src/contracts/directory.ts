// Creates directories for file writers. Node's recursive mkdir never returns where no directory can
// be created, such as below /proc (each attempt reports ENOENT), so directories are created one by
// one. A directory entry survives a power cut only after the directory was flushed.

import { constants, mkdirSync, realpathSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { errorCodeOf } from './errors.ts';

/** Creates a directory and its parents; false if it exists. Throws the system's error. */
export function makeDirectory(path: string, mode: number): boolean {
  const whole = resolve(path);
  if (statSync(whole, { throwIfNoEntry: false })?.isDirectory()) return false;
  if (dirname(whole) !== whole) makeDirectory(dirname(whole), mode);
  try {
    mkdirSync(whole, { mode });
    return true;
  } catch (error) {
    // Another process has created it in the meantime.
    if (statSync(whole, { throwIfNoEntry: false })?.isDirectory()) return false;
    throw error;
  }
}

/** Makes the entries in the directory of `path` durable. */
export async function flushNames(path: string): Promise<void> {
  await using directory = await open(dirname(path), constants.O_RDONLY);
  try {
    await directory.sync();
  } catch (error) {
    // Some network and FUSE file systems cannot flush a directory; they persist names in another
    // way.
    if (errorCodeOf(error) !== 'EINVAL') throw error;
  }
}

/** The file that a path resolves to, also if the file does not exist yet. */
export function realPathOf(path: string): string {
  const whole = resolve(path);
  try {
    return realpathSync(whole);
  } catch {
    try {
      return join(realpathSync(dirname(whole)), basename(whole));
    } catch {
      return whole;
    }
  }
}

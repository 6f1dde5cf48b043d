// Directories for who writes files. Node makes those above as well when told so, but never ends
// where none can be made, such as below /proc: there each attempt says that something is missing.
// So they are made here one by one. A name in a directory survives a power cut only once that has
// been flushed.

import { constants, mkdirSync, realpathSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { errorCodeOf } from './errors.ts';

/** Makes a directory and those above it; false where it is there. Throws the system's error. */
export function makeDirectory(path: string, mode: number): boolean {
  const whole = resolve(path);
  if (statSync(whole, { throwIfNoEntry: false })?.isDirectory()) return false;
  if (dirname(whole) !== whole) makeDirectory(dirname(whole), mode);
  try {
    mkdirSync(whole, { mode });
    return true;
  } catch (error) {
    // Another process was quicker.
    if (statSync(whole, { throwIfNoEntry: false })?.isDirectory()) return false;
    throw error;
  }
}

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

/** The file that a path leads to, also where it is not there yet. */
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

// Directories for who writes files. Node makes those above as well when told so, but never ends
// where none can be made, such as below /proc: there each attempt says that something is missing.
// So they are made here one by one.

import { mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

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

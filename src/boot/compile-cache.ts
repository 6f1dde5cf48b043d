// The directory of compiled code for the one-file release, in the user's cache. Invariant: code of another user is never
// loaded, so the directory belongs to this user, and no other user can write to it.

import { lstatSync, mkdirSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';

/**
 * `$XDG_CACHE_HOME/sluice/compiled`, else below `$HOME/.cache`; created if it is missing, but not the home directory. Null:
 * there is none that only this user can write to.
 */
export function compileCacheDir({
  XDG_CACHE_HOME: cache = '',
  HOME: home = '',
}: Readonly<Record<string, string | undefined>>): string | null {
  const base = isAbsolute(cache) ? cache : isAbsolute(home) ? join(home, '.cache') : null;
  if (base === null) return null;
  const own = join(base, 'sluice');
  const dir = join(own, 'compiled');
  try {
    // One at a time: Node's `recursive` never returns if a directory exists that accepts no new one, such as /proc.
    for (const each of [base, own, dir]) createDirectory(each);
    return isPrivate(own) && isPrivate(dir) ? dir : null;
  } catch {
    return null; // Read-only, or not a directory: nothing is cached.
  }
}

function createDirectory(dir: string): void {
  if (lstatSync(dir, { throwIfNoEntry: false }) === undefined) mkdirSync(dir, { mode: 0o700 });
}

function isPrivate(dir: string): boolean {
  const stats = lstatSync(dir);
  return stats.isDirectory() && stats.uid === process.getuid?.() && (stats.mode & 0o022) === 0;
}

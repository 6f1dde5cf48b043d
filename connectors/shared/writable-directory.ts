// Checks that a sink can create files in its directory, for `check --connect`.

import { mkdtemp, rmdir, stat, statfs } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

/**
 * Makes sure that this directory exists or can be created, and files in it, leaving nothing behind.
 * Resolves to the free bytes there. Throws the system's error.
 */
export async function probeDirectory(path: string): Promise<number> {
  let directory = resolve(path);
  while ((await stat(directory).catch(() => null)) === null) directory = dirname(directory);
  // Tried, because permissions alone allow root to create files even where no file can exist, as
  // below /proc.
  await rmdir(await mkdtemp(join(directory, '.sluice-')));
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

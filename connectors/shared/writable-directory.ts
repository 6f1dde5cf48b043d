// Whether files can be made where a sink is to make them, for `check --connect`.

import { mkdtemp, rmdir, stat, statfs } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

/**
 * Makes sure that this directory is there or can be made, and files in it, leaving nothing behind.
 * Resolves to the bytes that are free there. Throws the system's error.
 */
export async function probeDirectory(path: string): Promise<number> {
  let directory = resolve(path);
  while ((await stat(directory).catch(() => null)) === null) directory = dirname(directory);
  // Where nobody can make a file, as below /proc, rights alone would say yes to root.
  await rmdir(await mkdtemp(join(directory, '.sluice-')));
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

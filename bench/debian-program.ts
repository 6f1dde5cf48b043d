// A program of Debian's stable release, extracted into the cache and not installed: no service starts, and the release of
// this machine does not matter, since the program runs with the loader and the libraries of its own release.

import { globSync } from 'node:fs';
import { join } from 'node:path';
import { cached, lastLine, needCommands } from '../test/support/cache.ts';
import { runProgram } from '../test/support/children.ts';

const release = 'trixie';

/** A program in the root directory that its package was extracted into. */
export interface DebianProgram {
  /** The loader with the program as its argument: the loader's process becomes that of the program. */
  readonly command: readonly string[];
  /** The only path in the root directory that matches; rejects where there is none. */
  readonly find: (pattern: string) => string;
}

/** The program at `path` of the package `name`, with the libraries of its dependencies and of `libraries`. */
export async function debianProgram(
  name: string,
  path: string,
  libraries: readonly string[] = [],
): Promise<DebianProgram> {
  const root = await cached(`debian-${release}-${name}`, (dir) => extract(name, dir));
  const find = (pattern: string) => {
    const [found] = globSync(join(root, pattern));
    if (found === undefined) throw new Error(`${name} of ${release} has no ${pattern}`);
    return found;
  };
  const directories = ['usr/lib/*-linux-gnu*', ...libraries].map(find);
  const loader = find('usr/lib/*-linux-gnu*/ld-linux*.so.*');
  return { command: [loader, '--library-path', directories.join(':'), join(root, path)], find };
}

async function extract(name: string, dir: string): Promise<void> {
  const hint = 'install mmdebstrap, and give it a mirror of Debian';
  await needCommands(['mmdebstrap'], ['mmdebstrap'], hint);
  const args = ['--variant=extract', `--include=${name}`, release, dir];
  const { exitCode, errors } = await runProgram('nice', ['mmdebstrap', ...args]);
  if (exitCode !== 0) throw new Error(`mmdebstrap: ${lastLine(errors)}; ${hint}`);
}

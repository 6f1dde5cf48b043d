// The location of downloads and builds that the tests keep between runs: the user's cache directory, so that every
// checkout on a machine shares them and a fresh clone starts with them. Several runs may fill the cache at the same
// moment, so an entry is built beside its path and moved there whole: it is either complete or absent.
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { runProgram } from './children.ts';

const cacheDir = join(userCacheDir(), 'sluice');

// A relative $XDG_CACHE_HOME is invalid, says the XDG Base Directory Specification, and to be ignored.
function userCacheDir(): string {
  const named = process.env.XDG_CACHE_HOME ?? '';
  return isAbsolute(named) ? named : join(homedir(), '.cache');
}

/**
 * The directory of the cache entry `name`, filled by `fill(emptyDir)` if it is not there yet. When
 * `fill` rejects nothing is kept.
 */
export async function cached(name: string, fill: (dir: string) => Promise<void>): Promise<string> {
  const place = join(cacheDir, name);
  if (existsSync(place)) return place;
  mkdirSync(cacheDir, { recursive: true });
  const building = mkdtempSync(join(cacheDir, `${name}-building-`));
  try {
    await fill(building);
    try {
      renameSync(building, place);
    } catch (error) {
      if (!existsSync(place)) throw error; // else another run was first, with the same content
    }
  } finally {
    rmSync(building, { recursive: true, force: true });
  }
  return place;
}

/**
 * Makes sure that the named commands can be run, installing Debian packages for those that cannot
 * where that is possible (root, apt-get). Rejects with `hint` where it is not.
 */
export async function needCommands(
  commands: readonly string[],
  packages: readonly string[],
  hint: string,
): Promise<void> {
  if ((await missingOf(commands)).length === 0) return;
  const install = [
    'install',
    '-y',
    ...whileAnotherInstalls,
    '--no-install-recommends',
    ...packages,
  ];
  const first = await runProgram('apt-get', install);
  if (first.exitCode !== 0) {
    await runProgram('apt-get', ['update']);
    await runProgram('apt-get', install);
  }
  const missing = await missingOf(commands);
  if (missing.length === 0) return;
  throw new Error(`${hint} Missing here: ${missing.join(', ')}. ${lastLine(first.errors)}`.trim());
}

/** Another test, or the system, may be installing: apt-get waits for it, in seconds, and does not fail. */
const whileAnotherInstalls = ['-o', 'DPkg::Lock::Timeout=600'];

async function missingOf(commands: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(
    commands.map(async (command) => {
      const result = await runProgram('sh', ['-c', 'command -v "$1"', 'sh', command]);
      return result.exitCode === 0 ? [] : [command];
    }),
  );
  return found.flat();
}

/** The last line of a program's complaint that says something: most often the reason. */
export function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1)?.trim() ?? '';
}

// The running version of sluice, and the commit from which it was built.

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inflateSync } from 'node:zlib';

/** The build of the running program. */
export interface Build {
  /** From package.json, such as `0.2.0`. */
  readonly version: string;
  /** 40 hexadecimal digits; null: the checkout has no git data. */
  readonly commit: string | null;
  /** Day of the commit (UTC), such as `2026-11-26`; null if it is not known. */
  readonly date: string | null;
}

const root = fileURLToPath(new URL('../../', import.meta.url));
/** Commit and day, which bundle.js has from git. */
const bundledFile = 'node_modules/.cache/sluice-bundle/commit.json';

/** `0.2.0`: the version of sluice, from its package.json. */
export function version(): string {
  const { version }: { version: string } = JSON.parse(read('package.json'));
  return version;
}

/**
 * The build: a release names its commit and day in build.json. A checkout has its commit in .git, and the day in the commit's
 * own file; if git has packed that file, the day is known if the last `npm ci` was of this commit.
 */
export function build(): Build {
  const release = readable('build.json');
  if (release !== null) return { version: version(), ...JSON.parse(release) };
  const commit = checkedOut();
  return { version: version(), commit, date: commit === null ? null : dayOf(commit) };
}

/** `0.2.0 (1a2b3c4d5e6f, 2026-11-26)`: the build for a reader. */
export function buildText({ version, commit, date }: Build = build()): string {
  const parts = [commit?.slice(0, 12), date].filter((part) => part != null);
  return parts.length === 0 ? version : `${version} (${parts.join(', ')})`;
}

function checkedOut(): string | null {
  const head = readable('HEAD', gitDir())?.trim() ?? '';
  const branch = /^ref: (refs\/[\w./-]+)$/.exec(head)?.[1];
  const commit = branch === undefined ? head : commitOf(branch);
  return /^[0-9a-f]{40}$/.test(commit) ? commit : null;
}

/** In a worktree, `.git` is a file with the path of its directory. */
function gitDir(): string {
  const linked = /^gitdir: (.+)$/m.exec(readable('.git') ?? '')?.[1];
  return resolve(root, linked ?? '.git');
}

/** The directory with branches and objects, which worktrees share. */
function sharedGitDir(): string {
  return resolve(gitDir(), readable('commondir', gitDir())?.trim() ?? '.');
}

function commitOf(branch: string): string {
  const own = readable(branch, sharedGitDir())?.trim();
  if (own !== undefined) return own;
  const packed = readable('packed-refs', sharedGitDir()) ?? '';
  const line = packed.split('\n').find((one) => one.endsWith(` ${branch}`));
  return line?.slice(0, 40) ?? '';
}

function dayOf(commit: string): string | null {
  const bundled = JSON.parse(readable(bundledFile) ?? '{}');
  if (bundled.commit === commit) return bundled.date;
  try {
    const file = `objects/${commit.slice(0, 2)}/${commit.slice(2)}`;
    const text = inflateSync(readFileSync(resolve(sharedGitDir(), file))).toString();
    const seconds = /^committer .* (\d+) [+-]\d{4}$/m.exec(text)?.[1];
    return new Date(Number(seconds) * 1_000).toISOString().slice(0, 10);
  } catch {
    return null; // Packed, or not a commit.
  }
}

function readable(path: string, dir: string = root): string | null {
  try {
    return read(path, dir);
  } catch {
    return null; // There is no such file.
  }
}

function read(path: string, dir: string = root): string {
  return readFileSync(resolve(dir, path), 'utf8');
}

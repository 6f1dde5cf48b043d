// The running version of sluice, and the commit from which it was built.

import { readFileSync } from 'node:fs';

/** The build of the running program. */
export interface Build {
  /** From package.json, such as `0.2.0`. */
  readonly version: string;
  /** 40 hexadecimal digits; null: the checkout has no git data. */
  readonly commit: string | null;
  /** Day of the commit (UTC), such as `2026-11-26`; null in a checkout. */
  readonly date: string | null;
}

const root = new URL('../../', import.meta.url);

/** `0.2.0`: the version of sluice, from its package.json. */
export function version(): string {
  const { version }: { version: string } = JSON.parse(read('package.json'));
  return version;
}

/** The build: a release names its commit and day in build.json, a checkout has its commit in .git. */
export function build(): Build {
  const release = readable('build.json');
  if (release !== null) return { version: version(), ...JSON.parse(release) };
  return { version: version(), commit: checkedOut(), date: null };
}

/** `0.2.0 (1a2b3c4d5e6f, 2026-11-26)`: the build for a reader. */
export function buildText({ version, commit, date }: Build = build()): string {
  const parts = [commit?.slice(0, 12), date].filter((part) => part != null);
  return parts.length === 0 ? version : `${version} (${parts.join(', ')})`;
}

function checkedOut(): string | null {
  const head = readable('.git/HEAD')?.trim() ?? '';
  const branch = /^ref: (refs\/[\w./-]+)$/.exec(head)?.[1];
  const commit = branch === undefined ? head : (readable(`.git/${branch}`)?.trim() ?? '');
  return /^[0-9a-f]{40}$/.test(commit) ? commit : null;
}

function readable(path: string): string | null {
  try {
    return read(path);
  } catch {
    return null; // There is no such file.
  }
}

function read(path: string): string {
  return readFileSync(new URL(path, root), 'utf8');
}

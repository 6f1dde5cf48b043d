// The commit and day of a checkout, read from git's files without git: of a branch, a packed one, and a worktree.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tempDir } from '../support/temp.ts';

const root = join(import.meta.dirname, '../..');
// Late in the day of UTC-8: the day of the build is the one of UTC.
const GIT_COMMITTER_DATE = '2026-03-01T23:30:00 -0800';

function git(dir: string, ...args: readonly string[]): string {
  const settings = ['core.hooksPath=/dev/null', 'user.name=t', 'user.email=t@example.com'];
  const { status, stdout, stderr } = spawnSync(
    'git',
    [...settings.flatMap((one) => ['-c', one]), ...args],
    { cwd: dir, encoding: 'utf8', env: { ...process.env, GIT_COMMITTER_DATE } },
  );
  expect(status, stderr).toBe(0);
  return stdout.trim();
}

function checkout() {
  const dir = tempDir();
  mkdirSync(join(dir, 'src/tools'), { recursive: true });
  for (const path of ['package.json', 'src/tools/version.ts']) {
    cpSync(join(root, path), join(dir, path));
  }
  git(dir, 'init', '--quiet');
  git(dir, 'add', '.');
  git(dir, 'commit', '--quiet', '--message', 'One');
  return { dir, commit: git(dir, 'rev-parse', 'HEAD') };
}

function buildOf(dir: string) {
  const code = `import { build } from ${JSON.stringify(join(dir, 'src/tools/version.ts'))};
    console.log(JSON.stringify(build()));`;
  const args = ['--input-type=module', '--eval', code];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

test('a checkout has its commit and the UTC day of the commit, also in a worktree', () => {
  const { dir, commit } = checkout();
  const expected = { commit, date: '2026-03-02' };
  const linked = join(tempDir(), 'linked');
  git(dir, 'worktree', 'add', '--quiet', linked);

  expect(buildOf(dir)).toMatchObject(expected);
  expect(buildOf(linked)).toMatchObject(expected);
});

test('a packed commit has the day that the bundle of this commit has', () => {
  const { dir, commit } = checkout();
  git(dir, 'gc', '--quiet');
  const bundle = join(dir, 'node_modules/.cache/sluice-bundle');
  const bundledAs = (text: object) => {
    mkdirSync(bundle, { recursive: true });
    writeFileSync(join(bundle, 'commit.json'), JSON.stringify(text));
  };

  expect(buildOf(dir)).toMatchObject({ commit, date: null });
  bundledAs({ commit: 'f'.repeat(40), date: '2020-01-01' });
  expect(buildOf(dir)).toMatchObject({ commit, date: null });
  bundledAs({ commit, date: '2026-03-02' });
  expect(buildOf(dir)).toMatchObject({ commit, date: '2026-03-02' });
});

test('a release has what build.json has, and no files of git are needed', () => {
  const { dir } = checkout();
  rmSync(join(dir, '.git'), { recursive: true });

  expect(buildOf(dir)).toMatchObject({ commit: null, date: null });
  const release = { commit: 'a'.repeat(40), date: '2026-11-26' };
  writeFileSync(join(dir, 'build.json'), JSON.stringify(release));
  expect(buildOf(dir)).toMatchObject(release);
});

// Checks the top level of the checkout. Invariant: it has the listed names only, and no test or bench
// writes another one there. Output of README's commands (`out`, `state`, `.quickstart`) is in .gitignore.

import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

const names = [
  ...['.ci', '.dockerignore', '.editorconfig', '.gitattributes', '.github', '.gitignore', '.npmrc'],
  ...['CHANGELOG.md', 'CONTRIBUTING.md', 'changelog.d'],
  ...['Dockerfile', 'LICENSE', 'README.md', 'SECURITY.md', 'bench', 'biome.json', 'config'],
  ...['connectors', 'deploy', 'docs', 'formats', 'knip.json', 'package-lock.json', 'package.json'],
  ...['src', 'test', 'tsconfig.json', 'vitest.config.ts'],
];

/** Names that git ignores and that commands of the README make. */
const made = ['.git', '.quickstart', 'coverage', 'node_modules', 'out', 'state'];

test('the top level of the checkout has the listed names only', () => {
  const unlisted = readdirSync(root).filter((name) => ![...names, ...made].includes(name));

  expect(unlisted).toEqual([]);
});

test('no ignored name at the top level is committed', () => {
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' });
  const committed = new Set(files.split('\0').map((path) => path.split('/')[0]));

  expect(made.filter((name) => committed.has(name))).toEqual([]);
});

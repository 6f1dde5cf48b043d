// A config with any wrong node is an error of the config, never a fault of the program: the checks between blocks meet
// blocks that are absent, invalid or of another kind. Each node is wrong in one of three ways, in turn from file to file;
// SLUICE_TEST_LONG=1 tries all three.

import { readdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { tempDir } from '../support/temp.ts';
import { aConfig, configEnv, flawLines } from './config-text.ts';

const directory = new URL('../../config/', import.meta.url);
const names = (await readdir(directory)).filter((name) => name.endsWith('.yaml'));

const isLong = process.env.SLUICE_TEST_LONG === '1';

type Tree = Record<string, unknown>;

/** Every node below, as the node above it and its key. */
function* nodesOf(tree: Tree): Generator<readonly [above: Tree, key: string]> {
  for (const key of Object.keys(tree)) {
    yield [tree, key];
    const value = tree[key];
    if (typeof value === 'object' && value !== null) yield* nodesOf(value as Tree);
  }
}

test.each(names.map((name, file) => [name, file] as const))(
  'parseConfig reports a wrong node of %s as an error of the config',
  async (name, file) => {
    const tree = parse(await readFile(new URL(name, directory), 'utf8')) as Tree;
    for (const [i, [above, key]] of [...nodesOf(tree)].entries()) {
      const right = above[key];
      const all = [undefined, 'x\0', {}];
      for (const wrong of isLong ? all : [all[(i + file) % all.length]]) {
        above[key] = wrong;
        expect(() => flawLines(stringify(tree), configEnv())).not.toThrow();
      }
      above[key] = right;
    }
  },
);

test('parseConfig accepts a file that cannot be looked up: a link in a loop, a name that is too long', async () => {
  const dir = tempDir();
  await symlink(join(dir, 'loop'), join(dir, 'loop'));
  const sinkTo = (path: string) => aConfig({ sinks: `  disk: { type: file, path: "${path}" }` });

  expect(flawLines(sinkTo(join(dir, 'loop', 'out')))).toEqual([]);
  expect(flawLines(sinkTo(join(dir, 'n'.repeat(300))))).toEqual([]);
});

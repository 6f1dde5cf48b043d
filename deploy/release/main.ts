// `npm run release -- --out DIR [--sign KEY] [--platform x64]`: builds all files of a release into an empty or new directory,
// from a checkout without changes. It uses no network; `npm run release:fetch` fetches what it needs before.
// Invariant: two builds of one commit give the same bytes, wherever they run.

import { hash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { constants, zstdCompressSync } from 'node:zlib';
import { version } from '../../src/tools/index.ts';
import { writeExecutable } from './executable.ts';
import { nodeOf, output, type Platform, platforms, stripped } from './machine.ts';
import { releaseTree, type Tree } from './tree.ts';

const { values } = parseArgs({
  options: {
    out: { type: 'string' },
    sign: { type: 'string' },
    platform: { type: 'string', multiple: true },
  },
});
if (values.out === undefined) throw new Error('--out DIR is missing: the directory of the files');
const out = resolve(values.out);
if (existsSync(out) && readdirSync(out).length > 0) throw new Error(`${out} is not empty`);
mkdirSync(out, { recursive: true });

const changes = output('git', ['status', '--porcelain', '--untracked-files=no']);
if (changes !== '') throw new Error(`the checkout has changes; commit them first:\n${changes}`);
const commit = output('git', ['rev-parse', 'HEAD']).trim();
const seconds = Number(output('git', ['log', '-1', '--format=%ct']));
const date = new Date(seconds * 1_000).toISOString().slice(0, 10);

const { files, packages } = await releaseTree();
const tree: Tree = new Map([
  ...files,
  ['build.json', Buffer.from(JSON.stringify({ commit, date }))] as const,
]);
const work = mkdtempSync(join(tmpdir(), 'sluice-release-'));
try {
  for (const platform of chosen()) {
    const node = join(work, `node-${platform}`);
    stripped(nodeOf(platform).binary, node);
    const dir = join(work, platform);
    mkdirSync(dir);
    const file = join(work, `sluice-${platform}`);
    writeExecutable(tree, node, file, dir);
    const level = { params: { [constants.ZSTD_c_compressionLevel]: 19 } };
    writeFileSync(
      join(out, `sluice-${version()}-linux-${platform}.zst`),
      zstdCompressSync(readFileSync(file), level),
    );
  }
  writeSums();
} finally {
  rmSync(work, { recursive: true });
}
process.stdout.write(`${out}: ${packages.length} packages joined\n`);

function chosen(): readonly Platform[] {
  const named = values.platform ?? platforms;
  return platforms.filter((platform) => named.includes(platform));
}

/** SHA256SUMS of all files, and its signature by an OpenSSH key (`ssh-keygen -Y verify`, namespace sluice-release). */
function writeSums(): void {
  const sums = readdirSync(out)
    .toSorted()
    .map((name) => `${hash('sha256', readFileSync(join(out, name)))}  ${name}\n`);
  const file = join(out, 'SHA256SUMS');
  writeFileSync(file, sums.join(''));
  if (values.sign !== undefined) {
    output('ssh-keygen', ['-q', '-Y', 'sign', '-n', 'sluice-release', '-f', values.sign, file]);
  }
}

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
import { type Component, componentsOf, cycloneDx, spdx } from './bill.ts';
import { changelog } from './changelog.ts';
import { chart } from './chart.ts';
import { writeExecutable } from './executable.ts';
import { image } from './image.ts';
import { nodeOf, output, type Platform, platforms, stripped } from './machine.ts';
import { notices } from './notices.ts';
import { writePackages } from './packages.ts';
import { provenance } from './provenance.ts';
import { releaseTree, root, type Tree } from './tree.ts';

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

const time = new Date(seconds * 1_000).toISOString().replace('.000Z', 'Z');

const { files, packages } = await releaseTree();
const tree: Tree = new Map([
  ...files,
  ['build.json', Buffer.from(JSON.stringify({ commit, date: time.slice(0, 10) }))] as const,
]);
const parts = [...componentsOf(packages), nodeComponent()];
const noticesText = notices(parts.slice(0, -1), nodeOf('x64').license);
const bill = { version: version(), commit, time };
const work = mkdtempSync(join(tmpdir(), 'sluice-release-'));
try {
  write(`sluice-${version()}.cdx.json`, cycloneDx(parts, bill));
  write(`sluice-${version()}.spdx.json`, spdx(parts, bill));
  write('THIRD-PARTY-NOTICES', noticesText);
  write('CHANGELOG.md', changelog());
  const pack = ['pack', '--silent', '--ignore-scripts', '--pack-destination', out];
  output('npm', pack);
  write(`sluice-chart-${version()}.tgz`, chart(seconds));
  for (const platform of chosen()) executables(platform);
  const license = readFileSync(join(root, 'LICENSE'), 'utf8');
  for (const platform of chosen()) {
    const executable = readFileSync(join(work, `sluice-${platform}`));
    const archive = image(platform, executable, { ...bill, license, notices: noticesText });
    write(`sluice-${version()}-image-${platform}.tar`, archive);
    writePackages(
      {
        ...{ platform, time, version: version(), notices: noticesText },
        executable: join(work, `sluice-${platform}`),
        runnable: join(work, `sluice-${process.arch}`),
        work: join(work, `packages-${platform}`),
      },
      out,
    );
  }
  write(`sluice-${version()}.intoto.json`, provenance(sums(), bill));
  writeSums();
} finally {
  rmSync(work, { recursive: true });
}
process.stdout.write(
  sums()
    .map(([name, digest]) => `${digest}  ${name}\n`)
    .join(''),
);

function write(name: string, content: string | Uint8Array): void {
  writeFileSync(join(out, name), content);
}

/** The one file of a platform, as it is in packages, and compressed for a download. */
function executables(platform: Platform): void {
  const node = join(work, `node-${platform}`);
  stripped(nodeOf(platform).binary, node);
  const dir = join(work, platform);
  mkdirSync(dir);
  const file = join(work, `sluice-${platform}`);
  writeExecutable(tree, node, file, dir);
  const level = { params: { [constants.ZSTD_c_compressionLevel]: 9 } };
  write(`sluice-${version()}-linux-${platform}.zst`, zstdCompressSync(readFileSync(file), level));
}

function nodeComponent(): Component {
  const license = 'MIT';
  return { name: 'node', version: process.version.slice(1), license, sha512: null, directory: '' };
}

function chosen(): readonly Platform[] {
  const named = values.platform ?? platforms;
  return platforms.filter((platform) => named.includes(platform));
}

/** Name and SHA-256 of each file of the release. */
function sums(): readonly (readonly [string, string])[] {
  return readdirSync(out)
    .filter((name) => !name.startsWith('SHA256SUMS'))
    .toSorted()
    .map((name) => [name, hash('sha256', readFileSync(join(out, name)))] as const);
}

/** SHA256SUMS of all files, and its signature by an OpenSSH key (`ssh-keygen -Y verify`, namespace sluice-release). */
function writeSums(): void {
  write(
    'SHA256SUMS',
    sums()
      .map(([name, digest]) => `${digest}  ${name}\n`)
      .join(''),
  );
  if (values.sign === undefined) return;
  const args = ['-q', '-Y', 'sign', '-n', 'sluice-release', '-f', values.sign];
  output('ssh-keygen', [...args, join(out, 'SHA256SUMS')]);
}

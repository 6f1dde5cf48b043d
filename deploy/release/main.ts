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
import { type BillOf, type Component, componentsOf, cycloneDx, spdx } from './bill.ts';
import { changelog, newestVersion } from './changelog.ts';
import { chart } from './chart.ts';
import { writeExecutable } from './executable.ts';
import { image } from './image.ts';
import { debsOf, nfpm, nodeOf, output, type Platform, platforms, stripped } from './machine.ts';
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

/** A reason for which nothing is built; its message has the next step. */
class Refusal extends Error {}

let out = '';
let work = '';
try {
  await release();
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  process.stderr.write(`error: ${error.message}\n`);
  process.exitCode = 1;
}

/** Every refusal comes before the first file is written. */
async function release(): Promise<void> {
  const chosen = chosenPlatforms();
  const fetched = refusedIf(() => ({
    nodes: platforms.map(nodeOf),
    nfpm: nfpm(),
    debs: chosen.map(debsOf),
  }));
  const bill = { version: version(), ...commitOf() };
  const changes = refusedIf(changelog);
  refuseEmptySection(changes);
  refuseUnusableKey();
  out = emptyDirectory();

  const { files, packages } = await releaseTree();
  const about = JSON.stringify({ commit: bill.commit, date: bill.time.slice(0, 10) });
  const tree: Tree = new Map([...files, ['build.json', Buffer.from(about)] as const]);
  const parts = [...componentsOf(packages), nodeComponent()];
  const noticesText = notices(parts.slice(0, -1), fetched.nodes[0]?.license ?? '');
  work = mkdtempSync(join(tmpdir(), 'sluice-release-'));
  try {
    write(`sluice-${version()}.cdx.json`, cycloneDx(parts, bill));
    write(`sluice-${version()}.spdx.json`, spdx(parts, bill));
    write('THIRD-PARTY-NOTICES', noticesText);
    write('CHANGELOG.md', changes);
    output('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', out]);
    write(`sluice-chart-${version()}.tgz`, chart(Date.parse(bill.time) / 1_000));
    // The texts of the packages come from the program, as it runs on this machine.
    for (const platform of new Set([...chosen, ownPlatform()])) executable(platform, tree);
    for (const platform of chosen) packagesOf(platform, bill, noticesText);
    write(`sluice-${version()}.intoto.json`, provenance(sums(), bill));
    writeSums();
  } finally {
    rmSync(work, { recursive: true });
  }
  process.stdout.write(sumLines());
}

function refusedIf<T>(get: () => T): T {
  try {
    return get();
  } catch (error) {
    throw new Refusal(error instanceof Error ? error.message : String(error));
  }
}

function chosenPlatforms(): readonly Platform[] {
  const named = values.platform ?? platforms;
  const unknown = named.find((name) => !platforms.some((platform) => platform === name));
  if (unknown !== undefined) {
    throw new Refusal(`--platform ${unknown} is unknown; platforms: ${platforms.join(', ')}`);
  }
  return platforms.filter((platform) => named.includes(platform));
}

function ownPlatform(): Platform {
  const own = platforms.find((platform) => platform === process.arch);
  if (own === undefined) throw new Refusal(`a release cannot be built on ${process.arch}`);
  return own;
}

/** The commit of the checkout, and its time. */
function commitOf(): { readonly commit: string; readonly time: string } {
  const changes = refusedIf(() => output('git', ['status', '--porcelain', '--untracked-files=no']));
  if (changes !== '') {
    throw new Refusal(`the checkout has changes; commit them, then build again:\n${changes}`);
  }
  const seconds = Number(output('git', ['log', '-1', '--format=%ct']));
  const time = new Date(seconds * 1_000).toISOString().replace('.000Z', 'Z');
  return { commit: output('git', ['rev-parse', 'HEAD']).trim(), time };
}

function refuseEmptySection(changes: string): void {
  const [, newest = ''] = changes.split(/^(?=## )/m);
  if (newestVersion(changes) === version() && /^- \S/m.test(newest)) return;
  throw new Refusal(
    `CHANGELOG.md has no changes of ${version()}, and changelog.d has none: describe each change in a file of changelog.d`,
  );
}

/** A key with a passphrase would wait for a person at the end of the build. */
function refuseUnusableKey(): void {
  if (values.sign === undefined) return;
  const key = values.sign;
  refusedIf(() => {
    if (!existsSync(key)) throw new Error(`--sign ${key}: there is no such file`);
    output('ssh-keygen', ['-y', '-P', '', '-f', key]);
  });
}

function emptyDirectory(): string {
  if (values.out === undefined) {
    throw new Refusal('--out is missing: name a directory for the files');
  }
  const dir = resolve(values.out);
  if (existsSync(dir) && readdirSync(dir).length > 0) {
    throw new Refusal(`--out ${dir} is not empty: name a new or an empty directory`);
  }
  mkdirSync(dir, { recursive: true });
  return dir;
}

function write(name: string, content: string | Uint8Array): void {
  writeFileSync(join(out, name), content);
}

/** The one file of a platform, as the packages hold it. */
function executable(platform: Platform, tree: Tree): void {
  const node = join(work, `node-${platform}`);
  stripped(nodeOf(platform).binary, node);
  const dir = join(work, platform);
  mkdirSync(dir);
  writeExecutable(tree, node, join(work, `sluice-${platform}`), dir);
}

/** The one file compressed for a download, the image, the deb and the rpm. */
function packagesOf(platform: Platform, bill: BillOf, noticesText: string): void {
  const file = join(work, `sluice-${platform}`);
  const bytes = readFileSync(file);
  const level = { params: { [constants.ZSTD_c_compressionLevel]: 9 } };
  write(`sluice-${version()}-linux-${platform}.zst`, zstdCompressSync(bytes, level));
  const license = readFileSync(join(root, 'LICENSE'), 'utf8');
  const archive = image(platform, bytes, { ...bill, license, notices: noticesText });
  write(`sluice-${version()}-image-${platform}.tar`, archive);
  writePackages(
    {
      ...{ platform, time: bill.time, version: version(), notices: noticesText },
      executable: file,
      runnable: join(work, `sluice-${ownPlatform()}`),
      work: join(work, `packages-${platform}`),
    },
    out,
  );
}

function nodeComponent(): Component {
  const license = 'MIT';
  return { name: 'node', version: process.version.slice(1), license, sha512: null, directory: '' };
}

/** Name and SHA-256 of each file of the release. */
function sums(): readonly (readonly [string, string])[] {
  return readdirSync(out)
    .filter((name) => !name.startsWith('SHA256SUMS'))
    .toSorted()
    .map((name) => [name, hash('sha256', readFileSync(join(out, name)))] as const);
}

function sumLines(): string {
  return sums()
    .map(([name, digest]) => `${digest}  ${name}\n`)
    .join('');
}

/** SHA256SUMS of all files, and its signature by an OpenSSH key (`ssh-keygen -Y verify`, namespace sluice-release). */
function writeSums(): void {
  write('SHA256SUMS', sumLines());
  if (values.sign === undefined) return;
  const args = ['-q', '-Y', 'sign', '-n', 'sluice-release', '-f', values.sign];
  output('ssh-keygen', [...args, join(out, 'SHA256SUMS')]);
}

// What a release needs beside the checkout, in one cache directory: the Node binaries of both platforms, nfpm, which
// writes packages, and Debian packages for the image. `npm run release:fetch` fills it; the release uses no network.

import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './tree.ts';

/** A platform of a release, by the name that its packages have. */
export type Platform = 'x64' | 'arm64';
/** All platforms of a release. */
export const platforms: readonly Platform[] = ['x64', 'arm64'];

/** Packages are written by this version: https://github.com/goreleaser/nfpm. */
const nfpmVersion = 'v2.43.4';

const cache = join(root, 'node_modules/.cache/sluice-release');

/** Runs a program to its end and returns its output. Throws with its errors if it fails. */
export function output(program: string, args: readonly string[], cwd: string = root): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: 'utf8' });
  if (error !== undefined) throw new Error(`cannot start ${program}: ${error.message}`);
  if (status !== 0) throw new Error(`${program} ${args[0]} ended with ${status}: ${stderr}`);
  return stdout;
}

/** The Node binary of a platform, and its licence. Throws if it is not fetched. */
export function nodeOf(platform: Platform): { readonly binary: string; readonly license: string } {
  const dir = join(cache, `node-${platform}`);
  return { binary: needed(join(dir, 'node')), license: needed(join(dir, 'LICENSE')) };
}

/** The program nfpm. Throws if it is not fetched. */
export function nfpm(): string {
  return needed(join(cache, 'nfpm'));
}

/** The Debian packages of the image. Throws if one is not fetched. */
export function debsOf(platform: Platform): readonly string[] {
  return imagePackages().map(({ name }) => needed(debPath(platform, name)));
}

function debPath(platform: Platform, name: string): string {
  return join(cache, `debs-${platform}`, `${name}.deb`);
}

interface ImagePackage {
  readonly name: string;
  readonly version: string;
  readonly sha256: Readonly<Record<Platform, string>>;
}

function imagePackages(): readonly ImagePackage[] {
  const file = join(import.meta.dirname, 'image-packages.json');
  return JSON.parse(readFileSync(file, 'utf8')).packages;
}

function needed(path: string): string {
  if (existsSync(path)) return path;
  throw new Error(
    `${path} is missing: run npm run release:fetch, which needs npm's registry, Go and apt of Debian`,
  );
}

/** A Node binary without symbols, which are a fifth of the file. The bytes depend on the version of llvm-strip only. */
export function stripped(binary: string, to: string): void {
  copyFileSync(binary, to);
  chmodSync(to, 0o755);
  output('llvm-strip', [to]);
}

if (import.meta.main) {
  mkdirSync(cache, { recursive: true });
  for (const platform of platforms) fetchNode(platform);
  for (const platform of platforms) fetchDebs(platform);
  if (!existsSync(join(cache, 'nfpm'))) {
    output('env', [
      `GOBIN=${cache}`,
      'go',
      'install',
      `github.com/goreleaser/nfpm/v2/cmd/nfpm@${nfpmVersion}`,
    ]);
  }
  process.stdout.write(`fetched into ${cache}\n`);
}

/** The package of the lockfile, checked against its hash there. */
function fetchNode(platform: Platform): void {
  const to = join(cache, `node-${platform}`);
  if (existsSync(to)) return;
  const name = `node-linux-${platform}`;
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const { version, integrity } = lock.packages[`node_modules/${name}`];
  const dir = mkdtempSync(join(tmpdir(), 'sluice-fetch-'));
  try {
    const [{ filename }] = JSON.parse(
      output('npm', ['pack', `${name}@${version}`, '--json', '--pack-destination', dir]),
    );
    const archive = join(dir, filename);
    const found = `sha512-${hash('sha512', readFileSync(archive), 'base64')}`;
    if (found !== integrity)
      throw new Error(`${name}: ${found} is not ${integrity} of the lockfile`);
    output('tar', ['-xzf', archive, '-C', dir, 'package/bin/node', 'package/LICENSE']);
    mkdirSync(to);
    copyFileSync(join(dir, 'package/LICENSE'), join(to, 'LICENSE'));
    copyFileSync(join(dir, 'package/bin/node'), join(to, 'node'));
    chmodSync(join(to, 'node'), 0o755);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** The packages of image-packages.json, checked against their hashes there. apt keeps its lists apart from those of this machine. */
function fetchDebs(platform: Platform): void {
  const missing = imagePackages().filter(({ name }) => !existsSync(debPath(platform, name)));
  if (missing.length === 0) return;
  const dir = mkdtempSync(join(tmpdir(), 'sluice-fetch-'));
  try {
    const architecture = { x64: 'amd64', arm64: 'arm64' }[platform];
    for (const part of ['state/lists/partial', 'cache/archives/partial']) {
      mkdirSync(join(dir, part), { recursive: true });
    }
    writeFileSync(join(dir, 'status'), '');
    const options = [
      `Dir::State=${dir}/state`,
      `Dir::Cache=${dir}/cache`,
      `Dir::State::status=${dir}/status`,
      `APT::Architecture=${architecture}`,
      `APT::Architectures=${architecture}`,
    ].flatMap((option) => ['-o', option]);
    output('apt-get', [...options, 'update']);
    for (const { name, version, sha256 } of missing) {
      output('apt-get', [...options, 'download', `${name}=${version}`], dir);
      const [file = ''] = globSync('*.deb', { cwd: dir });
      const found = hash('sha256', readFileSync(join(dir, file)));
      if (found !== sha256[platform]) {
        throw new Error(`${file}: ${found} is not ${sha256[platform]} of image-packages.json`);
      }
      mkdirSync(join(cache, `debs-${platform}`), { recursive: true });
      copyFileSync(join(dir, file), debPath(platform, name));
      rmSync(join(dir, file));
    }
  } finally {
    rmSync(dir, { recursive: true });
  }
}

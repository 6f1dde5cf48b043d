// What a release needs beside the checkout, in a directory of the user's cache: the Node binaries of both platforms, nfpm,
// which writes packages, and Debian packages for the image. `npm run release:fetch` fills it; the release uses no network.
// Invariant: a release uses the versions of this commit only, whatever an earlier commit has fetched.

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
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { root } from './tree.ts';

/** A platform of a release, by the name that its packages have. */
export type Platform = 'x64' | 'arm64';
/** All platforms of a release. */
export const platforms: readonly Platform[] = ['x64', 'arm64'];

/** Packages are written by this version: https://github.com/goreleaser/nfpm. */
const nfpmVersion = 'v2.43.4';

const { XDG_CACHE_HOME: named = '' } = process.env;
const cache = join(isAbsolute(named) ? named : join(homedir(), '.cache'), 'sluice/release');

/** Runs a program to its end and returns its output. Throws with its errors if it fails. */
export function output(program: string, args: readonly string[], cwd: string = root): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: 'utf8' });
  if (error !== undefined) throw new Error(`cannot start ${program}: ${error.message}`);
  if (status !== 0) throw new Error(`${program} ${args[0]} ended with ${status}: ${stderr}`);
  return stdout;
}

/** The Node binary of a platform, and its licence. Throws if it is not fetched. */
export function nodeOf(platform: Platform): { readonly binary: string; readonly license: string } {
  const dir = nodeDir(platform);
  return { binary: needed(join(dir, 'node')), license: needed(join(dir, 'LICENSE')) };
}

function nodeDir(platform: Platform): string {
  return join(cache, `node-${platform}-${lockedNode(platform).version}`);
}

/** The Node of the lockfile. Throws if it is another version than the running one, which writes the one file. */
function lockedNode(platform: Platform): { readonly version: string; readonly integrity: string } {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const locked = lock.packages[`node_modules/node-linux-${platform}`];
  if (`v${locked.version}` !== process.version) {
    throw new Error(
      `this is Node ${process.version}, and package-lock.json has ${locked.version}: run npm ci, and start with npm run`,
    );
  }
  return locked;
}

/** The program nfpm. Throws if it is not fetched. */
export function nfpm(): string {
  return needed(nfpmFile);
}

const nfpmFile = join(cache, nfpmVersion, 'nfpm');

/** The Debian packages of the image. Throws if one is not fetched, or is not that of image-packages.json. */
export function debsOf(platform: Platform): readonly string[] {
  return imagePackages().map((one) => {
    const { sha256 } = one;
    const deb = needed(debPath(platform, one));
    const found = hash('sha256', readFileSync(deb));
    if (found === sha256[platform]) return deb;
    throw new Error(
      `${deb}: its SHA-256 is ${found}, and image-packages.json has ${sha256[platform]}: remove the file, and run npm run release:fetch`,
    );
  });
}

function debPath(platform: Platform, { name, version }: ImagePackage): string {
  return join(cache, `debs-${platform}`, `${name}_${version.replaceAll(':', '%3a')}.deb`);
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
  if (!existsSync(nfpmFile)) {
    output('env', [
      `GOBIN=${dirname(nfpmFile)}`,
      'go',
      'install',
      `github.com/goreleaser/nfpm/v2/cmd/nfpm@${nfpmVersion}`,
    ]);
  }
  process.stdout.write(`fetched into ${cache}\n`);
}

/** The package of the lockfile, checked against its hash there. */
function fetchNode(platform: Platform): void {
  const to = nodeDir(platform);
  if (existsSync(to)) return;
  const name = `node-linux-${platform}`;
  const { version, integrity } = lockedNode(platform);
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
    // Whole or not at all, since several may fetch at once.
    const building = mkdtempSync(`${to}-`);
    copyFileSync(join(dir, 'package/LICENSE'), join(building, 'LICENSE'));
    copyFileSync(join(dir, 'package/bin/node'), join(building, 'node'));
    chmodSync(join(building, 'node'), 0o755);
    if (existsSync(to)) rmSync(building, { recursive: true });
    else renameSync(building, to);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** The packages of image-packages.json, checked against their hashes there. apt keeps its lists apart from those of this machine. */
function fetchDebs(platform: Platform): void {
  const missing = imagePackages().filter((one) => !existsSync(debPath(platform, one)));
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
    for (const one of missing) {
      const { name, version, sha256 } = one;
      output('apt-get', [...options, 'download', `${name}=${version}`], dir);
      const [file = ''] = globSync('*.deb', { cwd: dir });
      const found = hash('sha256', readFileSync(join(dir, file)));
      if (found !== sha256[platform]) {
        throw new Error(`${file}: ${found} is not ${sha256[platform]} of image-packages.json`);
      }
      const to = debPath(platform, one);
      mkdirSync(dirname(to), { recursive: true });
      copyFileSync(join(dir, file), `${to}.${process.pid}`);
      renameSync(`${to}.${process.pid}`, to);
      rmSync(join(dir, file));
    }
  } finally {
    rmSync(dir, { recursive: true });
  }
}

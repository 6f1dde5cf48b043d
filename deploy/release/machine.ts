// What a release needs beside the checkout, in one cache directory: the Node binaries of both platforms and nfpm, which
// writes packages. `npm run release:fetch` fills it; the release itself uses no network.

import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
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

function needed(path: string): string {
  if (existsSync(path)) return path;
  throw new Error(
    `${path} is missing: run npm run release:fetch, which needs npm's registry and Go`,
  );
}

/** A Node binary without symbols, which are a fifth of it. The bytes depend on the version of llvm-strip only. */
export function stripped(binary: string, to: string): void {
  copyFileSync(binary, to);
  chmodSync(to, 0o755);
  output('llvm-strip', [to]);
}

if (import.meta.main) {
  mkdirSync(cache, { recursive: true });
  for (const platform of platforms) fetchNode(platform);
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

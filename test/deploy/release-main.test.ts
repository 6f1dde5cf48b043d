// `npm run release` as a maintainer runs it, in a checkout of its own with one platform: its files, bills, provenance and
// signature, the commands of SECURITY.md and README, and each refusal. SLUICE_TEST_LONG=1 builds twice.
// @module-tag long

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { endChild, spawnChild } from '../support/children.ts';
import { fetchedForRelease } from '../support/release-fetch.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const root = join(import.meta.dirname, '../..');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const platform = process.arch;

let checkout = '';
let out = '';
let key = '';

function run(program: string, args: readonly string[], cwd: string, env: object = {}) {
  return spawnSync(program, args, { cwd, encoding: 'utf8', env: { ...process.env, ...env } });
}

function git(...args: readonly string[]): string {
  const settings = ['core.hooksPath=/dev/null', 'user.name=t', 'user.email=t@example.com'];
  const all = [...settings.flatMap((one) => ['-c', one]), ...args];
  const { status, stdout, stderr } = run('git', all, checkout);
  expect(status, stderr).toBe(0);
  return stdout.trim();
}

function release(args: readonly string[], env: object = {}) {
  return run(process.execPath, ['deploy/release/main.ts', ...args], checkout, env);
}

function built(to: string): string {
  const { status, stderr } = release(['--out', to, '--platform', platform, '--sign', key]);
  expect(status, stderr).toBe(0);
  return to;
}

const sumOf = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex');
const json = (name: string) => JSON.parse(readFileSync(join(out, name), 'utf8'));

beforeAll(async () => {
  await fetchedForRelease();
  checkout = join(tempDir(), 'checkout');
  const { stdout } = run('git', ['ls-files', '-z', '-co', '--exclude-standard'], root);
  for (const path of stdout.split('\0').filter((name) => existsSync(join(root, name)))) {
    if (path === '') continue;
    mkdirSync(dirname(join(checkout, path)), { recursive: true });
    cpSync(join(root, path), join(checkout, path), { verbatimSymlinks: true });
  }
  symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'));
  git('init', '--quiet');
  git('add', '--all', '.');
  git('commit', '--quiet', '--message', 'A release');
  key = join(checkout, '../key');
  run(
    'ssh-keygen',
    ['-q', '-t', 'ed25519', '-N', '', '-C', 'releases@sluice', '-f', key],
    checkout,
  );
  out = built(join(checkout, '../out'));
});
afterAll(() => rmSync(dirname(checkout), { recursive: true }));

describe('the files of a release', () => {
  test('are those that the documentation lists, with their sums', () => {
    const lines = readFileSync(join(out, 'SHA256SUMS'), 'utf8').trim().split('\n');
    const names = readdirSync(out).filter((name) => !name.startsWith('SHA256SUMS'));

    expect(lines).toEqual(names.toSorted().map((name) => `${sumOf(join(out, name))}  ${name}`));
    const docs = readFileSync(join(root, 'docs/contributing/releasing.md'), 'utf8');
    const kinds = [...docs.matchAll(/^\| (`.+`) \|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
    );
    const unlisted = names.filter(
      (name) =>
        !kinds.some((kind) => {
          const end = kind.replace(/^.*VERSION/, '').replaceAll('x64', platform);
          return name.endsWith(end);
        }),
    );
    expect(unlisted).toEqual([]);
    expect(names).toHaveLength(11);
  });

  test('name the commit and its day in the program', () => {
    const program = join(tempDir(), 'sluice');
    const packed = readFileSync(join(out, `sluice-${version}-linux-${platform}.zst`));
    expect(packed.length).toBeLessThan(40e6);
    writeFileSync(program, zstdDecompressSync(packed), { mode: 0o755 });

    const commit = git('rev-parse', '--short=12', 'HEAD');
    const day = new Date(Number(git('log', '-1', '--format=%ct')) * 1_000).toISOString();
    expect(run(program, ['--version'], root).stdout).toBe(
      `${version} (${commit}, ${day.slice(0, 10)})\n`,
    );
    expect(run(program, ['quickstart', '--help'], root).status).toBe(0);
  });

  test('have both bills of materials with each package of the one file and its version', () => {
    const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
    const cyclone = json(`sluice-${version}.cdx.json`);
    const purls: readonly string[] = cyclone.components.map(({ purl }: { purl: string }) => purl);

    const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    for (const name of Object.keys(dependencies)) {
      const locked = lock[`node_modules/${name}`].version;
      expect(purls).toContain(`pkg:npm/${name.replace('@', '%40')}@${locked}`);
    }
    expect(purls).toContain(`pkg:generic/node@${process.version.slice(1)}`);
    const installed = Object.entries<{ version: string }>(lock).map(
      ([path, one]) => `${path.replace(/^.*node_modules\//, '')}@${one.version}`,
    );
    const named = purls.map((purl) => purl.replace(/^pkg:[a-z]+\//, '').replace('%40', '@'));
    expect(named.filter((one) => !installed.includes(one) && !one.startsWith('node@'))).toEqual([]);
    const document = json(`sluice-${version}.spdx.json`);
    const [own, ...packages] = document.packages;
    expect(own).toMatchObject({ name: 'sluice', versionInfo: version });
    expect(
      packages.map((one: { externalRefs: { referenceLocator: string }[] }) =>
        one.externalRefs
          .map(({ referenceLocator }) => referenceLocator)
          .filter((locator) => locator.startsWith('pkg:')),
      ),
    ).toEqual(purls.map((purl) => [purl]));
    const noticesText = readFileSync(join(out, 'THIRD-PARTY-NOTICES'), 'utf8');
    const unnoticed = cyclone.components.filter(
      (one: { name: string; version: string }) =>
        one.name !== 'node' && !noticesText.includes(`${one.name} ${one.version} (`),
    );
    expect(unnoticed).toEqual([]);
  });

  test('have a provenance with the commit, and with the digest of each file that it covers', () => {
    const { subject, predicate } = json(`sluice-${version}.intoto.json`);
    const covered = readdirSync(out).filter(
      (name) => !name.startsWith('SHA256SUMS') && !name.endsWith('.intoto.json'),
    );

    expect(subject).toEqual(
      covered.toSorted().map((name) => ({ name, digest: { sha256: sumOf(join(out, name)) } })),
    );
    expect(predicate.buildDefinition.resolvedDependencies).toEqual([
      { name: 'source', digest: { gitCommit: git('rev-parse', 'HEAD') } },
    ]);
  });
});

/** The commands below a line of a text, as a user copies them. */
function commandsAfter(path: string, line: string): string {
  const text = readFileSync(join(root, path), 'utf8');
  const [, commands = ''] = /```sh\n([\s\S]*?)```/.exec(text.slice(text.indexOf(line))) ?? [];
  expect(commands).not.toBe('');
  return commands;
}

describe('the commands that verify a release in SECURITY.md', () => {
  const verify = (dir: string) =>
    run('sh', ['-e', '-c', commandsAfter('SECURITY.md', '## Verify a release')], dir);
  /** A copy in which a file may be changed. */
  const copied = () => {
    const dir = tempDir();
    cpSync(out, dir, { recursive: true });
    const [type, text] = readFileSync(`${key}.pub`, 'utf8').split(' ');
    writeFileSync(join(dir, 'allowed'), `releases@sluice ${type} ${text}\n`);
    return dir;
  };

  test('accept it, and print the commit', () => {
    const { status, stdout, stderr } = verify(copied());

    expect(status, stderr).toBe(0);
    expect(stdout).toContain('Good "sluice-release" signature for releases@sluice');
    expect(stdout).toContain(`sluice-${version}-linux-${platform}.zst: OK`);
    expect(stdout).toContain(git('rev-parse', 'HEAD'));
  });

  test.each(['SHA256SUMS', `sluice-${version}.intoto.json`, 'THIRD-PARTY-NOTICES'])(
    'refuse a changed %s',
    (name) => {
      const dir = copied();
      appendFileSync(join(dir, name), ' ');

      expect(verify(dir).status).not.toBe(0);
    },
  );

  test('refuse a signature by another key', () => {
    const dir = copied();
    rmSync(join(dir, 'SHA256SUMS.sig'));
    const other = join(dir, 'other');
    run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', other], dir);
    run('ssh-keygen', ['-Y', 'sign', '-n', 'sluice-release', '-f', other, 'SHA256SUMS'], dir);

    expect(existsSync(join(dir, 'SHA256SUMS.sig'))).toBe(true);
    expect(verify(dir).status).not.toBe(0);
  });
});

test('the command of README unpacks the file, and its quickstart exports', async () => {
  const dir = tempDir();
  cpSync(
    join(out, `sluice-${version}-linux-${platform}.zst`),
    join(dir, `sluice-${version}-linux-x64.zst`),
  );
  const child = spawnChild(
    'sh',
    [
      '-c',
      `${commandsAfter('README.md', 'A release has one file').trim().replace('./sluice', 'exec ./sluice')}`,
    ],
    {
      cwd: dir,
      // No Node is found.
      env: { PATH: '/usr/bin:/bin', HOME: dir },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  afterThisTest(async () => endChild(child));
  let errors = '';
  child.stderr?.on('data', (text) => {
    errors += text;
  });

  const file = join(dir, 'out/quickstart.ndjson');
  await waitUntil(() => existsSync(file) && readFileSync(file, 'utf8').includes('\n'), {
    what: () => `events of the quickstart; stderr: ${errors}`,
  });
});

describe('a release is refused, and nothing is written', () => {
  const target = () => join(tempDir(), 'out');
  function refused(args: readonly string[], reason: string, env: object = {}) {
    const { status, stderr } = release(args, env);

    expect(stderr).toMatch(/^error: [^\n]*/);
    expect(stderr).toContain(reason);
    expect(stderr).not.toContain('    at ');
    expect(status).toBe(1);
  }

  test('without --out', () => refused([], '--out is missing'));

  test('into a directory with files', () => refused(['--out', out], 'is not empty'));

  test('for an unknown platform', () =>
    refused(['--out', target(), '--platform', 'x86'], '--platform x86 is unknown; platforms: x64'));

  test('with a key that is missing, or has a passphrase', () => {
    refused(['--out', target(), '--sign', '/missing'], '--sign /missing: there is no such file');
    const locked = join(tempDir(), 'locked');
    run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', 'secret', '-f', locked], checkout);
    refused(['--out', target(), '--sign', locked], 'passphrase');
  });

  test('before npm run release:fetch', () => {
    const dir = target();
    refused(['--out', dir], 'run npm run release:fetch', { XDG_CACHE_HOME: tempDir() });
    expect(existsSync(dir)).toBe(false);
  });

  test.each([
    ['README.md', (text: string) => `${text}\nx`, 'the checkout has changes; commit them'],
    ['changelog.d/wrong.feature.md', () => 'Text.', 'changelog.d/wrong.feature.md'],
    [
      'package.json',
      (text: string) => text.replace(`"version": "${version}"`, '"version": "9.9.0"'),
      'CHANGELOG.md has no changes of 9.9.0',
    ],
  ])('with a wrong %s', (path, change, reason) => {
    const file = join(checkout, path);
    const before = existsSync(file) ? readFileSync(file, 'utf8') : null;
    const fragments = join(checkout, 'changelog.d');
    try {
      writeFileSync(file, change(before ?? ''));
      if (path !== 'README.md') {
        for (const name of readdirSync(fragments)) {
          if (path === 'package.json' && name !== 'README.md') rmSync(join(fragments, name));
        }
        git('add', '--all', '.');
        git('commit', '--quiet', '--message', 'A fault');
      }
      const dir = target();
      refused(['--out', dir], reason);
      expect(existsSync(dir)).toBe(false);
    } finally {
      if (path === 'README.md') writeFileSync(file, before ?? '');
      else git('reset', '--quiet', '--hard', 'HEAD~1');
    }
  });

  test('outside of a git checkout', () => {
    const { status, stderr } = release(['--out', target()], { GIT_DIR: tempDir() });

    expect(status).toBe(1);
    expect(stderr).toMatch(/^error: git status/);
  });
});

test.runIf(process.env.SLUICE_TEST_LONG === '1')(
  'two builds are equal (SLUICE_TEST_LONG=1)',
  () => {
    const again = built(join(tempDir(), 'again'));

    for (const name of readdirSync(out))
      expect(sumOf(join(again, name)), name).toBe(sumOf(join(out, name)));
  },
);

// The image of a release, without a container engine: the test reads its layout as an engine does, and runs its program in
// a root directory with the files of the image only, as the user of the image.
// @module-tag long

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { image } from '../../deploy/release/image.ts';
import { debsOf } from '../../deploy/release/machine.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { spawnChild } from '../support/children.ts';
import { oneFile } from '../support/one-file.ts';
import { fetchedForRelease } from '../support/release-fetch.ts';
import { tempDir, waitUntil } from '../support/temp.ts';
import { unknownIn } from './command-line.ts';

const root = join(import.meta.dirname, '../..');
const chroot = '/usr/sbin/chroot';
const time = '2026-11-26T00:00:00Z';
const about = { version: '0.2.0', commit: 'c'.repeat(40), time, license: 'L', notices: 'N' };

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

describe('the image', () => {
  let work = '';
  const json = (path: string) => JSON.parse(readFileSync(join(work, 'layout', path), 'utf8'));
  const blob = ({ digest }: Descriptor) => `blobs/${digest.replace(':', '/')}`;
  const manifest = () => json(blob(json('index.json').manifests[0]));
  const config = () => json(blob(manifest().config));

  beforeAll(async () => {
    await fetchedForRelease();
    work = tempDir();
    const { file } = await oneFile();
    const archive = image('x64', readFileSync(file), about);
    writeFileSync(join(work, 'image.tar'), archive);
    for (const dir of ['layout', 'root']) mkdirSync(join(work, dir));
    untar(['-xf', join(work, 'image.tar'), '-C', join(work, 'layout')]);
    for (const layer of manifest().layers) {
      untar(['-xzf', join(work, 'layout', blob(layer)), '-C', join(work, 'root')]);
    }
  });
  afterAll(() => rmSync(work, { recursive: true }));

  function untar(args: readonly string[]): void {
    const { status, stderr } = spawnSync('tar', ['--numeric-owner', ...args], { encoding: 'utf8' });
    expect(stderr).toBe('');
    expect(status).toBe(0);
  }

  test('each descriptor has the size and digest of its content', () => {
    const [index] = json('index.json').manifests;
    const all: Descriptor[] = [index, manifest().config, ...manifest().layers];

    expect(json('oci-layout')).toEqual({ imageLayoutVersion: '1.0.0' });
    for (const { digest, size } of all) {
      const bytes = readFileSync(join(work, 'layout', blob({ digest, size, mediaType: '' })));
      expect(bytes.length).toBe(size);
      expect(`sha256:${createHash('sha256').update(bytes).digest('hex')}`).toBe(digest);
    }
    const unpacked = manifest().layers.map((layer: Descriptor) =>
      spawnSync('sh', ['-c', `gunzip -c '${join(work, 'layout', blob(layer))}' | sha256sum`], {
        encoding: 'utf8',
      }).stdout.slice(0, 64),
    );
    expect(config().rootfs.diff_ids).toEqual(unpacked.map((sum: string) => `sha256:${sum}`));
    const [docker] = json('manifest.json');
    expect(docker.Config).toBe(blob(manifest().config));
    expect(docker.Layers).toEqual(manifest().layers.map(blob));
  });

  test('no layer has a path twice, or a file below a link', () => {
    for (const layer of manifest().layers) {
      const list = ['-tvzf', join(work, 'layout', blob(layer))];
      const lines = spawnSync('tar', list, { encoding: 'utf8' }).stdout.trim().split('\n');
      // Mode, owner, size, day, time, path.
      const paths = lines.map((line) => line.split(/\s+/)[5] ?? '');
      const links = lines.flatMap((line, i) => (line.startsWith('l') ? [`${paths[i]}/`] : []));

      expect(paths.length).toBeGreaterThan(3);
      expect(new Set(paths).size).toBe(paths.length);
      expect(paths.filter((path) => links.some((link) => path.startsWith(link)))).toEqual([]);
    }
  });

  test('it has a numeric user, labels, and the commands of the Dockerfile', () => {
    const { User, Entrypoint, Cmd, Healthcheck, Labels, Volumes } = config().config;
    const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8');
    const line = (name: string) => new RegExp(`^(?:.* )?${name} (.+)$`, 'm').exec(dockerfile)?.[1];

    expect(User).toBe('65532:65532');
    expect(User).toBe(line('USER'));
    expect(Entrypoint).toEqual(JSON.parse(line('ENTRYPOINT') ?? ''));
    const commands = dockerfile.split('\n').filter((text) => text.includes('CMD ['));
    expect(commands.map((text) => JSON.parse(text.slice(text.indexOf('['))))).toEqual([
      Healthcheck.Test.slice(1),
      Cmd,
    ]);
    expect(unknownIn(Cmd)).toEqual([]);
    expect(unknownIn(Healthcheck.Test.slice(2))).toEqual([]);
    expect(Object.keys(Volumes)).toEqual([line('VOLUME')]);
    expect(Labels).toMatchObject({
      'org.opencontainers.image.version': about.version,
      'org.opencontainers.image.revision': about.commit,
      'org.opencontainers.image.created': time,
    });
  });

  test('there is one program, and the user can write only to the state and /tmp', () => {
    const found = spawnSync('find', ['.', '-type', 'f', '-perm', '/111'], {
      cwd: join(work, 'root'),
      encoding: 'utf8',
    }).stdout.trim();
    expect(found.split('\n').filter((path) => !path.includes('/ld-linux-'))).toEqual([
      './usr/bin/sluice',
    ]);
    const writable = spawnSync(
      'find',
      ['.', '!', '-type', 'l', '(', '-perm', '/2', '-o', '-uid', '65532', ')'],
      {
        cwd: join(work, 'root'),
        encoding: 'utf8',
      },
    ).stdout.trim();
    // Without root, tar cannot give a directory to the user.
    const isRoot = process.getuid?.() === 0;
    expect(writable.split('\n').toSorted()).toEqual(
      isRoot ? ['./tmp', './var/lib/sluice'] : ['./tmp'],
    );
    expect(
      readFileSync(join(work, 'root/etc/ssl/certs/ca-certificates.crt'), 'utf8').match(
        /BEGIN CERT/g,
      )?.length,
    ).toBeGreaterThan(100);
  });

  test('each package of the image has its licence, and each licence that it refers to', () => {
    const at = (path: string) => join(work, 'root', path);
    const packages = readdirSync(at('var/lib/dpkg/status.d'));
    const texts = [...packages, 'sluice'].map((name) =>
      readFileSync(at(`usr/share/doc/${name}/copyright`), 'utf8'),
    );
    const named = texts.flatMap((text) =>
      [...text.matchAll(/\/usr\/share\/common-licenses\/([A-Z][\w.-]*\w)/g)].map(
        ([, licence = '']) => licence,
      ),
    );

    expect(packages).toContain('gcc-12-base');
    expect(named).toContain('LGPL-2.1');
    const missing = named.filter((name) => !existsSync(at(`usr/share/common-licenses/${name}`)));
    expect(missing).toEqual([]);
    expect(readFileSync(at('etc/os-release'), 'utf8')).toContain('VERSION_CODENAME=bookworm');
    const owned = packages.flatMap((name) => filesOf(name));
    const libraries = spawnSync('find', ['-L', '.', '-name', '*.so*', '-printf', '%P\\n'], {
      cwd: at(''),
      encoding: 'utf8',
    });
    const unowned = libraries.stdout
      .trim()
      .split('\n')
      .filter((path) => !owned.includes(path.replace(/^usr\/(?=lib)/, '')));
    expect(unowned).toEqual([]);
  });

  /** Paths in a Debian package, without `usr/` before `lib`. */
  function filesOf(name: string): readonly string[] {
    const deb = debsOf('x64').find((path) => basename(path).startsWith(`${name}_`)) ?? '';
    const { stdout } = spawnSync('sh', ['-c', 'dpkg-deb --fsys-tarfile "$1" | tar -t', 'sh', deb], {
      encoding: 'utf8',
    });
    return stdout.split('\n').map((line) => line.replace(/^\.\//, '').replace(/^usr\/(?=lib)/, ''));
  }

  test('two images of one file are equal', () => {
    const file = Buffer.from('program');

    expect(image('x64', file, about).equals(image('x64', file, about))).toBe(true);
  });

  test.skipIf(process.getuid?.() !== 0)(
    'it exports the sandbox as its user, and checks its own health (skipped without root)',
    async () => {
      const rootfs = join(work, 'root');
      const sandbox = await startSandbox({ seed: 1 });
      const { clientId, clientSecret, unifiedScope } = sandbox.credentials;
      const settings = {
        upstreams: {
          edge: {
            ...{
              api: 'unified',
              ends: 'never',
              base_url: sandbox.unifiedBaseUrl,
              allow_http: true,
            },
            auth: { client_id: clientId, client_secret: clientSecret, scope: unifiedScope },
          },
        },
        sources: { audit: { type: 'audit_events', upstream: 'edge', every: '1s' } },
        sinks: { disk: { type: 'file', path: '/var/lib/sluice/events.ndjson', format: 'json' } },
        status: { listen: `127.0.0.1:${await freePort()}` },
      };
      writeFileSync(join(rootfs, 'etc/sluice/sluice.yaml'), JSON.stringify(settings));
      chownSync(join(rootfs, 'etc/sluice/sluice.yaml'), 65_532, 65_532);
      const { Entrypoint, Cmd, Env, Healthcheck } = config().config;
      // chroot itself is found by the PATH of this machine.
      const { PATH } = process.env;
      const env = { ...Object.fromEntries(Env.map((line: string) => line.split('='))), PATH };
      const inside = (words: readonly string[]) => ['--userspec=65532:65532', rootfs, ...words];
      const health = () =>
        spawnSync(chroot, inside(Healthcheck.Test.slice(1)), {
          env,
          encoding: 'utf8',
        });

      expect(health()).toMatchObject({
        status: 1,
        stderr: expect.stringMatching(/^nothing answers at/),
      });
      const child = spawnChild(chroot, inside([...Entrypoint, ...Cmd]), {
        env,
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      let errors = '';
      child.stderr?.on('data', (text) => {
        errors += text;
      });
      const state = join(rootfs, 'var/lib/sluice');
      await waitUntil(() => readdirSync(state).includes('events.ndjson'), { what: () => errors });

      await waitUntil(() => health().status === 0, { what: () => `${health().stderr}${errors}` });
      expect(readdirSync(join(state, 'state'))).not.toEqual([]);
      child.kill();
      await waitUntil(() => child.exitCode !== null, { what: () => errors });
      expect(child.exitCode).toBe(0);
    },
  );
});

// The rpm, in a root directory of its own: installed, upgraded with events in the state, and erased (state and an edited
// config survive). rpm of Debian runs it there, so the dependencies are not resolved. The deb has the same files.
// @module-tag long

import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writePackages } from '../../deploy/release/packages.ts';
import { needCommands } from '../support/cache.ts';
import { debianRoot } from '../support/debian-root.ts';
import { fetchedForRelease } from '../support/release-fetch.ts';
import { tempDir } from '../support/temp.ts';

const time = '2026-11-26T00:00:00Z';
// The packages hold a script in place of the program, which install.test.ts and release.test.ts start.
const program = '#!/bin/sh\necho "sluice VERSION $*"\n';

describe.skipIf(process.getuid?.() !== 0)(
  'the rpm (skipped without root, which chroot needs)',
  () => {
    let work = '';
    let system = '';

    const rpm = (...args: readonly string[]) => {
      const force = args[0] === '-q' ? [] : ['--force-debian', '--nodeps'];
      const all = [...force, '--root', system, ...args];
      const { status, stdout, stderr } = spawnSync('rpm', all, { encoding: 'utf8' });
      expect(status, `rpm ${args.join(' ')}\n${stdout}${stderr}`).toBe(0);
      return `${stdout}${stderr}`;
    };
    const file = (version: string) => join(work, `sluice-${version}-1.x86_64.rpm`);
    const at = (path: string) => join(system, path);
    const inside = (...words: readonly string[]) =>
      spawnSync('chroot', [system, ...words], {
        encoding: 'utf8',
        env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
      }).stdout;

    beforeAll(async () => {
      await fetchedForRelease();
      await needCommands(['rpm'], ['rpm'], 'The test of the rpm needs the program rpm.');
      work = tempDir();
      for (const version of ['0.1.9', '0.2.0']) {
        const executable = join(work, `program-${version}`);
        writeFileSync(executable, program.replace('VERSION', version), { mode: 0o755 });
        writePackages(
          {
            ...{ platform: 'x64', version, time, executable, runnable: executable, notices: 'N' },
            work: join(work, version),
          },
          work,
        );
      }
      system = join(work, 'system');
      mkdirSync(system);
      expect(spawnSync('tar', ['-xf', await debianRoot(), '-C', system]).status).toBe(0);
    });
    afterAll(() => rmSync(work, { recursive: true }));

    test('is installed, upgraded and erased', () => {
      expect(rpm('-i', file('0.1.9'))).toBe('');
      expect(inside('sluice', 'run')).toBe('sluice 0.1.9 run\n');
      expect(inside('stat', '--format=%U:%G %a', '/var/lib/sluice')).toBe('sluice:sluice 700\n');
      expect(inside('stat', '--format=%U:%G %a', '/etc/sluice/sluice.yaml')).toBe(
        'root:sluice 640\n',
      );
      // The group of the config is that of the user, whom the package creates after its files.
      const changed = spawnSync(
        'rpm',
        ['--force-debian', '--root', system, '-V', '--nodeps', 'sluice'],
        {
          encoding: 'utf8',
        },
      ).stdout;
      expect(changed.split('\n').filter((line) => !/^(\.{6}G\.\.|$)/.test(line))).toEqual([]);

      writeFileSync(at('etc/sluice/sluice.yaml'), 'edited: true\n');
      mkdirSync(at('var/lib/sluice/state'));
      writeFileSync(at('var/lib/sluice/state/sluice.db'), 'events');
      expect(rpm('-U', file('0.2.0'))).toBe('');
      expect(rpm('-q', 'sluice')).toBe('sluice-0.2.0-1.x86_64\n');
      expect(inside('sluice')).toBe('sluice 0.2.0 \n');
      expect(readFileSync(at('etc/sluice/sluice.yaml'), 'utf8')).toBe('edited: true\n');
      expect(inside('stat', '--format=%U:%G %a', '/etc/sluice/sluice.yaml')).toBe(
        'root:sluice 640\n',
      );

      rpm('-e', 'sluice');
      expect(existsSync(at('usr/bin/sluice'))).toBe(false);
      expect(existsSync(at('usr/lib/systemd/system/sluice.service'))).toBe(false);
      expect(readFileSync(at('var/lib/sluice/state/sluice.db'), 'utf8')).toBe('events');
      expect(readFileSync(at('etc/sluice/sluice.yaml.rpmsave'), 'utf8')).toBe('edited: true\n');

      expect(rpm('-i', file('0.2.0'))).toBe('');
      expect(inside('id', '--name', '--user', 'sluice')).toBe('sluice\n');
    });

    test('has the files of the deb, with their modes', () => {
      const [deb, other] = ['deb', 'rpm'].map((name) => join(work, `as-${name}`));
      const unpacked = (dir = '') =>
        Object.fromEntries(
          readdirSync(dir, { recursive: true, encoding: 'utf8' })
            .filter((path) => statSync(join(dir, path)).isFile())
            .toSorted()
            .map((path) => [path, (statSync(join(dir, path)).mode & 0o777).toString(8)]),
        );
      mkdirSync(other ?? '');
      const dpkg = ['--extract', join(work, 'sluice_0.2.0_amd64.deb'), deb ?? ''];
      expect(spawnSync('dpkg-deb', dpkg).status).toBe(0);
      copyFileSync(file('0.2.0'), join(work, 'one.rpm'));
      expect(spawnSync('rpm2archive', [join(work, 'one.rpm')]).status).toBe(0);
      const tar = ['-xzf', join(work, 'one.rpm.tgz'), '-C', other ?? ''];
      expect(spawnSync('tar', tar).status).toBe(0);

      expect(Object.keys(unpacked(deb))).toContain('usr/bin/sluice');
      expect(unpacked(other)).toEqual(unpacked(deb));
    });
  },
);

// The deb, in a root directory of its own with Debian's essential packages: installed, upgraded with events in the state,
// removed (the state survives) and purged. There is no systemd in it, so the test starts the program as the unit does.
// @module-tag long

import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
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
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { runProgram } from '../support/children.ts';
import { debianRoot } from '../support/debian-root.ts';
import { oneFile } from '../support/one-file.ts';
import { fetchedForRelease } from '../support/release-fetch.ts';
import { tempDir } from '../support/temp.ts';

const chroot = '/usr/sbin/chroot';
const time = '2026-11-26T00:00:00Z';

describe.skipIf(process.getuid?.() !== 0)(
  'the deb (skipped without root, which chroot needs)',
  () => {
    let work = '';
    let system = '';
    const inside = (...words: readonly string[]) =>
      spawnSync(chroot, [system, ...words], {
        encoding: 'utf8',
        env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', DEBIAN_FRONTEND: 'noninteractive' },
      });
    const done = (...words: readonly string[]) => {
      const { status, stdout, stderr } = inside(...words);
      expect(status, `${words.join(' ')}\n${stdout}${stderr}`).toBe(0);
      return stdout;
    };

    beforeAll(async () => {
      await fetchedForRelease();
      work = tempDir();
      system = join(work, 'system');
      mkdirSync(system);
      const base = await debianRoot();
      expect(spawnSync('tar', ['-xf', base, '-C', system]).status).toBe(0);
      const { file: executable } = await oneFile();
      for (const version of ['0.1.9', '0.2.0']) {
        const parts = {
          platform: 'x64',
          version,
          time,
          executable,
          runnable: executable,
          notices: 'N',
        } as const;
        writePackages({ ...parts, work: join(work, `packages-${version}`) }, work, ['deb']);
        copyFileSync(
          join(work, `sluice_${version}_amd64.deb`),
          join(system, `sluice-${version}.deb`),
        );
      }
    });
    afterAll(() => rmSync(work, { recursive: true }));

    /** The unit's command, as its user, with its environment. */
    const runOnce = async () => {
      const unit = readFileSync(join(system, 'usr/lib/systemd/system/sluice.service'), 'utf8');
      const [, command = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
      const variables = [...unit.matchAll(/^Environment=(.*)$/gm)].map(([, line = '']) =>
        line.replace('%C', '/var/cache'),
      );
      // Not waiting in this thread, which also serves the sandbox.
      const { exitCode, errors } = await runProgram(chroot, [
        ...[
          system,
          'setpriv',
          '--reuid=sluice',
          '--regid=sluice',
          '--init-groups',
          '--no-new-privs',
          'env',
        ],
        ...['STATE_DIRECTORY=/var/lib/sluice', ...variables],
        ...[...command.split(' '), '--once', '--log-level', 'error'],
      ]);
      expect(exitCode, errors).toBe(0);
    };
    const readConfig = () => readFileSync(join(system, 'etc/sluice/sluice.yaml'), 'utf8');
    const uids = () =>
      readFileSync(join(system, 'var/lib/sluice/events.ndjson'), 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).metadata.uid);

    test('is installed, started, upgraded, removed and purged', async () => {
      const sandbox = await startSandbox({ events: 40, logs: 0, rate: 0, firewallEveryS: 0 });
      const { clientId, clientSecret, unifiedScope } = sandbox.credentials;
      const config = JSON.stringify({
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
        sources: { audit: { type: 'audit_events', upstream: 'edge' } },
        sinks: { disk: { type: 'file', path: '/var/lib/sluice/events.ndjson', format: 'json' } },
      });

      done('dpkg', '--install', '/sluice-0.1.9.deb');
      expect(done('dpkg', '--verify', 'sluice')).toBe('');
      expect(statSync(join(system, 'etc/sluice/sluice.yaml')).mode & 0o777).toBe(0o640);
      expect(done('stat', '--format=%U:%G %a', '/var/lib/sluice')).toBe('sluice:sluice 700\n');
      // dpkg stops an upgrade with a question if this text differs from the last version's and the config was edited.
      expect(hash('sha256', readConfig()).slice(0, 16)).toBe('0d69a3bfc736db8b');
      const [, words = ''] = /^# +sluice (init .*)$/m.exec(readConfig()) ?? [];
      const answers = ['--unified', 'https://api.example/v1', '--sink', 'stdout'];
      done('sluice', ...words.split(' '), ...answers);
      expect(readConfig()).toContain('${file:/etc/sluice/secrets/');
      expect(done('stat', '--format=%U:%G %a', '/etc/sluice/sluice.yaml')).toBe(
        'root:sluice 640\n',
      );
      writeFileSync(join(system, 'etc/sluice/sluice.yaml'), config);

      await runOnce();
      const before = uids();
      expect(before).toHaveLength(40);

      // There was no deb of 0.1.0; test/compat opens its state.
      sandbox.control.grow('/v1/audit/events', 7);
      done('dpkg', '--install', '/sluice-0.2.0.deb');
      expect(done('dpkg-query', '--show', '--showformat=${Version}', 'sluice')).toBe('0.2.0');
      expect(readConfig()).toBe(config);
      await runOnce();
      const after = uids();
      expect(after.slice(0, 40)).toEqual(before);
      expect(new Set(after).size).toBe(47);
      expect(after).toHaveLength(47);

      done('dpkg', '--remove', 'sluice');
      expect(existsSync(join(system, 'usr/bin/sluice'))).toBe(false);
      expect(readConfig()).toBe(config);
      expect(readdirSync(join(system, 'var/lib/sluice/state'))).toContain('sluice.db');

      done('dpkg', '--install', '/sluice-0.2.0.deb');
      await runOnce();
      expect(uids()).toEqual(after);

      // The administrator has deleted the config, and the state has a disk of its own.
      rmSync(join(system, 'etc/sluice/sluice.yaml'));
      done('dpkg', '--install', '/sluice-0.2.0.deb');
      const stateDir = join(system, 'var/lib/sluice');
      const purge = `mount --bind "$1" "$1" && PATH=/usr/sbin:/usr/bin:/sbin:/bin exec ${chroot} "$2" dpkg --purge sluice`;
      const purged = spawnSync('unshare', ['-m', 'sh', '-c', purge, 'sh', stateDir, system]);
      expect(purged.status, `${purged.stdout}${purged.stderr}`).toBe(0);
      expect(readdirSync(stateDir)).toEqual([]);
      expect(existsSync(join(system, 'etc/sluice'))).toBe(false);
      await sandbox.close();
    });
  },
);

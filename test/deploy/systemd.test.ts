// deploy/systemd against the checkout: the unit's command lines are the program's, and systemd's own checker finds nothing.

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tempDir } from '../support/temp.ts';
import { unknownIn } from './command-line.ts';

const root = join(import.meta.dirname, '..', '..');
const unit = readFileSync(join(root, 'deploy', 'systemd', 'sluice.service'), 'utf8');
const installed = '/opt/sluice';

/** The values of a setting, in order. */
function settings(name: string): readonly string[] {
  return [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value);
}

test('the program knows the command lines, and runs from where it is installed', () => {
  const commands = settings('ExecStart').map((c) => c.split(' '));

  expect(commands.map(([, command]) => command)).toEqual(['run']);
  for (const [program = '', ...words] of commands) {
    expect(unknownIn(words)).toEqual([]);
    expect(existsSync(program.replace(installed, root))).toBe(true);
  }
});

test('it runs as the user that sluice.sysusers makes, and finds the Node of the dependencies', () => {
  const users = readFileSync(join(root, 'deploy', 'systemd', 'sluice.sysusers'), 'utf8');
  const path = settings('Environment').find((value) => value.startsWith('PATH=')) ?? '';

  expect(users).toMatch(/^u sluice /m);
  expect([...settings('User'), ...settings('Group')]).toEqual(['sluice', 'sluice']);
  expect(path.split('=')[1]?.split(':')[0]).toBe(`${installed}/node_modules/.bin`);
  expect(existsSync(join(root, 'node_modules', '.bin', 'node'))).toBe(true);
});

test('a wrong config or command line is not tried again', () => {
  expect(settings('Restart')).toEqual(['on-failure']);
  expect(settings('RestartPreventExitStatus')).toEqual(['2 64']);
  // It counts for the main process only (systemd.service(5)): what fails before that is tried again for ever.
  expect(unit).not.toMatch(/^ExecStartPre=/m);
});

test('the unit takes away every right that sluice does not need', () => {
  expect(settings('CapabilityBoundingSet')).toEqual(['']);
  expect(settings('ProtectSystem')).toEqual(['strict']);
  expect(settings('NoNewPrivileges')).toEqual(['yes']);
  expect(settings('SystemCallFilter')).toEqual(['@system-service', '~@privileged']);
});

const analyser = spawnSync('systemd-analyze', ['--version']);
test.skipIf(analyser.status !== 0)(
  'systemd-analyze verify finds nothing (skipped where there is no systemd)',
  () => {
    // The checker wants the programs to be there, so it is shown those of the checkout.
    const file = join(tempDir(), 'sluice.service');
    writeFileSync(file, unit.replaceAll(installed, root));

    const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', file], {
      encoding: 'utf8',
    });

    expect([status, stdout, stderr]).toEqual([0, '', '']);
  },
);

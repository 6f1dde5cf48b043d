// The program as npm starts it, with a shell between: it is ended with npm, in order, and is never left behind holding
// the state directory.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { takeLock } from '../../src/hold/lock.ts';
import { spawnChild } from '../support/children.ts';
import { afterThisTest, waitUntil } from '../support/temp.ts';
import { aSetup, type Setup } from './a-setup.ts';

const project = fileURLToPath(new URL('../..', import.meta.url));

/** Starts a command that starts sluice, and waits until that runs. */
async function started(
  { stateDir }: Setup,
  [command, ...args]: readonly [string, ...string[]],
  npm: Readonly<Record<string, string>>,
) {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawnChild(command, args, {
    cwd: project,
    env: { PATH, HOME, ...npm },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  // Once no process holds the pipe any more.
  const ended = once(child, 'close');
  const what = () => `sluice to run; its stderr: ${said}`;
  await waitUntil(() => said.includes('"msg":"running"'), { what });
  const { pid } = JSON.parse(readFileSync(join(stateDir, 'owner.json'), 'utf8'));
  afterThisTest(() => child.stderr?.closed || process.kill(pid, 'SIGKILL'));
  return { child, ended, said: () => said };
}

test('npx passes SIGTERM on: sluice drains, npx exits 0, and nothing is left behind', async () => {
  const setup = await aSetup();
  const { child, ended, said } = await started(
    setup,
    ['npx', 'sluice', 'run', '-c', setup.config],
    { npm_config_update_notifier: 'false' },
  );

  child.kill('SIGTERM');
  await ended;

  expect(child.exitCode).toBe(0);
  takeLock(setup.stateDir).release();
  expect(said()).toContain('"why":"stopped by SIGTERM"');
  expect(said()).toContain('"msg":"stopped"');
});

test('where the shell keeps the signal to itself, sluice notices that npm is gone and drains', async () => {
  const setup = await aSetup();
  const main = join(project, 'src/boot/sluice.js');
  const { child, ended, said } = await started(
    setup,
    ['sh', '-c', '"$0" "$@" & wait', process.execPath, main, 'run', '-c', setup.config],
    { npm_command: 'exec' },
  );

  child.kill('SIGKILL');
  await ended;

  takeLock(setup.stateDir).release();
  expect(said()).toContain('npm, which started this, is gone');
  expect(said()).toContain('"msg":"stopped"');
});

// Signals that mean nothing to sluice: SIGUSR1, on which Node would start a debugger, and SIGUSR2, which would end it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { aSetup } from '../commands/a-setup.ts';
import { startSluice } from '../support/cli.ts';
import { afterThisTest, waitUntil } from '../support/temp.ts';

test('SIGUSR1 starts no debugger, SIGUSR2 ends nothing, and the run continues', async () => {
  const { config, delivered } = await aSetup({ sandbox: { events: 20, rate: 20 } });
  const sluice = startSluice(['run', '-c', config]);
  await waitUntil(() => delivered().length >= 20, { what: 'the first events' });

  process.kill(sluice.pid, 'SIGUSR1');
  process.kill(sluice.pid, 'SIGUSR2');
  const before = delivered().length;
  await waitUntil(() => delivered().length > before + 5, { what: 'events after the signals' });
  const { exitCode, stderr } = await sluice.kill('SIGTERM');

  expect(exitCode).toBe(0);
  expect(stderr).not.toMatch(/debugger|inspector/i);
});

test('nor where main.ts is started without sluice.js', async () => {
  const main = fileURLToPath(new URL('../../src/boot/main.ts', import.meta.url));
  const child = spawn(process.execPath, [main, 'sandbox'], { stdio: ['ignore', 'pipe', 'pipe'] });
  afterThisTest(() => void child.kill('SIGKILL'));
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  await waitUntil(() => said.includes('listening'), { what: 'the sandbox' });

  child.kill('SIGUSR1');
  child.kill('SIGUSR2');
  const address = /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0] ?? '';
  expect((await fetch(`${address}/v1/audit/events`)).status).toBe(401);
  child.kill('SIGTERM');
  await once(child, 'close');

  expect(child.exitCode).toBe(0);
  expect(said).not.toMatch(/debugger/i);
});

// A worker process started from other files than its supervisor: an upgrade has replaced them beside a running process.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { afterThisTest, tempDir } from '../support/temp.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** The exit code and stderr of a worker whose channel is closed when it is ready. */
async function aWorkerOf(supervisor: string) {
  const config = join(tempDir(), 'sluice.yaml');
  writeFileSync(config, '{}');
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [join(root, 'src/boot/sluice.js'), 'run', '-c', config], {
    env: { PATH, SLUICE_WORKER: supervisor },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  afterThisTest(() => void child.kill('SIGKILL'));
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = Promise.all([once(child, 'exit'), once(child.stderr ?? child, 'end')]);
  await Promise.race([ended, once(child, 'message')]);
  if (child.connected) child.disconnect();
  await ended;
  return { exitCode: child.exitCode, stderr };
}

test('a worker of another version ends and names the restart', async () => {
  const { exitCode, stderr } = await aWorkerOf('0.0.1');

  expect(exitCode).toBe(1);
  expect(stderr).toContain('restart it');
});

test('a worker of the same version waits for its shards', async () => {
  const { stderr } = await aWorkerOf(version);

  expect(stderr).toBe('');
});

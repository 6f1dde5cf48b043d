// A worker process whose supervisor ends while the worker starts.

import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { workerVariable } from '../../src/run/shard-messages.ts';
import { version } from '../../src/tools/index.ts';
import { isRunning } from '../support/children.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

test('a worker ends whose supervisor has ended before the worker has loaded its code', async () => {
  const dir = tempDir();
  const file = join(dir, 'sluice.yaml');
  writeFileSync(
    file,
    `state: { dir: ${dir}/state, kafka: { brokers: ["127.0.0.1:1"], prefix: none, shards: 2 } }
upstreams: { edge: { api: unified, base_url: "https://127.0.0.1:1/v1", auth: { api_key: k } } }
sources: { audit: { type: audit_events, upstream: edge } }
sinks: { disk: { type: file, path: "${dir}/out-{partition}.ndjson" } }
`,
  );
  const main = fileURLToPath(new URL('../../src/boot/sluice.js', import.meta.url));
  const loadsLate = `data:text/javascript,${encodeURIComponent(`
    await new Promise((resolve) => {
      const looks = setInterval(() => {
        if (process.connected) return;
        clearInterval(looks);
        resolve();
      }, 5);
    });`)}`;
  const worker = spawn(process.execPath, ['--import', loadsLate, main, 'run', '--config', file], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, [workerVariable]: version() },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  afterThisTest(() => worker.kill('SIGKILL'));

  worker.disconnect();

  await waitUntil(() => !isRunning(worker), { what: 'the worker to end', timeoutMs: 30_000 });
  expect(worker.signalCode).toBe(null);
});

// Each way in which a run can end leaves a line on stderr with its reason.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const program = fileURLToPath(new URL('../../src/boot/sluice.js', import.meta.url));

/** A config whose upstream refuses connections: `run` stays with it. */
function aConfig(): string {
  const dir = tempDir();
  const config = join(dir, 'sluice.yaml');
  writeFileSync(
    config,
    `state: { dir: ${dir}/state }
upstreams:
  edge:
    api: unified
    ends: never
    base_url: "http://127.0.0.1:1/v1"
    allow_http: true
    auth: { api_key: of-no-use }
sources:
  audit: { type: audit_events, upstream: edge }
sinks:
  disk: { type: file, path: "${dir}/out.ndjson" }
`,
  );
  return config;
}

/** Starts `run`; `preload`: a module that is loaded before it. */
function start(preload: string | null = null, options: readonly string[] = []) {
  const dir = tempDir();
  const file = join(dir, 'preload.mjs');
  if (preload !== null) writeFileSync(file, preload);
  const before = preload === null ? [] : ['--import', pathToFileURL(file).href];
  const args = [...before, program, 'run', '-c', aConfig(), ...options];
  const child = spawn(process.execPath, args, {
    // From the sources: what is made of them has one module only.
    env: { PATH: process.env.PATH ?? '', HOME: dir, SLUICE_FROM: 'sources' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr?.on('data', (chunk) => {
    errors += chunk;
  });
  const exited = once(child, 'close').then(([code, signal]) => ({ code, signal, errors }));
  afterThisTest(() => child.kill('SIGKILL'));
  return { child, exited, errors: () => errors };
}

/** Whether a process has its own handler for SIGHUP, which Node has not. */
function handlesHangUp(pid: number): boolean {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0';
  return (BigInt(`0x${caught}`) & 1n) === 1n;
}

test.skipIf(!existsSync('/proc/self/status')).for([0, 100, 400, 1_000])(
  'SIGTERM %d ms after the start of the program',
  async (afterMs) => {
    const { child, exited } = start();
    await waitUntil(() => handlesHangUp(child.pid ?? 0), { what: 'a handler of SIGHUP' });
    await delay(afterMs);
    child.kill('SIGTERM');

    const { code, signal, errors } = await exited;

    expect(errors).toContain('SIGTERM');
    expect([code, signal]).toEqual(signal === null ? [0, null] : [null, 'SIGTERM']);
  },
);

test.skipIf(!existsSync('/proc/self/status'))(
  'SIGHUP of a run that has just started is no end',
  async () => {
    const { child, exited, errors } = start();
    await waitUntil(() => handlesHangUp(child.pid ?? 0), { what: 'a handler of SIGHUP' });
    child.kill('SIGHUP');
    await waitUntil(() => errors().includes('could not be read'), { what: 'a poll' });
    child.kill('SIGTERM');

    const { code, signal } = await exited;

    expect([code, signal]).toEqual([0, null]);
  },
);

test('SIGHUP of a run that does not listen for it', async () => {
  const { child, exited, errors } = start(null, ['--once']);
  await waitUntil(() => errors().includes('could not be read'), { what: 'a poll' });
  child.kill('SIGHUP');

  const { signal, errors: all } = await exited;

  expect(signal).toBe('SIGHUP');
  expect(all).toContain('sluice ends: stopped by SIGHUP; no event is lost\n');
});

test('nothing left to wait for', async () => {
  const { exited } = start(
    `import { registerHooks } from 'node:module';
     const never = 'export const runProgram = () => new Promise(() => {}); export const unexpectedText = String;';
     registerHooks({
       load: (url, context, next) =>
         url.endsWith('/src/boot/program.ts')
           ? { format: 'module', source: never, shortCircuit: true }
           : next(url, context),
     });`,
  );

  const { code, errors } = await exited;

  expect(code).toBe(13);
  expect(errors).toContain('sluice ends with code 13, because nothing is left to wait for');
});

test.for([
  ['an exception', `throw new Error('a fault of a test');`],
  ['a rejection', `void Promise.reject(new Error('a fault of a test'));`],
])('%s that no code catches', async ([, fault]) => {
  const { exited } = start(
    `const look = setInterval(() => {
       if (process.listenerCount('SIGTERM') < 2) return;
       clearInterval(look);
       ${fault}
     }, 5);`,
  );

  const { code, errors } = await exited;

  expect(code).toBe(1);
  expect(errors).toContain('a fault of a test');
});

// `sluice webhooks register`, against the sandbox: registered once however often it runs, and the error if it cannot
// register.

import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { runHere } from '../support/cli.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

async function configured({
  hooks = '',
  listen = '127.0.0.1:1',
  scope = 'events:read webhooks:manage',
} = {}) {
  const dir = tempDir('register-');
  const sandbox = await startSandbox({ events: 1, logs: 0, rate: 0, firewallEveryS: 0 });
  afterThisTest(() => sandbox.close());
  const { clientId, clientSecret } = sandbox.credentials;
  const config = join(dir, 'sluice.yaml');
  writeFileSync(
    config,
    `state: { dir: ${dir}/state }
upstreams:
  edge:
    api: unified
    ends: never
    base_url: ${sandbox.unifiedBaseUrl}
    allow_http: true
    auth: { client_id: ${clientId}, client_secret: "${clientSecret}", scope: "${scope}" }
sources:
  audit: { type: audit_events, upstream: edge }
  hooks: { type: webhooks, upstream: edge, listen: "${listen}", secret: hush${hooks} }
sinks:
  screen: { type: stdout }
`,
  );
  const register = (...more: string[]) =>
    runHere([
      'webhooks',
      'register',
      '-c',
      config,
      '--source',
      ...(more.length > 0 ? more : ['hooks']),
    ]);
  return { dir, register, sandbox };
}

test('a repeat registers nothing twice, and says the same', async () => {
  const { register } = await configured({ hooks: ', url: "https://h.example/in"' });

  const [first, second] = [await register(), await register()];

  expect(first).toMatchObject({ exitCode: 0, stderr: '' });
  expect(first.stdout).toMatch(
    /^registered as wh_\w+: https:\/\/h\.example\/in\nfor incident\.created, agent\.action\.gated\n$/,
  );
  expect(second).toEqual(first);
});

test('other events are another registration', async () => {
  const { register } = await configured({ hooks: ', url: "https://h.example/in", events: [a.b]' });
  const { register: other } = await configured({ hooks: ', url: "https://h.example/in"' });

  expect((await register()).stdout).not.toBe((await other()).stdout);
});

test('upstream’s response is stored if requested, for one reader alone, and never overwrites', async () => {
  const { register, dir } = await configured();
  const file = join(dir, 'answer.json');

  const { stdout, exitCode } = await register('hooks', '--answer', file);
  const again = await register('hooks', '--answer', file);

  expect(exitCode).toBe(0);
  const { id } = JSON.parse(readFileSync(file, 'utf8'));
  expect(stdout).toContain(id);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(again).toMatchObject({ exitCode: 64, stderr: expect.stringContaining('EEXIST') });
});

test('a scope that does not allow it is reported', async () => {
  const { register } = await configured({ scope: 'events:read' });

  const { exitCode, stderr } = await register();

  expect(exitCode).toBe(3);
  expect(stderr).toContain('403');
  expect(stderr).toContain('needs the scope webhooks:manage');
});

test.each([
  [
    404,
    'The API has no POST /webhooks below upstreams.edge.base_url: correct base_url, or register',
  ],
  [422, 'Check url and events of sources.hooks, then run the command again.'],
  [503, 'Run the command again: it registers the same address once, however often it runs.'],
])('a %i is reported with the next step for a registration', async (status, next) => {
  const { register, sandbox } = await configured();
  sandbox.control.setFaults({
    rules: [{ path: '/v1/webhooks', fault: { kind: 'status', status } }],
  });

  const { exitCode, stderr } = await register();

  expect(exitCode).toBe(3);
  expect(stderr).toContain(`${status}`);
  expect(stderr).toContain(next);
  expect(stderr).not.toContain('path and parameters of the source');
  expect(stderr).not.toContain('by itself');
});

test.each([
  ['audit', 'is no webhooks source'],
  ['hook', 'hooks'],
])('a source that is none: %s', async (name, requested) => {
  const { register } = await configured();

  const { exitCode, stderr } = await register(name);

  expect(exitCode).toBe(64);
  expect(stderr).toContain(requested);
});

test('an unreachable address is not registered', async () => {
  const { register } = await configured({ listen: '0.0.0.0:8088' });

  const { exitCode, stderr } = await register();

  expect(exitCode).toBe(64);
  expect(stderr).toContain('sources.hooks.url is required');
});

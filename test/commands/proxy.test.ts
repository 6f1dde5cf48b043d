// `upstreams.X.proxy` in the real program: data and token requests go through it, `check` names the route, and a proxy in
// the environment that nothing uses is reported. No password of a proxy is ever printed.

import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runSluice } from '../support/cli.ts';
import { aProxy } from '../support/http-proxy.ts';
import { aSetup } from './a-setup.ts';

async function withProxy(proxy: string) {
  const setup = await aSetup({ sandbox: { events: 20 } });
  const text = readFileSync(setup.config, 'utf8');
  writeFileSync(setup.config, text.replace('    allow_http: true', `$&\n    proxy: ${proxy}`));
  return setup;
}

const targets = (seen: readonly { readonly target: string }[]) => [
  ...new Set(seen.map(({ target }) => new URL(target).pathname)),
];

test('data and token requests go through the proxy of the upstream, with its credential', async () => {
  const { port, seen } = await aProxy('me:hunter2');
  const { config, delivered } = await withProxy(`"http://me:hunter2@127.0.0.1:${port}"`);

  const { exitCode } = await runSluice(['run', '-c', config, '--once']);

  expect([exitCode, delivered().length]).toEqual([0, 20]);
  expect(targets(seen)).toEqual(['/v1/oauth/token', '/v1/audit/events']);
});

test('check --connect names the route without the password, and a refused one with the next step', async () => {
  const { port } = await aProxy('me:hunter2');
  const good = await withProxy(`"http://me:hunter2@127.0.0.1:${port}"`);
  const bad = await withProxy(`"http://me:wrong-hunter2@127.0.0.1:${port}"`);

  const fine = await runSluice(['check', '-c', good.config, '--connect']);
  const refused = await runSluice(['check', '-c', bad.config, '--connect']);

  expect(fine.exitCode).toBe(0);
  expect(fine.stdout).toContain(`upstream edge: route: through http://127.0.0.1:${port}\n`);
  expect(refused.exitCode).toBe(3);
  expect(refused.stdout).toContain('407');
  expect(refused.stdout).toContain('proxy of this upstream');
  for (const { stdout, stderr } of [fine, refused])
    expect(stdout + stderr).not.toContain('hunter2');
});

test('proxy: env takes the proxy of the environment, except for hosts of NO_PROXY', async () => {
  const { port, seen } = await aProxy();
  const { config } = await withProxy('env');
  const HTTP_PROXY = `http://127.0.0.1:${port}`;

  const through = await runSluice(['check', '-c', config, '--connect'], { env: { HTTP_PROXY } });
  const requests = seen.length;
  const direct = await runSluice(['check', '-c', config, '--connect'], {
    env: { HTTP_PROXY, NO_PROXY: '127.0.0.0/8' },
  });

  expect([through.exitCode, direct.exitCode]).toEqual([0, 0]);
  expect(through.stdout).toContain(`route: through ${HTTP_PROXY}, from HTTP_PROXY\n`);
  expect(direct.stdout).toContain('route: direct, as the environment names no proxy for it\n');
  expect([requests > 0, seen.length]).toEqual([true, requests]);
});

test('check reports a proxy in the environment that an upstream does not use', async () => {
  const { config } = await aSetup();
  const env = { HTTP_PROXY: 'http://me:hunter2@proxy.example:3128' };
  const check = async (more: Readonly<Record<string, string>> = {}) =>
    (await runSluice(['check', '-c', config], { env: { ...env, ...more } })).stdout;

  expect(await check()).toContain(
    'upstreams.edge: HTTP_PROXY is set, and this upstream has no proxy: requests go directly; set proxy: env',
  );
  expect(await check()).not.toContain('hunter2');
  expect(await check({ NO_PROXY: '127.0.0.1' })).not.toContain('HTTP_PROXY');
});

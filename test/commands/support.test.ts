// `sluice support`: canaries in every secret, record field, cursor, token and answer are in no file of the bundle.

import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere } from '../support/cli.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

const canary = 'kanarie7f3a';

async function aServer(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterThisTest(async () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const record = (n: number) => ({
  id: `${canary}-id-${n}`,
  timestamp: '2026-01-01T00:00:00Z',
  action: `${canary}.update`,
  actor: { id: `${canary}-actor`, name: `${canary} name`, email: `${canary}@example.com` },
  source_ip: '192.0.2.1',
  resource: { type: 'policy', id: `${canary}-policy`, name: `${canary} policy` },
  note: { [`${canary}-key`]: `${canary} note` },
});

test('no canary is in the bundle, and its contents are listed first', async () => {
  const dir = tempDir('support-');
  const upstream = await aServer(({ url = '' }, response) => {
    const json = { 'content-type': 'application/json' };
    if (url.includes('/broken')) {
      response.writeHead(500, json);
      response.end(
        JSON.stringify({
          title: `${canary} title`,
          detail: `${canary} detail`,
          code: canary,
          request_id: 'req-4711',
        }),
      );
      return;
    }
    response.writeHead(200, json);
    const next = url.includes('cursor=') ? null : `${canary}-cursor`;
    response.end(
      JSON.stringify({ data: [record(url.includes('cursor=') ? 2 : 1)], next_cursor: next }),
    );
  });
  const receiver = await aServer((request, response) => {
    request.resume();
    response.writeHead(400, { 'content-type': 'text/plain' });
    response.end(`${canary} is wrong with ${canary}@example.com`);
  });
  const secret = join(dir, 'secret');
  writeFileSync(secret, `${canary}-file-secret`);
  const config = join(dir, 'sluice.yaml');
  writeFileSync(
    config,
    `state: { dir: ${join(dir, 'state')} }
upstreams:
  edge: { api: unified, ends: never, base_url: "${upstream}", allow_http: true, auth: { api_key: ${canary}-literal } }
sources:
  audit: { type: audit_events, upstream: edge, every: 100ms, params: { filter: ${canary}-param } }
  broken: { type: audit_events, upstream: edge, every: 100ms, path: /broken }
sinks:
  post: { type: http, url: "${receiver}/in?key=${canary}-query", headers: { authorization: "\${file:${secret}}", x-key: "\${env:CANARY:-${canary}-default}", x-run: "\${exec:echo ${canary}-argument}" } }
  parts: { type: http, url: "${receiver}/\${env:CANARY:-${canary}-default}/\${exec:echo ${canary}-argument}", oauth2: { token_url: "${receiver}/token", client_id: ${canary}-client, client_secret: "\${exec:echo ${canary}-argument}", scope: "\${exec:echo ${canary}-argument}" } }
  disk: { type: file, path: ${join(dir, 'out.ndjson')} }
mask: { key: ${canary}-mask }
routes:
  - { from: [audit], to: [disk], mask: { actor.user.name: hash } }
  - { from: [audit, broken], to: [post], where: 'int(event.actor.user.name) == 1' }
status: { listen: "127.0.0.1:0", token: ${canary}-status, tokens: { view: ${canary}-view, events: ${canary}-events, act: ${canary}-act }, basic_auth: { username: ${canary}-user, password: ${canary}-password } }
`,
  );
  await runHere(['run', '-c', config, '--once', '--timeout', '5s']);
  // A line that a kill cut.
  appendFileSync(join(dir, 'state/log-tail.ndjson'), '{"torn');
  const out = join(dir, 'bundle.tar.gz');

  const { stdout, stderr, exitCode } = await runHere(['support', '-c', config, '--out', out]);
  const again = await runHere(['support', '-c', config, '--out', out]);

  expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
  expect(again.exitCode).toBe(64);
  const names = [
    'config.json',
    'errors.json',
    'log.ndjson',
    'metrics.txt',
    'status.json',
    'version.json',
  ];
  for (const name of names) expect(stdout).toContain(name);
  expect(stdout.indexOf('errors.json')).toBeLessThan(stdout.indexOf('written: '));
  const into = join(dir, 'unpacked');
  mkdirSync(into);
  expect(spawnSync('tar', ['-xzf', out, '-C', into]).status).toBe(0);
  expect(readdirSync(into).toSorted()).toEqual(names);
  const text = (name: string) => readFileSync(join(into, name), 'utf8');
  for (const name of names) {
    expect([name, text(name)]).toEqual([name, expect.not.stringContaining(canary)]);
    expect(text(name)).not.toContain('192.0.2.1');
  }
  expect(text('log.ndjson')).toContain('"event":"stream_failed"');
  expect(text('log.ndjson').trimEnd().split('\n').length).toBeGreaterThan(3);
  const errors = JSON.parse(text('errors.json'));
  expect(errors.logged).toContainEqual(
    expect.objectContaining({ stream: 'broken', path: '/broken', request_id: 'req-4711' }),
  );
  expect(JSON.parse(text('config.json')).sinks.post.headers.authorization).toBe(
    `\${file:${secret}}`,
  );
  const { post, parts } = JSON.parse(text('config.json')).sinks;
  expect(post.headers['x-run']).toBe('${exec:echo …}');
  expect(parts.url).toMatch(/\/\$\{env:CANARY\}\/\$\{exec:echo …\}$/);
  expect(JSON.parse(text('status.json')).streams).toHaveLength(2);
  expect(JSON.parse(text('version.json')).sluice).toMatch(/^\d+\./);
});

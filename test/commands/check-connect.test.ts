// `check --connect` beside faults that the upstream's first answers show: a company that does not exist, settings that
// name no field of the record just read, scopes that were not granted, and a throttle that leaves no request.

import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { factsOfRecord } from '../../src/commands/shared/record-facts.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { runHere } from '../support/cli.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';
import { aSetup } from './a-setup.ts';

async function checked(source: string, companies = '[c-1]') {
  const sandbox = await startSandbox({ rate: 0, events: 20, firewallEveryS: 0 });
  afterThisTest(() => sandbox.close());
  const { clientId, clientSecret, servicesScope } = sandbox.credentials;
  const config = join(tempDir(), 'sluice.yaml');
  writeFileSync(
    config,
    `upstreams:
  ops:
    api: services
    base_url: ${sandbox.servicesBaseUrl}
    allow_http: true
    companies: ${companies}
    auth: { client_id: "${clientId}", client_secret: "${clientSecret}", scope: "${servicesScope}" }
sources:
  web_logs: { type: logs, upstream: ops, path: "/api/logs/v1/companies/{company_id}/web", pagination: { style: offset }${source} }
sinks: { screen: { type: stdout } }
`,
  );
  const result = await runHere(['check', '-c', config, '--connect']);
  return { ...result, asked: sandbox.control.requests() };
}

test('each stream of a source is polled, and a company that does not exist fails', async () => {
  const { stdout, exitCode } = await checked('', '[c-1, c-99]');

  expect(stdout).toMatch(/ok +source web_logs: web_logs\S*c-1\n/);
  expect(stdout).toMatch(/FAIL +source web_logs: web_logs\S*c-99: /);
  expect(exitCode).toBe(3);
});

test('an id, a time and a mapping that name no field of the record fail, with the nearest name', async () => {
  const mapping = 'mapping: { class: network_activity, fields: { src_endpoint.ip: clientt_ip } }';
  const { stdout, exitCode } = await checked(`, id: idd, time: [when], ${mapping}`);

  expect(stdout).toMatch(
    /FAIL .*sources\.web_logs\.id: the record just read has no field idd \(did you mean id\?\)/,
  );
  expect(stdout).toMatch(/FAIL .*sources\.web_logs\.time: the record just read has no field when/);
  expect(stdout).toMatch(
    /FAIL .*sources\.web_logs\.mapping\.fields: .* src_endpoint\.ip: clientt_ip/,
  );
  expect(exitCode).toBe(3);
});

test('logs without a mapping, and secrets in plain text, are noted; nothing else is', async () => {
  const { stdout, exitCode } = await checked('');

  expect(stdout).toMatch(/note +sources\.web_logs: without a mapping its records are Base Events/);
  expect(stdout).toMatch(/note .*client_secret: this secret is plain text/);
  expect(stdout).not.toContain('sandbox-secret');
  expect([exitCode, stdout]).toEqual([0, expect.not.stringContaining('FAIL')]);
});

test('a field that one record lacks is noted, and fails only where a nearly equal one is there', () => {
  const record = { id: '1', timestamp: '2026-01-01T00:00:00Z', client_ip: 'a' };
  const facts = (fields: Record<string, string | readonly string[]>) =>
    factsOfRecord(
      's',
      { id: 'id', time: ['t', 'timestamp'], mapping: { class: 'x', fields } },
      record,
    );

  expect(facts({ a: 'client_ip', b: ['none', 'id'] })).toEqual({ faults: [], notes: [] });
  expect(facts({ a: 'client_ip', b: 'server_port' })).toMatchObject({
    faults: [],
    notes: [expect.stringMatching(/no field for b: server_port; it may be optional/)],
  });
  expect(facts({ a: 'client_ip', b: 'client_ipp' }).faults.map(({ message }) => message)).toEqual([
    expect.stringMatching(/no field for b: client_ipp \(did you mean client_ip\?\)/),
  ]);
});

/** A config of audit events from a port, with these scopes. */
function aConfig(port: number, scope: string): string {
  const config = join(tempDir(), 'sluice.yaml');
  writeFileSync(
    config,
    `upstreams:
  edge: { api: unified, ends: never, base_url: "http://127.0.0.1:${port}/v1", allow_http: true, auth: { client_id: i, client_secret: "s3cret", scope: "${scope}" } }
sources: { audit: { type: audit_events, upstream: edge } }
sinks: { screen: { type: stdout } }
`,
  );
  return config;
}

test('an address where nothing listens fails with the next step only', async () => {
  const config = aConfig(1, 'events:read');

  const { stdout, exitCode } = await runHere(['check', '-c', config, '--connect']);

  expect(exitCode).toBe(3);
  expect(stdout).toMatch(/^ {2}Check the address and the network\.$/m);
});

test.each([
  [
    'a token',
    '{ client_id: sandbox-client, client_secret: sandbox-secret }',
    'base_url or token_url',
  ],
  ['an API key', '{ api_key: some-key }', 'its base_url'],
])(
  'a base address without its path, with %s, names the path as a cause',
  async (_, auth, where) => {
    const { config, sandbox } = await aSetup({ sandbox: { events: 5 } });
    const text = readFileSync(config, 'utf8')
      .replace(sandbox.unifiedBaseUrl, new URL(sandbox.unifiedBaseUrl).origin)
      .replace(/auth: .*/, `auth: ${auth}`);
    writeFileSync(config, text);

    const { stdout, exitCode } = await runHere(['check', '-c', config, '--connect']);

    expect(exitCode).toBe(3);
    expect(stdout).toMatch(/^FAIL {2}source audit: .* answered 401 /m);
    expect(stdout).toContain(`, and the path in ${where}`);
  },
);

test('a scope that is not granted fails', async () => {
  const server = createServer((request, response) => {
    const isToken = request.method === 'POST';
    response.setHeader('content-type', 'application/json');
    const token = {
      access_token: 't',
      token_type: 'Bearer',
      expires_in: 600,
      scope: 'events:read',
    };
    const page = { data: [{ id: '1', timestamp: '2026-01-01T00:00:00Z' }], next_cursor: null };
    response.end(JSON.stringify(isToken ? token : page));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterThisTest(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const config = aConfig(port, 'events:read mc:read');

  const { stdout, exitCode } = await runHere(['check', '-c', config, '--connect']);

  expect(stdout).toMatch(
    /FAIL +upstream edge: scope: .*auth\.scope: upstream did not grant mc:read/,
  );
  expect(exitCode).toBe(3);
});

// Numbers that IANA assigns, from the sandbox's logs and look-ups to a file: names are beside them, stored records and
// uids are as without, and a missing look-up delays nothing and is reported.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { runHere, runOnceHere } from '../support/cli.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

const path = '/api/logs/v1/companies/c-1/events';
const altered = (record: number, field: string, value: unknown) => ({
  ...{ path, times: 1 },
  fault: { kind: 'altered' as const, record, field, value },
});

/** The events of one run that ends by itself, oldest first. */
async function runOnce(enrich: string, mapping: string) {
  const dir = tempDir();
  const sandbox = await startSandbox({
    ...{ events: 0, logs: 40, rate: 0, firewallEveryS: 0, now: () => Date.UTC(2026, 0, 2) },
    faults: {
      rules: [altered(0, 'protocol', 6), { path: '/api/firewall/v1/icmp-types', fault: 404 }],
    },
  });
  afterThisTest(() => sandbox.close());
  const config = join(dir, 'sluice.yaml');
  writeFileSync(
    config,
    `state: { dir: ${dir}/state }
upstreams:
  ops:
    api: services
    base_url: ${sandbox.servicesBaseUrl}
    allow_http: true
    ends: never
    auth: { client_id: ${sandbox.credentials.clientId}, client_secret: "\${env:SECRET}", scope: "urn:sandbox:api:public" }
    companies: [c-1]
sources:
  logs: { type: logs, upstream: ops, path: "/api/logs/v1/companies/{company_id}/events", id: id${enrich}${mapping} }
sinks:
  disk: { type: file, path: ${dir}/out.ndjson, format: { type: json, raw_data: true } }
`,
  );
  const env = { SECRET: sandbox.credentials.clientSecret };
  const result = await runOnceHere(config, env);
  expect(result.exitCode, result.stderr).toBe(0);
  const status = await runHere(['status', '-c', config], env);
  const lines = readFileSync(join(dir, 'out.ndjson'), 'utf8').trim().split('\n');
  return { events: lines.map((line) => JSON.parse(line)), status: status.stdout };
}

const enrich = ', enrich: [ip_protocols, icmp_types]';
const mapping =
  ', mapping: { class: network_activity, fields: { connection_info.protocol_num: protocol, connection_info.direction_id: direction, dst_endpoint.ip: server_ip } }';

test('a name stands beside a number of a record that is not mapped', async () => {
  const plain = await runOnce('', '');
  const named = await runOnce(enrich, '');
  const of = ({ events }: typeof named) => events.find(({ unmapped }) => unmapped.protocol === 6);
  expect(of(plain).unmapped.protocol_name).toBeUndefined();
  expect(of(named).unmapped).toEqual({ ...of(plain).unmapped, protocol_name: 'TCP' });
  const held = (run: typeof named) =>
    run.events.map(({ metadata, raw_data: raw }) => [metadata.uid, raw]).sort();
  expect(held(named)).toEqual(held(plain));
  expect(plain.status).toContain('nothing needs attention');
  expect(named.status).toMatch(/Look-up icmp_types of ops cannot be read: numbers go out without/);
  expect(named.status).not.toContain('ip_protocols');
});

test('if the class has an attribute for the name, the name is there', async () => {
  const { events } = await runOnce(enrich, mapping);
  const mapped = events.find((event) => event.connection_info?.protocol_num === 6);
  expect(mapped.connection_info).toMatchObject({ protocol_num: 6, protocol_name: 'tcp' });
  expect(mapped.unmapped.protocol_name).toBeUndefined();
});

// Every example under config/ is a config that works: read, checked and planned, with stand-ins for the secrets and
// certificates that it names. The config of the contract is one more example, where it can be read.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { parseConfig, readConfig } from '../../src/config/config.ts';
import { configSchema } from '../../src/config/json-schema.ts';
import { planFrom } from '../../src/run/plan.ts';
import { planMeans } from '../run/plan-deps.ts';
import { makeCa } from '../support/certificates.ts';
import { configEnv } from './config-text.ts';

const folder = new URL('../../config/', import.meta.url).pathname;
// A fault script is for the sandbox and no config.
const examples = readdirSync(folder).filter(
  (name) => name.endsWith('.yaml') && !name.startsWith('sandbox-faults'),
);

const env = {
  SANDBOX_UNIFIED_URL: 'http://127.0.0.1:8080/v1',
  SANDBOX_SERVICES_URL: 'http://127.0.0.1:8080',
  SANDBOX_CLIENT_ID: 'sandbox-client',
  SANDBOX_CLIENT_SECRET: 'sandbox-secret',
  SANDBOX_ARCHIVE_KEY: 'none',
  ...Object.fromEntries(
    [
      ...['EDGE_ID', 'EDGE_SECRET', 'EDGE_API_KEY', 'OPS_ID', 'OPS_SECRET', 'HOOK_SECRET'],
      ...['AZURE_TENANT_ID', 'AZURE_CLIENT_ID', 'AZURE_CLIENT_SECRET', 'DD_API_KEY'],
    ].map((name) => [name, name]),
  ),
  ...{ KAFKA_USER: 'sluice', KAFKA_PASSWORD: 'p', INGEST_TOKEN: 't' },
};

const { ca, client } = await makeCa();

function readExample(name: string) {
  const path = `${folder}${name}`;
  const files = {
    [path]: readFileSync(path, 'utf8'),
    '/run/secrets/edge': 's\n',
    '/run/secrets/secops.json': '{}',
    '/etc/ssl/siem-ca.pem': ca,
  };
  return readConfig(path, configEnv(env, files));
}

test('config/ holds an example of each use', () => {
  expect(examples).toEqual(
    expect.arrayContaining([
      'all-sources.yaml',
      'audit-to-siem.yaml',
      'datadog.yaml',
      'google-secops.yaml',
      'otel-grpc.yaml',
      'compliance-archive.yaml',
      'elastic.yaml',
      'kafka.yaml',
      'otel.yaml',
      's3.yaml',
      'splunk.yaml',
      'quickstart.yaml',
      'relp.yaml',
      'sentinel.yaml',
    ]),
  );
});

describe.each(examples)('config/%s', (name) => {
  test('is read, without a notice, and planned', () => {
    const config = readExample(name);

    const plan = planFrom(config, planMeans());

    expect(config.notices).toEqual([]);
    expect(plan.sources.length).toBeGreaterThan(0);
    expect(plan.sources.every((source) => source.streams.length > 0)).toBe(true);
    expect(plan.sinks.length).toBeGreaterThan(0);
    const beside = name === 'quickstart.yaml' ? '' : '/config';
    expect(config.state.dir).toBe(`${process.cwd()}${beside}/state/${name.replace('.yaml', '')}`);
  });

  test('begins by naming its schema, for editors', () => {
    const [first] = readFileSync(`${folder}${name}`, 'utf8').split('\n');

    expect(first).toBe('# yaml-language-server: $schema=./schema.json');
  });
});

test('config/quickstart.yaml matches its sandbox', () => {
  const { sources, sinks, upstreams } = readExample('quickstart.yaml');

  expect(Object.keys(sources)).toEqual(['audit', 'web_logs', 'firewall']);
  expect(Object.keys(sinks)).toEqual(['screen', 'disk', 'vault']);
  expect(upstreams.ops?.companies).toEqual(['c-1', 'c-2']);
});

test('config/all-sources.yaml has every type of source', async () => {
  const { sources: listed } = await import('../../connectors/sources/index.ts');

  const used = new Set(
    Object.values(readExample('all-sources.yaml').sources).map((s) => s.definition),
  );

  expect([...used].map(({ type }) => type).sort()).toEqual(listed.map(({ type }) => type).sort());
});

describe('config/schema.json', () => {
  const file = `${folder}schema.json`;
  let accepts: (value: unknown) => boolean;

  beforeAll(() => {
    // Read back as a schema of its own: what an editor would say.
    const schema = z.fromJSONSchema(JSON.parse(readFileSync(file, 'utf8')));
    accepts = (value) => schema.safeParse(value).success;
  });

  test('is the output of `sluice schema`; else run: npx sluice schema > config/schema.json', () => {
    expect(readFileSync(file, 'utf8')).toBe(`${JSON.stringify(configSchema(), null, 2)}\n`);
  });

  test.each(examples)('accepts config/%s', (name) => {
    expect(accepts(parse(readFileSync(`${folder}${name}`, 'utf8')))).toBe(true);
  });

  test.each([
    ['log: { level: info }', 'log: { level: inof }'],
    ['state: { keep: 1h }', 'state: { keep: 1 hour }'],
    ['state: { keep: 1h }', 'state: { kep: 1h }'],
    ['state: { keep: "${env:KEEP}" }', 'state: { keep: "${KEEP}" }'],
  ])('accepts %s and refuses %s', (good, bad) => {
    const rest =
      'upstreams: { e: { api: unified, base_url: "https://x", auth: { api_key: k } } }\n' +
      'sources: { a: { type: audit_events, upstream: e, page_limit: "${env:N}" } }\n' +
      'sinks: { s: { type: file, path: p, format: { type: json } } }\n';

    expect(accepts(parse(`${good}\n${rest}`))).toBe(true);
    expect(accepts(parse(`${bad}\n${rest}`))).toBe(false);
  });

  test('describes every key', () => {
    const bare: string[] = [];
    const isObject = (value: unknown): value is Record<string, unknown> =>
      typeof value === 'object' && value !== null;
    const look = (schema: unknown, path: string): void => {
      if (!isObject(schema)) return;
      for (const [key, value] of Object.entries(schema)) {
        look(value, `${path}.${key}`);
        if (key !== 'properties' || !isObject(value)) continue;
        for (const [name, inner] of Object.entries(value)) {
          // A type's one value says what it is; the sections themselves have their keys described.
          const reported = isObject(inner) && ('description' in inner || 'const' in inner);
          if (!reported) bare.push(`${path}.${name}`);
        }
      }
    };

    look(configSchema(), '');

    expect(bare).toEqual([]);
  });
});

const contract = new URL('../../../shared/contract.md', import.meta.url);

test.skipIf(!existsSync(contract))(
  'the config of ../shared/contract.md is read as it stands there (skipped where that file is not)',
  () => {
    const [, block = ''] = /```yaml\n([\s\S]*?)```/.exec(readFileSync(contract, 'utf8')) ?? [];
    // The ellipses stand for what a reader fills in.
    const text = block
      .replace('ca_file: …, cert_file: …, key_file: …', 'ca_file: /f, cert_file: /f, key_file: /f')
      .replace('or { api_key: … }', '')
      .replace('tls: { ca_file: … } }', 'tls: { ca_file: /f } }')
      .replace('client_id: …, client_secret: …', 'client_id: i, client_secret: s')
      .replace('order_by: …  ', 'order_by: timestamp\n    order: oldest_first  ')
      .replace('sasl: …, tls: …', 'sasl: { mechanism: plain, username: u, password: p }, tls: {}')
      .replaceAll('headers: { … }', 'headers: { A: b }');
    const surroundings = configEnv(
      { EDGE_ID: 'i' },
      { '/f': client.cert + client.key, '/run/secrets/edge': 's' },
    );

    const config = parseConfig(text, 'contract.md', surroundings);

    expect(text).not.toMatch(/^[^#]*…/m);
    expect(Object.keys(config.sinks)).toEqual(['siem', 'lake', 'otel', 'post', 'disk', 'screen']);
    expect(Object.keys(config.sources)).toEqual(['audit', 'web_logs', 'firewall']);
    expect(config.routes).toHaveLength(1);
    expect(config.status).toMatchObject({ host: '127.0.0.1', port: 8686 });
  },
);

// Every config and YAML snippet that we publish is YAML for other parsers too (editors, linters, Kubernetes tools), not
// only for sluice's own reader, which accepts `{ id: ${env:ID} }` unquoted. And the schema is one for strict validators.

import { execFileSync, spawnSync } from 'node:child_process';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments, parseDocument } from 'yaml';
import { sinks } from '../../connectors/index.ts';
import { configText } from '../../src/commands/shared/new-config.ts';
import { configSchema } from '../../src/config/json-schema.ts';
import { configEnv, flawLines } from './config-text.ts';
import { publishedYaml } from './published-yaml.ts';

const strict = { version: '1.2', schema: 'core', strict: true, uniqueKeys: true } as const;

const published = publishedYaml();

test('there are configs in config/, docs/ and deploy/', () => {
  const folders = new Set(published.map(({ name }) => name.split('/')[0]));

  expect([...folders]).toEqual(expect.arrayContaining(['config', 'docs', 'deploy']));
  expect(published.length).toBeGreaterThan(60);
});

test.each(published)('$name is strict YAML 1.2', ({ text }) => {
  const problems = [parseAllDocuments(text, strict)].flat().flatMap((one) => {
    return 'errors' in one ? [...one.errors, ...one.warnings] : [];
  });

  expect(problems.map(({ message }) => message)).toEqual([]);
});

test.each(sinks)('the output of `sluice init` for a $type sink is strict YAML 1.2', (sink) => {
  for (const secrets of [null, '/run/secrets']) {
    const text = configText({
      ...{ unified: 'https://api.example.com/v1', services: 'https://svc.example.com' },
      ...{ companies: ['c-1'], scope: 'urn:x', logs: '/logs', secrets, sink },
      to: 'https://siem.example',
    });

    expect(parseDocument(text, strict).errors).toEqual([]);
  }
});

const hasPyYaml = spawnSync('python3', ['-c', 'import yaml']).status === 0;

test.skipIf(!hasPyYaml)('PyYAML reads all of them (skipped where python3 has no yaml)', () => {
  const script =
    'import sys, json, yaml\n' +
    'for one in json.load(sys.stdin):\n' +
    '  try: list(yaml.safe_load_all(one["text"]))\n' +
    '  except yaml.YAMLError as e: print(one["name"], str(e).replace("\\n", " "))\n';

  const wrong = execFileSync('python3', ['-c', script], {
    input: JSON.stringify(published),
    encoding: 'utf8',
  });

  expect(wrong).toBe('');
});

test('sluice still accepts references unquoted within { } and [ ]', () => {
  const text =
    'upstreams: { e: { api: unified, base_url: ${env:URL}, auth: { api_key: ${env:KEY} } } }\n' +
    'sources: { a: { type: audit_events, upstream: e } }\n' +
    'sinks: { s: { type: stdout } }\n';

  expect(parseDocument(text, strict).errors).not.toEqual([]);
  expect(flawLines(text, configEnv({ URL: 'https://x/v1', KEY: 'k' }))).toEqual([]);
});

describe('the schema', () => {
  const compile = () => new Ajv2020({ strict: true, allErrors: true }).compile(configSchema());

  test('compiles in strict Ajv and accepts the examples', () => {
    const accepts = compile();
    const refused = published
      .filter(({ name }) => /^config\/(?!sandbox-faults)[\w-]+\.yaml$/.test(name))
      .flatMap(({ name, text }) => (accepts(parseDocument(text, strict).toJS()) ? [] : [name]));

    expect(refused).toEqual([]);
  });

  test('refuses an address without a scheme, as before', () => {
    const accepts = compile();
    const config = (url: string) => ({
      upstreams: { e: { api: 'unified', base_url: 'https://x', auth: { api_key: 'k' } } },
      sources: { a: { type: 'audit_events', upstream: 'e' } },
      sinks: { s: { type: 'http', url } },
    });

    expect(accepts(config('https://ingest.example'))).toBe(true);
    expect(accepts(config('${env:URL}'))).toBe(true);
    expect(accepts(config('ingest.example'))).toBe(false);
  });
});

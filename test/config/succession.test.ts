// `succeeds` in a config: an impossible pair is reported with its location, a successor goes to its predecessor's
// sinks, and on Kafka both are in one shard.

import { expect, test } from 'vitest';
import { type Config, ConfigError, parseConfig } from '../../src/config/config.ts';
import { inShards } from '../../src/config/shards.ts';

const credentials = 'auth: { client_id: a, client_secret: "${env:S}", scope: s }';

function written(sources: readonly string[], more = ''): string {
  return `upstreams:
  old: { api: unified, base_url: https://old.example/v1, auth: { api_key: "\${env:S}" } }
  new: { api: services, base_url: https://new.example, companies: ["1"], ${credentials} }
sources:
  audit: { type: logs, upstream: old, path: /audit }
${sources.map((source) => `  ${source}`).join('\n')}
sinks:
  disk: { type: file, path: "/tmp/a-{partition}", format: json }
  far: { type: file, path: "/tmp/b-{partition}", format: json }
${more}`;
}

function parsed(text: string): Config {
  return parseConfig(text, '/etc/c.yaml', { env: { S: 'secret' } });
}

function flawsOf(text: string): string {
  try {
    parsed(text);
    return '';
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message;
  }
}

const late = (of: string, name = 'late') =>
  `${name}: { type: logs, upstream: new, path: /api/logs/v1/audit, succeeds: { source: ${of} } }`;

test.each([
  ['a source that there is none of', [late('audti')], 'unknown source "audti"'],
  ['itself', [late('late')], 'a source cannot succeed itself'],
  [
    'each other',
    [late('later'), late('late', 'later')],
    'late succeeds later succeeds late: that is a cycle',
  ],
  [
    'what another one succeeds',
    [late('audit'), late('audit', 'later')],
    'late succeeds audit already',
  ],
  [
    'another kind of source',
    ['late: { type: tickets, upstream: new, succeeds: { source: audit } }'],
    'both sources of a pair read the same kind',
  ],
])('a source that succeeds %s is refused', (_, sources, flaw) => {
  expect(flawsOf(written(sources))).toContain(flaw);
});

test('a successor that no route names goes where its predecessor goes', () => {
  const routes = 'routes: [{ from: [audit], to: [disk] }]';

  const config = parsed(written([late('audit')], routes));

  expect(config.routes.map(({ from }) => from)).toEqual([['audit', 'late']]);
  expect(config.notices.map(({ message }) => message).join()).not.toContain('late');
});

test('successors of a successor go where the first source goes, in any order of the file', () => {
  const routes = 'routes: [{ from: [audit], to: [disk] }]';

  for (const sources of [
    [late('audit'), late('late', 'later')],
    [late('late', 'later'), late('audit')],
  ]) {
    const [route] = parsed(written(sources, routes)).routes;
    expect(new Set(route?.from)).toEqual(new Set(['audit', 'late', 'later']));
  }
});

test('a successor with fewer sinks than its predecessor is refused', () => {
  const routes = 'routes: [{ from: [audit], to: [disk, far] }, { from: [late], to: [disk] }]';

  expect(flawsOf(written([late('audit')], routes))).toContain(
    'audit is routed to far and late is not',
  );
});

test('on Kafka both sources of a pair are in one shard', () => {
  for (const shards of [2, 3, 5, 8, 13, 31]) {
    const kafka = `state: { dir: /s, kafka: { brokers: ["k:1"], prefix: p, shards: ${shards} } }\n`;
    const text = written([late('audit')]);
    const parts = inShards(parsed(kafka + text));
    const alone = inShards(parsed(kafka + text.replace(', succeeds: { source: audit }', '')));

    expect(parts.map(({ sources }) => Object.keys(sources))).toEqual([['audit', 'late']]);
    // The old one stays where its state is.
    const old = alone.find(({ sources }) => Object.hasOwn(sources, 'audit'));
    expect(parts[0]?.state.kafka?.shard).toBe(old?.state.kafka?.shard);
  }
});

// How the work of a config is shared out among the shards of a state in Kafka: each source in one, by the name of its
// upstream, and each shard with things of its own where a sink must have them for itself.

import { expect, test } from 'vitest';
import { type Config, ConfigError, parseConfig } from '../../src/config/config.ts';
import { inShards, ofShard, shardOfStream, shardsOf } from '../../src/config/shards.ts';

const names = ['east', 'north', 'south', 'west'];
const fileSink = 'disk: { type: file, path: "out/{partition}.ndjson", format: json }';

function written({
  shards = 8,
  sinks = [fileSink],
  clients = names,
  more = '',
}: {
  readonly shards?: number;
  readonly sinks?: readonly string[];
  readonly clients?: readonly string[];
  readonly more?: string;
}): string {
  return `state: { dir: /state, kafka: { brokers: ["k:1"], prefix: p, shards: ${shards} } }
upstreams:
${names.map((name, i) => `  ${name}: { api: unified, base_url: https://api.example/v1, auth: { client_id: ${clients[i]}, client_secret: "\${env:S}", scope: events:read } }`).join('\n')}
sources:
${names.map((name) => `  of-${name}: { type: audit_events, upstream: ${name}, every: 30s }`).join('\n')}
sinks:
${sinks.map((sink) => `  ${sink}`).join('\n')}
${more}`;
}

function parsed(text: string): Config {
  return parseConfig(text, '/etc/c.yaml', { env: { S: 'secret' } });
}

function flawsOf(text: string): readonly string[] {
  try {
    parsed(text);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.message.split('\n');
  }
}

test('each source is in one shard, also with other credentials, and those of one client are together', () => {
  const config = parsed(written({}));
  const parts = inShards(config);
  const sourcesIn = (of: Config) => inShards(of).map(({ sources }) => Object.keys(sources));
  const rotated = parsed(written({ clients: names.map((name) => `new-${name}`) }));
  const together = parsed(written({ clients: ['one', 'one', 'one', 'one'] }));

  expect(sourcesIn(config).flat().sort()).toEqual(names.map((name) => `of-${name}`));
  expect(parts.length).toBeGreaterThan(1);
  expect(sourcesIn(rotated)).toEqual(sourcesIn(config));
  expect(sourcesIn(together)).toEqual([names.map((name) => `of-${name}`)]);
  for (const { upstreams, sources, state } of parts) {
    const used = Object.values(sources).map(({ settings }) => settings.upstream);
    expect(Object.keys(upstreams)).toEqual(used);
    expect(state.dir).toBe(`/state/kafka-p/shard-${state.kafka?.shard}`);
  }
  expect(new Set(parts.map(({ state }) => state.dir)).size).toBe(parts.length);
});

test('upstreams with a key each are apart, and those that share one are together', () => {
  const withKeys = (keys: readonly string[]) => {
    const auths = written({}).replace(/auth: \{ client_id: (\w+), .*? \}/g, (_, name) => {
      return `auth: { api_key: ${keys[names.indexOf(name)]} }`;
    });
    return shardsOf(parsed(auths));
  };

  expect(withKeys(names)).toEqual(shardsOf(parsed(written({}))));
  expect(withKeys(['k', 'k', 'k', 'k'])).toHaveLength(1);
});

test('the stored data of an upstream is in the shard of its sources', () => {
  const config = parsed(written({}));
  const shardsWith = (suffix: string) =>
    names.map((name) => shardOfStream(config, `${name}${suffix}`));
  const ofSources = names.map((name) => shardOfStream(config, `of-${name}`));

  expect(new Set(ofSources).size).toBeGreaterThan(1);
  expect(shardsWith('#ends')).toEqual(ofSources);
  expect(shardsWith('#lookups')).toEqual(ofSources);
  expect(shardOfStream(config, 'unknown#ends')).toBeNull();
});

test('both upstreams of a pair are in one shard: of two predecessors, in a cycle, and in a chain', () => {
  const shardsWith = (pairs: Readonly<Record<string, string>>) => {
    const text = written({ shards: 500 }).replace('sources:', () => {
      const more = Object.entries(pairs).flatMap(([name, of]) => [
        `  ${name}: { type: audit_events, upstream: ${name.split('-')[0]}, every: 30s, succeeds: { source: ${of} } }`,
      ]);
      return ['sources:', ...more].join('\n');
    });
    const config = parsed(text);
    return Object.fromEntries(names.map((name) => [name, shardOfStream(config, `of-${name}`)]));
  };
  const apart = shardsWith({});
  const { east, north } = apart;

  expect(new Set(Object.values(apart)).size).toBe(names.length);
  expect(shardsWith({ 'west-1': 'of-east' })).toEqual({ ...apart, west: east });
  expect(shardsWith({ 'west-1': 'of-north', 'west-2': 'of-east' })).toEqual({
    ...{ ...apart, west: east, north: east },
  });
  expect(shardsWith({ 'west-1': 'of-east', 'west-2': 'of-north' })).toEqual({
    ...{ ...apart, west: east, north: east },
  });
  expect(shardsWith({ 'west-1': 'of-south', 'south-1': 'of-north' })).toEqual({
    ...{ ...apart, west: north, south: north },
  });
  const cycle = shardsWith({ 'west-1': 'of-south', 'south-1': 'of-west', 'north-1': 'west-1' });
  expect([cycle.south, cycle.north]).toEqual([cycle.west, cycle.west]);
});

test('an upstream that is pinned is in that shard, and with it those of one client', () => {
  const pinned = (pins: Readonly<Record<string, number>>, clients = names) =>
    Object.entries(pins).reduce(
      (text, [name, shard]) =>
        text.replace(`  ${name}: { api`, `  ${name}: { shard: ${shard}, api`),
      written({ clients, sinks: [fileSink] }),
    );
  const shardsIn = (text: string) => {
    const config = parsed(text);
    return names.map((name) => shardOfStream(config, `of-${name}`));
  };
  const [east, north, south, west] = shardsIn(pinned({}));
  const free = [0, 1, 2, 3, 4, 5, 6, 7].find((one) => ![east, north, south, west].includes(one));
  const shard = free ?? 0;

  expect(shardsIn(pinned({ north: shard }))).toEqual([east, shard, south, west]);
  expect(shardsIn(pinned({ north: shard }, ['one', 'one', 'two', 'three']))).toEqual([
    ...[shard, shard, south, west],
  ]);
  expect(flawsOf(pinned({ north: 8 }))[0]).toContain(
    'upstreams.north.shard: 8 is no shard: state.kafka.shards is 8; expected 0 to 7',
  );
  expect(flawsOf(pinned({ north: 1, east: 2 }, ['one', 'one', 'two', 'three']))[0]).toContain(
    'upstreams.east.shard: is 2, but upstreams.north.shard is 1, and both are in one shard',
  );
});

test('of one shard the config is as it is', () => {
  const config = parsed(
    written({ shards: 1, sinks: ['disk: { type: file, path: out.ndjson, format: json }'] }),
  );
  expect(shardsOf(config)).toEqual([0]);
  expect(inShards(config)[0]).toBe(config);
  expect(parsed(written({ shards: 1 })).sinks.disk?.settings.path).toMatch(/out\/0\.ndjson$/);
});

test('a sink’s own location is one for each shard', () => {
  const sinks = [
    fileSink,
    'proof: { type: archive, shared: true, location: /archive, signing_key: "${env:S}", lake: { every: 1h } }',
    'bucket: { type: s3, bucket: logs, region: eu-west-1, format: json }',
    'lake: { type: kafka, brokers: ["k:1"], topic: t, format: json, exactly_once: true, transactional_id: mine }',
    'other: { type: kafka, brokers: ["k:1"], topic: u, format: json }',
  ];
  const part = ofShard(parsed(written({ sinks })), 5);
  const of = (name: string, key: string) => part.sinks[name]?.settings[key];

  expect(of('disk', 'path')).toMatch(/out\/5\.ndjson$/);
  expect([of('proof', 'location'), of('proof.lake', 'location')]).toEqual([
    '/archive/5',
    '/archive/5',
  ]);
  expect(of('bucket', 'prefix')).toBe('5');
  expect([of('lake', 'transactional_id'), of('lake', 'topic')]).toEqual(['mine-5', 't']);
  expect(of('other', 'topic')).toBe('u');
});

test('settings that cannot be split are a flaw', () => {
  const sinks = ['disk: { type: file, path: out.ndjson, format: json }'];
  const more =
    'watch: { drift: { changes: [rules], trail: [of-east, of-north, of-south, of-west], within: 5m } }';
  const rules = written({ more }).replace(
    'sinks:\n',
    '  rules: { type: firewall_rules, upstream: east, every: 5m }\nsinks:\n',
  );
  const wholes = flawsOf(rules);
  const archive = 'proof: { type: archive, location: /archive, signing_key: "${env:S}" }';

  for (const shards of [1, 8]) {
    expect(flawsOf(written({ shards, sinks: [archive] }))).toEqual([
      expect.stringMatching(/location: .*set shared: true if every process sees this directory/),
    ]);
  }
  expect(flawsOf(written({ sinks }))).toEqual([expect.stringContaining('put {partition}')]);
  expect(wholes.join('\n')).toMatch(/watch\.drift: .* are of upstreams in different shards/);
});

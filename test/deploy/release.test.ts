// The one file of a release: two builds are equal, and every connector, thread and data file works from it as from the
// checkout. The bundler does not report a file or module that is missing, so each part is started.
// @module-tag long

import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sinks } from '../../connectors/index.ts';
import { sources } from '../../connectors/sources/index.ts';
import { packageUnit } from '../../deploy/release/packages.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { planted } from '../all-sources/sources.ts';
import { startSluice } from '../support/cli.ts';
import { someEdges } from '../support/edges.ts';
import { consumeAll, kafkaBrokers, newTopic } from '../support/kafka.ts';
import { builtBy, type OneFile, oneFile } from '../support/one-file.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const root = join(import.meta.dirname, '../..');
const parts = [
  'package.json',
  'package-lock.json',
  'src',
  'connectors',
  'formats',
  'config',
  'deploy',
];
const builder = 'test/deploy/release-build-main.ts';

let shared: OneFile;
/** The directory of a copy of the checkout. */
let copy = '';

beforeAll(async () => {
  shared = await oneFile();
  copy = join(tempDir(), 'another/place');
  mkdirSync(copy, { recursive: true });
  for (const part of [...parts, builder])
    cpSync(join(root, part), join(copy, part), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
});

afterAll(() => rmSync(copy, { recursive: true }));

const program = () => shared.file;

test('two builds in two directories give the same bytes', async () => {
  const another = await builtBy(join(copy, builder), join(copy, 'out'));

  expect(shared.sums).toMatch(/^[0-9a-f]{64} [0-9a-f]{64}\n$/);
  expect(another.sums).toBe(shared.sums);
});

test('the file names its version, and itself in the next steps that it prints', () => {
  const run = (...args: string[]) => spawnSync(program(), args, { encoding: 'utf8' });
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

  expect(run('--version').stdout).toMatch(new RegExp(`^${version}\\b`));
  const { stderr, status } = run('check', '-c', join(tempDir(), 'missing.yaml'));
  expect(status).toBe(2);
  expect(stderr).not.toContain('npx');
  expect(run('schema').stdout).toContain('"$schema"');
});

test('it keeps compiled code in the cache of the user', () => {
  const home = tempDir();
  const config = join(home, 'missing.yaml');
  spawnSync(program(), ['check', '-c', config], { env: { HOME: home } });

  const cached = readdirSync(join(home, '.cache/sluice/compiled'), { recursive: true });
  // One is of each loaded chunk, and one is the directory of this Node. Each chunk costs a start CPU.
  expect(cached.length).toBeGreaterThan(3);
  expect(cached.length).toBeLessThan(16);
});

test('options of Node in the environment have no effect', () => {
  const env = { ...process.env, NODE_OPTIONS: '--no-such-option' };

  expect(spawnSync(program(), ['--version'], { env }).status).toBe(0);
});

const unreachable = 'http://127.0.0.1:1';
const privateKey = generateKeyPairSync('rsa', { modulusLength: 2048 })
  .privateKey.export({ type: 'pkcs8', format: 'pem' })
  .toString();

/** Settings of each type of sink, with a receiver that cannot be reached. */
const unreachableSinks: Readonly<Record<string, readonly object[]>> = {
  syslog: [{ address: 'tcp://127.0.0.1:1' }, { address: 'relp://127.0.0.1:1' }],
  kafka: [
    { brokers: ['127.0.0.1:1'], topic: 'events' },
    { brokers: ['127.0.0.1:1'], topic: 'more', driver: 'platformatic' },
  ],
  otlp: [
    { url: `${unreachable}/v1/logs` },
    { url: `${unreachable}/v1/logs`, protocol: 'http/json' },
    { url: unreachable, protocol: 'grpc' },
  ],
  elasticsearch: [
    { url: unreachable },
    { url: unreachable, auth: { sigv4: { region: 'eu-central-1' } } },
  ],
  splunk_hec: [{ url: unreachable, token: 'token' }],
  sentinel: [
    {
      ...{ endpoint: unreachable, authority: unreachable },
      ...{ dcr_immutable_id: `dcr-${'0'.repeat(32)}`, stream_name: 'Custom-Sluice' },
      auth: { tenant_id: 'tenant', client_id: 'id', client_secret: 'secret' },
    },
  ],
  google_secops: [
    {
      ...{ url: unreachable, project: 'project', location: 'eu', instance: 'instance' },
      credentials: JSON.stringify({
        ...{ type: 'service_account', client_email: 'a@example.com', private_key: privateKey },
        ...{ private_key_id: 'key', token_uri: `${unreachable}/token` },
      }),
    },
  ],
  datadog: [{ url: unreachable, api_key: 'key' }],
  http: [{ url: unreachable, format: 'json' }],
  archive: [],
  file: [],
  s3: [
    {
      ...{ endpoint: unreachable, bucket: 'bucket', region: 'eu-central-1' },
      rotate: { bytes: '1B' },
    },
  ],
  stdout: [],
};

test('each type of sink starts, with its threads, packages and data files', async () => {
  expect(Object.keys(unreachableSinks).toSorted()).toEqual(
    sinks.map(({ type }) => type).toSorted(),
  );
  const dir = tempDir();
  const sandbox = await startSandbox({ seed: 1 });
  const { clientId, clientSecret, unifiedScope } = sandbox.credentials;
  const key = join(dir, 'archive.key');
  const made = ['archive', 'keys', 'new', key, '--origin', 'proof'];
  const vkey = spawnSync(program(), made, { encoding: 'utf8' }).stdout.trim();
  const remote = Object.entries(unreachableSinks).flatMap(([type, all]) =>
    all.map((settings, i) => [`${type}${i}`, { type, ...settings }] as const),
  );
  const config = {
    state: { dir: join(dir, 'state') },
    upstreams: {
      edge: {
        ...{ api: 'unified', ends: 'never', base_url: sandbox.unifiedBaseUrl, allow_http: true },
        auth: { client_id: clientId, client_secret: clientSecret, scope: unifiedScope },
      },
    },
    sources: { audit: { type: 'audit_events', upstream: 'edge', schedule: '* * * * * *' } },
    sinks: {
      ...Object.fromEntries(remote),
      disk: { type: 'file', path: join(dir, 'events.ndjson'), format: 'ecs' },
      screen: { type: 'stdout', format: 'leef' },
      proof: {
        ...{ type: 'archive', location: join(dir, 'archive'), lake: { every: '1s' } },
        signing_key: `\${file:${key}}`,
      },
    },
    routes: [
      {
        ...{ from: ['audit'], where: 'event.class_uid != 0' },
        to: [...remote.map(([name]) => name), 'disk', 'screen'],
      },
      { from: ['audit'], to: ['proof'] },
    ],
    status: { listen: '127.0.0.1:0' },
  };
  const file = join(dir, 'sluice.yaml');
  writeFileSync(file, JSON.stringify(config));

  const env = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' };
  const running = startSluice(['run', '-c', file], { program: program(), cwd: dir, env });
  const logged = () => running.stderr.map((line) => line.startsWith('{') && JSON.parse(line));
  for (const [name] of remote) {
    await waitUntil(
      () =>
        !running.running ||
        logged().some(({ sink, error }) => sink === name && /ECONNREFUSED/.test(error)),
      {
        what: () => `sink ${name} to be tried; stderr: ${running.stderr.slice(-30).join('\n')}`,
      },
    );
  }
  expect(running.running, running.stderr.join('\n')).toBe(true);
  await waitUntil(() => existsSync(join(dir, 'events.ndjson')), { what: () => 'the file' });
  await waitUntil(() => existsSync(join(dir, 'archive/lake')), { what: () => 'the lake' });
  await running.kill();

  expect(running.stderr.filter((line) => line.includes('broken_invariant'))).toEqual([]);
  const verify = ['archive', 'verify', join(dir, 'archive'), '--key', vkey];
  expect(spawnSync(program(), verify, { encoding: 'utf8' })).toMatchObject({ status: 0 });
});

test('each type of source reads the sandbox', async () => {
  const dir = tempDir();
  const quick = startSluice(['quickstart'], { program: program(), cwd: dir });
  await quick.waitForLine('archive.checkpoint');
  const url = await quick.waitForLine('status page: ');
  const page = new URL(/http:\/\/127\.0\.0\.1:\d+/.exec(url)?.[0] ?? '');
  for (const path of ['/', '/uplot.js', '/metrics']) {
    expect((await fetch(new URL(path, page))).status, path).toBe(200);
  }
  await quick.kill();
  expect(quick.stderr.filter((line) => line.includes('broken_invariant'))).toEqual([]);
  expect(sources.length).toBeGreaterThan(planted.length / 2);
});

test('the shards of a state in Kafka run in worker processes of the file', async () => {
  const brokers = await kafkaBrokers();
  const topic = await newTopic('release');
  const dir = tempDir();
  const names = ['east', 'west'];
  const { upstreams, env, apart } = await someEdges(names, 20);
  const file = join(dir, 'sluice.yaml');
  const prefix = `p-${crypto.randomUUID()}`;
  apart((shards) => {
    const kafka = JSON.stringify({ brokers, prefix, shards });
    const text = `state: { dir: ${dir}/state, kafka: ${kafka} }
${upstreams}
sources:
${names.map((name) => `  ${name}: { type: audit_events, upstream: ${name}, every: 500ms }`).join('\n')}
sinks: { lake: { type: kafka, brokers: ${JSON.stringify(brokers)}, topic: ${topic}, format: json } }
`;
    writeFileSync(file, text);
    return file;
  });
  const running = startSluice(['run', '-c', file], { program: program(), env });
  const read = await consumeAll(topic, {
    until: (records) => records.length >= 40,
    timeoutMs: 120_000,
  });

  expect(new Set(read.map(({ headers }) => headers.uid)).size).toBe(40);
  const started = running.stderr.filter((line) => line.includes('"event":"shard_worker_started"'));
  expect(new Set(started.map((line) => JSON.parse(line).pid)).has(running.pid)).toBe(false);
  expect(started.length).toBeGreaterThanOrEqual(names.length);
  expect((await running.kill()).exitCode, running.stderr.join('\n')).toBe(0);
}, 300_000);

test('the unit of the packages starts the file and keeps the hardening', () => {
  expect(packageUnit()).toContain('ExecStart=/usr/bin/sluice run -c /etc/sluice/sluice.yaml');
  expect(packageUnit()).toMatch(/^\[Unit\]\n/);
  expect(packageUnit()).not.toContain('/opt/');
  expect(packageUnit()).not.toContain('npm');
});

const analyser = spawnSync('systemd-analyze', ['--version']);
test.skipIf(analyser.status !== 0)(
  'the unit has an exposure of at most 1.5 (skipped where there is no systemd)',
  () => {
    const file = join(tempDir(), 'sluice.service');
    writeFileSync(file, packageUnit());

    const { status, stdout } = spawnSync(
      'systemd-analyze',
      ['security', '--offline=true', '--threshold=15', file],
      { encoding: 'utf8' },
    );

    expect(status, stdout).toBe(0);
  },
);

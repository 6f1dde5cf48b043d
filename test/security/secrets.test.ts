// Every kind of secret that a config can have, in the real program, against servers that repeat everything they
// receive: no secret shows on stdout or stderr (at the level debug), in any file, in the status, or in a command's
// output; nor if the config is wrong, nor if the program dies of an unexpected error.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeCa, makeUntrustedCa } from '../support/certificates.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { startTcpReceiver } from '../support/tcp-receiver.ts';
import { freePort, tempDir, waitUntil } from '../support/temp.ts';
import { startEchoServer } from './echo-server.ts';

/** A secret that is distinct from all others and from everything else, with characters that must be encoded. */
const canary = (kind: string) => `cAnArY${kind}%2F&="é\\s`;
/** One that can stand in a header. */
const headerCanary = (kind: string) => `cAnArY${kind}%2F&=~`;

const secrets = {
  env: {
    CLIENT_ID: canary('ClientId'),
    CLIENT_SECRET: canary('ClientSecret'),
    BASIC_ID: canary('BasicId'),
    BASIC_SECRET: canary('BasicSecret'),
    POST_KEY: headerCanary('PostKey'),
    STATUS_TOKEN: headerCanary('StatusToken').replaceAll('"', ''),
    KAFKA_PASSWORD: canary('KafkaPassword'),
  },
  files: {
    api_key: headerCanary('ApiKey'),
    otlp: headerCanary('OtlpKey'),
    push: headerCanary('PushKey'),
  },
  issued: { token: 'cAnArYToken', cursor: 'cAnArYCursor%2F&="é' },
};

/** Canaries in a text, as they are or in any of the three alignments of base64. */
function canariesIn(text: string): readonly string[] {
  const plain = text.match(/cAnArY\w{0,20}/g) ?? [];
  const packed = ['', 'x', 'xx'].map((pad) => {
    const bits = (bytes: number) => (bytes * 4) / 3;
    const from = Math.ceil(bits(pad.length));
    return Buffer.from(`${pad}cAnArY`)
      .toString('base64')
      .slice(from, Math.floor(bits(pad.length + 6)));
  });
  return [...new Set([...plain, ...packed.filter((core) => text.includes(core))])];
}

/** What stands in all files below a directory, save those that were put there to hold secrets. */
function filesIn(dir: string, hidden: string): string {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.startsWith(hidden))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n');
}

async function aWorldOfSecrets() {
  const dir = tempDir('secrets-');
  const hidden = join(dir, 'hidden');
  mkdirSync(hidden);
  for (const [name, secret] of Object.entries(secrets.files))
    writeFileSync(join(hidden, name), `${secret}\n`);
  const echo = await startEchoServer(secrets.issued);
  const { caFile, client } = await makeCa();
  const stranger = await startTcpReceiver({ tls: await makeUntrustedCa() });
  const upstream = (name: string, base: string, auth: string, more = '') =>
    `  ${name}: { base_url: "${base}", allow_http: true, auth: ${auth}${more} }`;
  const form = '{ client_id: ${env:CLIENT_ID}, client_secret: ${env:CLIENT_SECRET}, scope: s }';
  const basic =
    '{ client_id: ${env:BASIC_ID}, client_secret: ${env:BASIC_SECRET}, scope: s, basic_encoding: rfc6749 }';
  const unified = ', api: unified';
  const ways = ['ok', 'token401', '401', '403', 'cursor422', '451', '500', 'html', 'redirect'];
  const sink = '{ Authorization: "Bearer ${env:POST_KEY}" }';
  const otlp = `headers: { X-Api-Key: "\${file:${hidden}/otlp}" }`;
  const quick = 'retry: { min: 50ms, max: 200ms }';
  const lines = [
    `state: { dir: ${join(dir, 'state')} }`,
    'upstreams:',
    ...ways.map((way) => upstream(`u_${way}`, `${echo.url}/${way}/v1`, form, unified)),
    upstream('keyed', `${echo.url}/403/key`, `{ api_key: "\${file:${hidden}/api_key}" }`, unified),
    upstream('basic', `${echo.url}/ok/svc`, basic, ', api: services, companies: [c-1]'),
    upstream('basic401', `${echo.url}/token401/svc`, basic, ', api: services, companies: [c-1]'),
    upstream('strange', `https://127.0.0.1:${stranger.port}/v1`, form, unified),
    'sources:',
    ...[...ways.map((way) => `u_${way}`), 'keyed', 'strange'].map(
      (name) => `  s_${name}: { type: audit_events, upstream: ${name}, every: 500ms }`,
    ),
    '  s_basic: { type: logs, upstream: basic, every: 500ms, path: "/ok/{company_id}/logs", pagination: { style: cursor } }',
    '  s_basic401: { type: logs, upstream: basic401, every: 500ms, path: "/ok/{company_id}/logs", pagination: { style: cursor } }',
    'sinks:',
    `  disk: { type: file, path: ${join(dir, 'events.ndjson')}, format: { type: json, raw_data: true } }`,
    ...['accept', '400', '401', '429', '500', 'redirect'].map(
      (how) =>
        `  post_${how}: { type: http, url: "${echo.url}/${how}?key=1", headers: ${sink}, format: json, batch: { events: 1 }, ${quick} }`,
    ),
    ...['partial', '400', '403', '503'].map(
      (how) =>
        `  otlp_${how}: { type: otlp, url: "${echo.url}/${how}/v1/logs", ${otlp}, ${quick} }`,
    ),
    `  siem: { type: syslog, address: "tls://127.0.0.1:${stranger.port}", tls: { ca_file: ${caFile}, cert_file: ${client.certFile}, key_file: ${client.keyFile} }, ${quick} }`,
    `  lake: { type: kafka, brokers: ["127.0.0.1:${await freePort()}"], topic: t, sasl: { mechanism: plain, username: exporter, password: "\${env:KAFKA_PASSWORD}" }, ${quick} }`,
    'status:',
    '  listen: 127.0.0.1:0',
    '  token: ${env:STATUS_TOKEN}',
    `  otlp: { url: "${echo.url}/403/v1/metrics", headers: { X-Push: "\${file:${hidden}/push}" }, every: 1s }`,
    'shutdown: { timeout: 200ms }',
  ];
  const config = join(dir, 'sluice.yaml');
  writeFileSync(config, `${lines.join('\n')}\n`);
  return { dir, hidden, config, echo };
}

type World = Awaited<ReturnType<typeof aWorldOfSecrets>>;

/** The status: for a client with the token, and for one without. */
async function statusOf(url: string): Promise<string> {
  const answers = ['/', '/status.json', '/metrics', '/healthz', '/readyz', '/nothing'].flatMap(
    (path) =>
      [{}, { authorization: `Bearer ${secrets.env.STATUS_TOKEN}` }].map(async (headers) => {
        const response = await fetch(`${url}${path}`, { headers });
        return `${path} ${response.status} ${[...response.headers].join()} ${await response.text()}`;
      }),
  );
  return (await Promise.all([...answers, firstEventsOf(url)])).join('\n');
}

/** The first data for a listener: the past and the present. */
async function firstEventsOf(url: string): Promise<string> {
  const headers = { authorization: `Bearer ${secrets.env.STATUS_TOKEN}` };
  const reader = (await fetch(`${url}/events`, { headers })).body?.getReader();
  const first = await reader?.read();
  await reader?.cancel();
  return Buffer.from(first?.value ?? []).toString();
}

/** Every secret has been sent, and every server has been reported. */
async function allWasTried({ echo }: World, stderr: () => string): Promise<void> {
  const sent = [
    ...['ClientId', 'ClientSecret', 'PostKey', 'OtlpKey', 'PushKey', 'ApiKey', 'Token', 'Cursor'],
    Buffer.from('cAnArYBasicI').toString('base64'),
  ];
  const reported = [
    'u_token401',
    'u_401',
    'u_403',
    'u_451',
    'u_500',
    'u_html',
    'u_redirect',
    'keyed',
    'basic401',
  ];
  const sinks = ['post_400', 'post_401', 'post_429', 'otlp_partial', 'otlp_403', 'siem', 'lake'];
  const missing = () => [
    ...sent.filter((secret) => !echo.heard().includes(secret)),
    ...[...reported, ...sinks].filter((name) => !stderr().includes(name)),
  ];
  await waitUntil(() => missing().length === 0, {
    what: () => missing().join(),
  });
}

const crashing = "process.once('SIGUSR2', () => { throw new Error('an unexpected fault'); });";

test('no secret shows in any output, file or status, even if a server repeats it', async () => {
  const world = await aWorldOfSecrets();
  const { dir, hidden, config } = world;
  const env = secrets.env;
  const sluice = startSluice(['run', '-c', config, '--log-level', 'debug'], {
    cwd: dir,
    env: { ...env, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(crashing)}` },
  });
  const { url } = JSON.parse(await sluice.waitForLine('"status page"'));
  await allWasTried(world, () => sluice.stderr.join('\n'));
  const looks = await Promise.all([
    statusOf(url),
    ...[
      ['status', '--json'],
      ['dead-letters', 'list', '--json'],
      ['checkpoint', 'show', '--stream', 's_u_ok'],
    ].map((command) => runSluice([...command, '-c', config], { env })),
  ]);
  const crash = await sluice.kill('SIGUSR2');
  const [once, connected] = await Promise.all([
    runSluice(['run', '-c', config, '--once', '--timeout', '500ms'], { env }),
    runSluice(['check', '-c', config, '--connect', '--log-level', 'debug'], { env }),
  ]);

  const outputs = JSON.stringify([looks, crash, once, connected]);
  expect(canariesIn(outputs)).toEqual([]);
  // A checkpoint holds the cursor that it is; nothing else may be found in a file.
  const files = filesIn(dir, hidden);
  expect(canariesIn(files).filter((canary) => canary !== 'cAnArYCursor')).toEqual([]);
  expect(crash).toMatchObject({ exitCode: 1 });
  expect(crash.stderr).toContain('an unexpected fault');
  expect([once.exitCode, connected.exitCode]).toEqual([1, 3]);
  expect(outputs).toContain('dead_letters');
  expect(files).toContain('evt-1');
});

test('errors in a config are reported without its secrets', async () => {
  const dir = tempDir('secrets-');
  const config = join(dir, 'sluice.yaml');
  writeFileSync(
    config,
    [
      'upstreams:',
      '  a: { api: unified, base_url: "https://user:cAnArYUrl@api.test/v1", auth: { client_id: [cAnArYList], client_secret: cAnArYLiteral } }',
      '  b: { api: unified, base_url: "${env:SECRET}", auth: { client_secrt: cAnArYMisspelt, api_key: { a: cAnArYMap } } }',
      '  c: { api: unified, base_url: "https://api.test/v1", auth: { api_key: "${env:NOT_SET:-}${file:/nowhere/cAnArYPathIsNoSecret}" }, timeout: "${env:SECRET}" }',
      'sources:',
      '  s: { type: audit_events, upstream: "${env:SECRET}", every: "${env:SECRET}" }',
      'sinks:',
      '  post: { type: http, url: "https://user:cAnArYPost@siem.test/", headers: { "x y": cAnArYHeader, ok: 7 }, format: "${env:SECRET}" }',
      '  lake: { type: kafka, brokers: ["${env:SECRET}"], topic: t, sasl: { mechanism: plain, username: u, password: 9 } }',
      '  disk: { type: file, path: x, rotat: "${env:SECRET}" }',
      'routes: [{ from: [s], to: [disk], where: "event.x == ${env:SECRET} &&" }]',
      'status: { listen: "0.0.0.0:1", token: [cAnArYToken] }',
      '',
    ].join('\n'),
  );

  const { stdout, stderr, exitCode } = await runSluice(['check', '-c', config], {
    env: { SECRET: canary('Referenced') },
  });

  expect(exitCode).toBe(2);
  expect(stderr.split('\n').length).toBeGreaterThan(12);
  const shown = canariesIn(stdout + stderr);
  expect(shown).toEqual(['cAnArYPathIsNoSecret']);
});

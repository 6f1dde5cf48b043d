// Responses made to exhaust a reader: compressed bodies that unpack to a gibibyte, values nested a hundred thousand
// levels deep, keys that reach for prototypes. The real HTTP client and the real program: the bad stream is reported
// and polled again, memory stays small, and all other records are delivered.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { openHttpClient } from '../../src/tools/http-client.ts';
import { nestingMax } from '../../src/tools/json-scan.ts';
import { listen } from '../connectors/sinks/syslog-receivers.ts';
import { makeFormat } from '../formats/make-format.ts';
import { anEvent } from '../support/an-event.ts';
import { startSluice } from '../support/cli.ts';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const MiB = 1024 ** 2;

/** Unpacks to a gibibyte: packed data may be several pieces back to back, each unpacked in turn. */
function bombOf(pack: (bytes: Buffer) => Buffer): Buffer {
  return Buffer.concat(new Array<Buffer>(64).fill(pack(Buffer.alloc(16 * MiB))));
}

const bombs = {
  gzip: bombOf((bytes) => gzipSync(bytes)),
  zstd: bombOf((bytes) => zstdCompressSync(bytes)),
  'gzip, gzip': gzipSync(bombOf((bytes) => gzipSync(bytes))),
};
const depth = 100_000;
const deep = {
  arrays: `${'['.repeat(depth)}${']'.repeat(depth)}`,
  objects: `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`,
};
const pageOf = (...records: string[]) => `{"data":[${records.join(',')}],"next_cursor":null}`;

/** What each path answers: content coding and body. */
const answers: Readonly<Record<string, readonly [coding: string, body: string | Buffer]>> = {
  ...Object.fromEntries(
    Object.entries(bombs).map(([coding, body], i) => [`/bomb${i}`, [coding, body]]),
  ),
  '/deep1': ['identity', pageOf(`{"id":"d","x":${deep.arrays}}`)],
  '/deep2': ['identity', pageOf(`{"id":"d","x":${deep.objects}}`)],
  '/deep3': ['identity', `{"x":${deep.objects},"data":[{"id":"d"}],"next_cursor":null}`],
  '/proto': [
    'identity',
    `{"__proto__":{"data":[{"id":"forged"}],"next_cursor":"x"},"constructor":{"prototype":{"y":1}},${pageOf(
      '{"id":"p1","__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}',
      `{"id":"p2","toString":"x","hasOwnProperty":1,"toJSON":"y","then":"z"}`,
    ).slice(1)}`,
  ],
  '/near': ['identity', pageOf(`{"id":"n1","action":"a","x":${nested('"\\ud800"')}}`)],
  '/api/firewall/v1/companies/c-1/objects': ['identity', pageOf(`{"id":"o","x":${deep.arrays}}`)],
};

/** A value as deep as sluice takes it, within the body and the record. */
function nested(inner: string): string {
  const levels = nestingMax - 5;
  return `${'{"a":'.repeat(levels)}${inner}${'}'.repeat(levels)}`;
}

async function hostileUpstream(): Promise<string> {
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    const [coding, body] = answers[path] ?? ['identity', '{"access_token":"t","expires_in":60}'];
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': coding });
    response.end(body);
  });
  return `http://127.0.0.1:${await listen(server)}`;
}

test.each(Object.keys(bombs))(
  'a gibibyte packed by %s is given up at the bound',
  async (coding) => {
    const url = await hostileUpstream();
    const http = openHttpClient();
    afterThisTest(() => http.close());
    const path = `/bomb${Object.keys(bombs).indexOf(coding)}`;
    const request = { method: 'GET' as const, url: url + path, headers: {}, timeoutMs: 20_000 };
    const before = process.memoryUsage().arrayBuffers;

    const answer = http.request(
      { ...request, bodyBytesMax: 16 * MiB },
      new AbortController().signal,
    );

    await expect(answer).rejects.toMatchObject({ reason: 'too_large' });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * MiB);
  },
);

test('the program survives every bomb, names the affected stream, and delivers the rest', async () => {
  const url = await hostileUpstream();
  const collector = await startOtlpReceiver();
  const dir = tempDir('bombs-');
  const config = join(dir, 'sluice.yaml');
  const bad = Object.keys(answers).filter((path) => /bomb|deep/.test(path));
  const lists = [...bad, '/proto', '/near'].map(
    (path) =>
      `  ${path.slice(1)}: { type: audit_events, upstream: edge, every: 1s, path: ${path} }`,
  );
  writeFileSync(
    config,
    [
      `state: { dir: ${join(dir, 'state')} }`,
      'upstreams:',
      `  edge: { api: unified, ends: never, base_url: "${url}", allow_http: true, auth: { api_key: k }, max_body: 16MiB }`,
      `  ops: { api: services, base_url: "${url}", allow_http: true, auth: { client_id: i, client_secret: s, scope: x }, companies: [c-1] }`,
      'sources:',
      ...lists,
      '  walls: { type: firewall, upstream: ops, every: 1s, resources: [objects] }',
      'sinks:',
      `  disk: { type: file, path: ${join(dir, 'events.ndjson')}, format: json }`,
      `  otel: { type: otlp, url: "${collector.url}", format: { type: otel, encoding: json } }`,
      'routes:',
      '  - { from: [proto, near], to: [otel] }',
      '  - { from: [proto, near], to: [disk], where: "event.time > 0 || event == dyn(source)", redact: [unmapped.a, unmapped.x.a.a.b] }',
      '',
    ].join('\n'),
  );

  const sluice = startSluice(['run', '-c', config]);
  const lines = () => {
    const file = join(dir, 'events.ndjson');
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
  };
  const reported = () => sluice.stderr.join('\n');
  const names = [...bad.map((path) => path.slice(1)), 'walls/c-1/objects'];
  await waitUntil(
    () => names.every((name) => reported().includes(`"${name}","code"`)) && lines().length === 3,
    {
      what: () => `${names} to be told of, and 3 lines of ${lines()}; ${reported()}`,
    },
  );
  await collector.waitFor(3);
  const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${sluice.pid}/status`, 'utf8'));
  const { exitCode } = await sluice.kill();

  expect(exitCode).toBe(0);
  expect(Number(peak?.[1]) * 1024).toBeLessThan(450 * MiB);
  const events = lines().map((line) => JSON.parse(line));
  const byId = new Map(events.map((event) => [event.metadata.original_event_uid, event.unmapped]));
  expect([...byId.keys()].sort()).toEqual(['n1', 'p1', 'p2']);
  expect(JSON.stringify(byId.get('p1'))).toBe(
    '{"id":"p1","__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}',
  );
  expect(JSON.stringify(byId.get('n1').x)).toBe(nested('"\\ud800"'));
  expect(reported()).toMatch(/max_body/);
  expect(reported()).toContain(`nested more than ${nestingMax} levels deep`);
});

describe('a nested value is looked at a few times, not a number of times that doubles at each level', () => {
  test.each([
    ['json', {}],
    ['syslog', {}],
    ['otel', {}],
    ['otel', { encoding: 'json' }],
  ] as const)('%s %j', (type, settings) => {
    let looks = 0;
    let value: object = {
      get leaf() {
        looks += 1;
        return '\ud800';
      },
    };
    for (let level = 0; level < 20; level++) value = { a: value };
    const event = anEvent();

    makeFormat(type, settings).encode({
      ...event,
      ocsf: { ...event.ocsf, unmapped: { value } } as typeof event.ocsf,
    });

    expect(looks).toBeGreaterThan(0);
    expect(looks).toBeLessThan(100);
  });
});

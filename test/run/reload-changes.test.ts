// The differences between two configs, part by part. Configs are read and planned as by the program; no server is
// contacted.

import { describe, expect, test } from 'vitest';
import { parseConfig } from '../../src/config/config.ts';
import { planFrom } from '../../src/run/plan.ts';
import { changesBetween, type Made } from '../../src/run/reload-changes.ts';
import { configEnv } from '../config/config-text.ts';
import { planMeans } from './plan-deps.ts';

const config = `
upstreams:
  edge: { api: unified, base_url: "https://api.example.com/v1", auth: { client_id: a, client_secret: "\${file:/secret}" } }
  twin: { api: unified, base_url: "https://api.example.com/v1", auth: { client_id: a, client_secret: "\${file:/secret}" } }
  ops:
    api: services
    base_url: https://svc.example.com
    companies: [c-1, c-2]
    auth: { client_id: i, client_secret: s, scope: "urn:x" }
sources:
  audit: { type: audit_events, upstream: edge }
  again: { type: audit_events, upstream: twin }
  web: { type: logs, upstream: ops, path: "/l/{company_id}", mapping: { class: network_activity, fields: { src_endpoint.ip: ip } } }
sinks:
  disk: { type: file, path: /tmp/events.ndjson, format: json }
  post: { type: http, url: "https://sink.example", headers: { authorization: "\${env:TOKEN}" } }
routes:
  - { from: [audit, again, web], to: [disk] }
  - { from: [audit], to: [post], where: 'event.severity_id >= 3' }
`;

const streams = ['audit', 'again', 'web/c-1', 'web/c-2'];

/** A config as it runs; the file that its secret is read from holds what `secret` says at each moment. */
function made(text: string, secret = { is: 'one' }, env = { TOKEN: 'hush' }): Made {
  const surroundings = {
    ...configEnv(env),
    readFile: (path: string) => (path === '/secret' ? Buffer.from(secret.is) : Buffer.from(path)),
  };
  const parsed = parseConfig(text, 'c.yaml', surroundings);
  return { config: parsed, plan: planFrom(parsed, planMeans()) };
}

/** What changing this part of the text changes, without what stays. */
function changing(from: string, to: string) {
  expect(config).toContain(from);
  return changesBetween(made(config), made(config.replaceAll(from, to)));
}

describe('changes', () => {
  test('are none where the same state directory is written in another way', () => {
    const [relative, absolute] = ['./state', `${process.cwd()}/state`].map((dir) =>
      made(`${config}state: { dir: ${dir} }\n`),
    ) as [Made, Made];

    expect(changesBetween(relative, absolute).fixed).toEqual([]);
  });

  test('are none where the same is written differently', () => {
    const written = config
      .replace(
        '{ type: http, url: "https://sink.example"',
        '{ url: "https://sink.example", type: http',
      )
      .replace(
        'type: audit_events, upstream: edge',
        'type: audit_events, upstream: edge, every: 30s',
      )
      .replace('${env:TOKEN}', 'hush');

    const { streams: ofStreams, sinks, fixed } = changesBetween(made(config), made(written));

    expect(ofStreams).toEqual({ added: [], changed: [], removed: [], unchanged: streams });
    expect(sinks).toEqual({ added: [], changed: [], removed: [], unchanged: ['disk', 'post'] });
    expect(fixed).toEqual([]);
  });

  test('are none if a secret was rotated in its file, which is read at each use', () => {
    const secret = { is: 'one' };
    const before = made(config, secret);
    secret.is = 'two';

    const { streams: ofStreams } = changesBetween(before, made(config, secret));

    expect(ofStreams.unchanged).toEqual(streams);
  });

  test.each([
    [
      'client_id: a, client_secret: "${file:/secret}"',
      'client_id: a, client_secret: other',
      ['audit', 'again'],
    ],
    ['api: services', 'api: services\n    timeout: 5s', ['web/c-1', 'web/c-2']],
    [
      'audit: { type: audit_events, upstream: edge',
      'audit: { type: audit_events, upstream: edge, every: 5s',
      ['audit'],
    ],
    ['path: "/l/{company_id}"', 'path: "/m/{company_id}"', ['web/c-1', 'web/c-2']],
  ])('of streams: %s', (from, to, changed) => {
    const changes = changing(from, to);

    expect(changes.streams.changed).toEqual(changed);
    expect(changes.sinks.changed).toEqual([]);
  });

  test('of one upstream concern all that share its credential', () => {
    const first = config.replace('twin: { api: unified,', 'twin: { api: unified, timeout: 9s,');

    const { streams: ofStreams } = changesBetween(made(config), made(first));

    expect(ofStreams.changed).toEqual(['audit', 'again']);
  });

  test.each([
    ['format: json', 'format: { type: json, raw_data: true }', ['disk']],
    ['severity_id >= 3', 'severity_id >= 4', ['post']],
    ['"${env:TOKEN}"', 'other', ['post']],
    ['src_endpoint.ip: ip', 'dst_endpoint.ip: ip', ['disk']],
    ['url: "https://sink.example"', 'url: "https://sink.example", batch: { events: 7 }', ['post']],
  ])('of sinks: %s', (from, to, changed) => {
    const changes = changing(from, to);

    expect(changes.sinks.changed).toEqual(changed);
    expect(changes.streams.changed).toEqual([]);
  });

  test('add and remove streams by name, and leave sinks alone', () => {
    const changes = changing('companies: [c-1, c-2]', 'companies: [c-2, c-3]');

    expect(changes.streams).toEqual({
      added: ['web/c-3'],
      changed: [],
      removed: ['web/c-1'],
      unchanged: ['audit', 'again', 'web/c-2'],
    });
    expect(changes.sinks.unchanged).toEqual(['disk', 'post']);
  });

  test('of a new source leave sinks alone, whose routes are evaluated again', () => {
    const text = config
      .replace('sources:\n', 'sources:\n  new: { type: audit_events, upstream: edge }\n')
      .concat('  - { from: [new], to: [disk] }\n');

    const { sinks, streams: ofStreams } = changesBetween(made(config), made(text));

    expect(ofStreams.added).toEqual(['new']);
    expect(sinks.unchanged).toEqual(['disk', 'post']);
  });

  test.each([
    ['state', 'state: { max_bytes: 2GiB }'],
    ['status', 'status: { listen: "127.0.0.1:8686" }'],
    ['shutdown', 'shutdown: { timeout: 3s }'],
    ['log', 'log: { level: debug }'],
  ])('of %s are for a start', (key, line) => {
    const { fixed } = changesBetween(made(config), made(`${config}${line}\n`));

    expect(fixed).toEqual([key]);
  });
});

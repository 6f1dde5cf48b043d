// Messages about a misleading config: each names the location, the value found, and the value to write instead.

import { expect, test } from 'vitest';
import { parseConfig } from '../../src/config/config.ts';
import { headerValue } from '../../src/contracts/secret.ts';
import { aConfig, configEnv, flawLines, withFirst } from './config-text.ts';

test.each([
  [
    'a merge key',
    'state: { <<: *x }',
    /merge keys \(<<\) are no part of YAML 1\.2; write the keys out/,
  ],
  [
    'a port alone',
    'status: { listen: 8686 }',
    /status\.listen: expected host:port such as 127\.0\.0\.1:8686/,
  ],
  [
    'a port alone as text',
    'status: { listen: "8686" }',
    /expected host:port such as 127\.0\.0\.1:8686/,
  ],
])('%s', (_, top, message) => {
  const anchored = top.includes('*x') ? `log: &x { level: info }\n${top}` : top;

  expect(flawLines(aConfig({ top: anchored }))).toEqual([expect.stringMatching(message)]);
});

const route = (where: string) =>
  aConfig({ top: `routes: [{ from: [audit], to: [screen], where: '${where}' }]` });

test.each([
  ['event.severity_id >= 3 AND event.class_uid == 6003', 'CEL writes && for AND'],
  ['event.severity_id >= 3 or event.class_uid == 6003', 'CEL writes || for or'],
  ['NOT event.severity_id >= 3', 'CEL writes ! for NOT'],
  ['event.severity_id = 3', 'CEL writes == for ='],
  ['event.severity_id <> 3', 'CEL writes != for <>'],
])('the filter %s', (where, hint) => {
  expect(flawLines(route(where))).toEqual([expect.stringContaining(hint)]);
});

test.each([
  'event.message == "this AND that = 5"',
  'event.severity_id >= 3 && event.class_uid != 4',
])('the filter %s is right', (where) => expect(flawLines(route(where))).toEqual([]));

test('a secret file that is missing has to be created, one without rights made readable', () => {
  const upstreams =
    '  edge: { api: unified, base_url: "https://x/v1", auth: { api_key: "${file:/none}" } }';
  const lines = (code: string) =>
    flawLines(aConfig({ upstreams }), {
      ...configEnv(),
      readFile: () => {
        throw Object.assign(new Error(code), { code });
      },
    });

  expect(lines('ENOENT')).toEqual([expect.stringMatching(/Create the file, or correct its path/)]);
  expect(lines('EACCES')).toEqual([expect.stringMatching(/Make the file readable/)]);
});

test.each(['hunter2-s3cr3t', 'S3cr3t', 's3cr3t'])(
  'the secret %s as a key is not shown',
  (secret) => {
    for (const auth of [`{ api_key: k, ${secret} }`, `{ api_key: k, "${secret}": x }`]) {
      const upstreams = `  edge: { api: unified, base_url: "https://x/v1", auth: ${auth} }`;
      const lines = flawLines(withFirst('upstreams', upstreams));

      expect(lines).toEqual([expect.stringMatching(/auth\["…"\]: unknown key; known: client_id/)]);
      expect(lines.join()).not.toContain(secret);
    }
  },
);

test('a misspelt key beside credentials is shown with the nearest one', () => {
  const upstreams =
    '  edge: { api: unified, base_url: "https://x/v1", auth: { apiKey: k, client_id: i, client_secret: s } }';

  expect(flawLines(withFirst('upstreams', upstreams))).toEqual([
    expect.stringMatching(/auth\.apiKey: unknown key; did you mean api_key\?/),
  ]);
});

const proxied = (proxy: string) =>
  withFirst('sinks', `  post: { type: http, url: "https://x", proxy: "${proxy}" }`);

test.each([
  [
    'http://user:50%off@proxy:3128',
    /sinks\.post\.proxy: the % at position 15 begins no escape.*write %25 for %/,
  ],
  ['http://user:a/b@proxy:3128', /proxy: expected the address of a proxy.*%2F for \//],
  ['http://user:%ff@proxy:3128', /proxy: an escape \(%\) in user or password is not UTF-8/],
])('the proxy %s is refused with how to write it, and not shown', (proxy, message) => {
  const lines = flawLines(proxied(proxy));

  expect(lines).toEqual([expect.stringMatching(message)]);
  expect(lines.join()).not.toMatch(/off@|a\/b@|%ff@/);
});

test('a proxy with an encoded password is right, for every sink that has one', () => {
  expect(flawLines(proxied('http://user:50%25off@proxy:3128'))).toEqual([]);
  const bad = 'proxy: "http://u:5%o@p:1"';
  const auth = 'auth: { api_key: k }';
  const sinks = [
    `  a: { type: http, url: "https://x", ${bad} }`,
    `  b: { type: otlp, url: "https://x/v1/logs", ${bad} }`,
    `  c: { type: elasticsearch, url: "https://x", ${auth}, ${bad} }`,
    `  d: { type: splunk_hec, url: "https://x", token: t, ${bad} }`,
    `  e: { type: datadog, api_key: k, ${bad} }`,
    `  f: { type: s3, bucket: some-bucket, region: eu-west-1, ${bad} }`,
  ];

  const lines = flawLines(withFirst('sinks', sinks.join('\n')));

  expect(lines.filter((line) => /proxy: the % at position 11/.test(line))).toHaveLength(6);
});

test('plain secrets, and text that is nearly a reference, are noticed without being shown', () => {
  const upstreams =
    '  edge: { api: unified, base_url: "https://x/v1", auth: { client_id: i, client_secret: "$EDGE_SECRET" } }\n' +
    '  other: { api: unified, base_url: "https://y/v1", auth: { api_key: hunter22 } }\n' +
    '  good: { api: unified, base_url: "https://z/v1", auth: { api_key: "${env:KEY}" } }';
  const { notices } = parseConfig(aConfig({ upstreams }), 'c.yaml', configEnv({ KEY: 'k' }));

  expect(notices.map(({ path, message }) => [path, message])).toEqual([
    [
      'upstreams.edge.auth.client_secret',
      expect.stringMatching(/no reference; write \$\{env:NAME\}/),
    ],
    ['upstreams.other.auth.api_key', expect.stringMatching(/this secret is plain text/)],
  ]);
  expect(JSON.stringify(notices)).not.toMatch(/hunter22|EDGE_SECRET/);
});

test('a key that no header can have is named by where it was written, and not shown', () => {
  const upstreams =
    '  edge: { api: unified, base_url: "https://x/v1", auth: { api_key: "${file:/run/key}" } }';
  const config = (text: string) =>
    parseConfig(aConfig({ upstreams }), 'c.yaml', configEnv({}, { '/run/key': text }));
  const value = (text: string) => {
    const key = config(text).upstreams.edge?.auth.api_key;
    return key === undefined ? '' : headerValue(key, 'the API key');
  };

  expect(['\ufeffhunter2\r\n\r\n', 'hunter2 \n'].map(value)).toEqual(['hunter2', 'hunter2']);
  expect(() => value('hunter2\nhunter3\n')).toThrow(
    /^the API key, from \$\{file:\/run\/key\}, holds a line end at position 8$/,
  );
});

// Messages about a config that misled: each names the place, what was found, and what to write in its place.

import { expect, test } from 'vitest';
import { aConfig, around, flawLines, withFirst } from './config-text.ts';

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
      ...around(),
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

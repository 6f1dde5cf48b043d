// Notes of `check` about settings of sources that are allowed and do something else than they seem to.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';

async function checked(source: string) {
  const file = join(tempDir(), 'c.yaml');
  writeFileSync(
    file,
    `upstreams:
  ops: { api: services, base_url: "https://api.example/v1", companies: [c-1], auth: { client_id: a, client_secret: b, scope: "urn:x:y" } }
sources: { web: { upstream: ops, every: 30s, ${source} } }
sinks: { screen: { type: stdout } }
`,
  );
  const { stdout, exitCode } = await runHere(['check', '-c', file]);
  return { stdout: stdout.replaceAll(/\s+/g, ' '), exitCode };
}

test.each([
  ['type: logs, path: /../x', 'path: /../x leads to https://api.example/x;'],
  ['type: logs, path: "/a/%2E%2e/b"', 'path: /a/%2E%2e/b leads to https://api.example/v1/b;'],
  ['type: logs, path: /./x', 'path: /./x leads to https://api.example/v1/x;'],
  ['type: collection, path: /x/..', 'path: /x/.. leads to https://api.example/v1/;'],
  [
    'type: collection, path: /x, detail: "/x/../{id}"',
    'detail: /x/../{id} leads to https://api.example/v1/{id};',
  ],
])('a path that leads elsewhere: %s', async (source, note) => {
  const { stdout, exitCode } = await checked(source);
  const [key] = note.split(':');

  expect(stdout).toContain(
    `note sources.web.${note} write base_url and ${key} without the segments . and ..`,
  );
  expect(exitCode).toBe(0);
});

test.each(['/x..y', '/..x/y.', '/a/...'])('no note about %s', async (path) => {
  const { stdout } = await checked(`type: logs, path: ${path}`);

  expect(stdout).not.toContain('leads to');
});

test.each([
  'type: logs, path: /x',
  'type: collection, path: /x',
  'type: ticket_events, each: { ids: [t-1] }',
])('a key of paging without effect: %s', async (source) => {
  const { stdout, exitCode } = await checked(
    `${source}, pagination: { style: cursor, offset_param: skip }`,
  );

  expect(stdout).toContain(
    'note sources.web: pagination.offset_param has no effect with style: cursor: remove the key',
  );
  expect(exitCode).toBe(0);
});

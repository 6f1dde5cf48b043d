// /readyz of the real program where some streams are refused: one company that is denied makes nothing red for the others,
// while all of them denied do, and it stays in attention either way.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { startSluice } from '../support/cli.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

interface Status {
  readonly streams: readonly { readonly state: string; readonly caught_up_at: string | null }[];
  readonly attention: readonly unknown[];
}

async function started(companies: string, more = '') {
  const sandbox = await startSandbox();
  afterThisTest(() => sandbox.close());
  const { clientId, clientSecret, servicesScope } = sandbox.credentials;
  const dir = tempDir();
  const config = join(dir, 'sluice.yaml');
  writeFileSync(
    config,
    `state: { dir: ${dir}/state }
upstreams:
  ops:
    api: services
    base_url: ${sandbox.servicesBaseUrl}
    allow_http: true
    auth: { client_id: ${clientId}, client_secret: "\${env:S}", scope: "${servicesScope}" }
    companies: ${companies}
sources: { lists: { type: block_list, upstream: ops, every: 1s } }
sinks: { disk: { type: file, path: ${dir}/out.ndjson, format: json } }
status: { listen: "127.0.0.1:0"${more} }
`,
  );
  const sluice = startSluice(['run', '-c', config], { env: { S: clientSecret } });
  const { url } = JSON.parse(await sluice.waitForLine('"status page"'));
  const status = async () => (await (await fetch(`${url}/status.json`)).json()) as Status;
  const ready = async () => (await fetch(`${url}/readyz`)).status;
  return { status, ready };
}

test.each([
  ['one of three companies denied', '[c-1, c-2, c-9]', '', 200],
  [
    'one of three denied, where all have to advance',
    '[c-1, c-2, c-9]',
    ', ready: { streams: 1 }',
    503,
  ],
  ['two of three denied', '[c-1, c-8, c-9]', '', 503],
  [
    'two of three denied, where a third is enough',
    '[c-1, c-8, c-9]',
    ', ready: { streams: 0.3 }',
    200,
  ],
  ['all denied, where none is needed', '[c-8, c-9]', ', ready: { streams: 0 }', 503],
])('/readyz: %s', async (_what, companies, more, expected) => {
  const { status, ready } = await started(companies, more);
  let last: Status | null = null;
  await waitUntil(
    async () => {
      last = await status();
      return (last?.streams ?? []).every(
        ({ state, caught_up_at }) => state === 'halted' || caught_up_at !== null,
      );
    },
    { what: () => `each stream to be halted or read: ${JSON.stringify(last)}`, everyMs: 100 },
  );

  expect(await ready()).toBe(expected);
  expect((await status()).attention.length).toBeGreaterThan(0);
});

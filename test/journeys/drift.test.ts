// Changes without an audit event, and audit events without a change, planted in the sandbox: the real program, killed
// in between, finds each of them once and no other.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const path = '/api/threat-protection/v1/companies/c-1/block-list-entries';
const withinMs = 2_000;

test('sluice that is killed finds each planted change once, and no other', {
  tags: ['long'],
}, async () => {
  const dir = tempDir();
  const sandbox = await startSandbox({ events: 300, logs: 0, rate: 8, firewallEveryS: 0 });
  afterThisTest(() => sandbox.close());
  const { clientId, clientSecret } = sandbox.credentials;
  const auth = (scope: string) =>
    `{ client_id: ${clientId}, client_secret: "\${env:SECRET}", scope: "${scope}" }`;
  const config = join(dir, 'sluice.yaml');
  writeFileSync(
    config,
    `state: { dir: ${dir}/state }
upstreams:
  edge: { api: unified, ends: never, base_url: ${sandbox.unifiedBaseUrl}, allow_http: true, auth: ${auth('events:read')} }
  ops: { api: services, base_url: ${sandbox.servicesBaseUrl}, allow_http: true, companies: [c-1], auth: ${auth('urn:sandbox:api:public')} }
sources:
  audit: { type: audit_events, upstream: edge, every: 500ms }
  blocks: { type: block_list, upstream: ops, every: 500ms, confirm_after: 200ms, settle: 1s }
sinks:
  disk: { type: file, path: ${dir}/out.ndjson, format: json }
routes: [{ from: [blocks], to: [disk] }]
watch: { drift: { changes: [blocks], trail: [audit], within: ${withinMs}ms } }
`,
  );
  const start = () => startSluice(['run', '-c', config], { env: { SECRET: clientSecret } });
  const events = () => {
    const file = join(dir, 'out.ndjson');
    if (!existsSync(file)) return [];
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line));
  };
  const findings = () => events().filter((event) => event.class_uid === 2004);
  const plant = (order: Parameters<typeof sandbox.control.change>[1]) =>
    sandbox.control.change(path, order);

  const asked = () => sandbox.control.requests()[path]?.requests ?? 0;
  const readAgain = async () => {
    const enough = asked() + 4;
    await waitUntil(() => asked() >= enough, { what: 'more readings' });
  };

  let sluice = start();
  await waitUntil(() => events().length > 0, { what: 'a baseline' });
  // What is planted before the first few readings cannot be judged.
  await delay(3 * withinMs);
  await readAgain();
  const ids = Array.from({ length: 8 }, (_, n) => `planted-${n}`);
  for (const [n, id] of ids.entries()) {
    plant({ op: 'created', id, explained: n % 3 !== 1 });
    await delay(400);
    if (n !== 3 && n !== 6) continue;
    // What was read is judged later, by another process.
    await sluice.kill('SIGKILL');
    sluice = start();
  }
  const written = () => new Set(events().map(({ entity }) => entity?.uid));
  await waitUntil(() => written().isSupersetOf(new Set(ids)), { what: 'all that was created' });
  // A change counts as shown by any event near in time.
  await delay(6 * withinMs);
  await readAgain();
  for (const id of ['planted-2', 'planted-5']) plant({ op: 'updated', id, seen: false });
  await delay(1_000);
  plant({ op: 'updated', id: 'planted-0', explained: false });
  plant({ op: 'deleted', id: 'planted-3', explained: false });
  await sluice.kill('SIGKILL');
  sluice = start();

  const planted = () =>
    [...sandbox.ledger().collection(path).changes()].flatMap(({ id, op, explained, seen }) =>
      explained && seen ? [] : [`${seen ? 'change.unexplained' : 'change.unseen'} ${id} ${op}`],
    );
  const found = () =>
    findings().map(
      ({ metadata, unmapped: { details } }) =>
        `${metadata.event_code} ${details.entity_id} ${details.operation}`,
    );
  const isAll = () => new Set(found()).isSupersetOf(new Set(planted()));
  await waitUntil(isAll, {
    what: () => `the findings; ${found().join(', ')} of ${planted().join(', ')}`,
  });
  await delay(4 * withinMs);
  expect(found().toSorted()).toEqual(planted().toSorted());
  expect(planted()).toHaveLength(7);
  const severities = findings().map(({ metadata, severity }) => [metadata.event_code, severity]);
  for (const [code, severity] of severities) {
    if (code === 'change.unexplained') expect(severity).toBe('High');
    else expect(['Low', 'Medium']).toContain(severity);
  }
  const uids = events().map(({ metadata }) => metadata.uid);
  expect(new Set(uids).size).toBe(uids.length);
});

test('a run that ends by itself finds room while the watch reads along', async () => {
  const dir = tempDir();
  const sandbox = await startSandbox({ events: 8_000, logs: 0, rate: 0, firewallEveryS: 0 });
  afterThisTest(() => sandbox.close());
  const { clientId, clientSecret } = sandbox.credentials;
  const config = join(dir, 'sluice.yaml');
  writeFileSync(
    config,
    `state: { dir: ${dir}/state, max_bytes: 1MiB }
upstreams:
  edge: { api: unified, ends: never, base_url: ${sandbox.unifiedBaseUrl}, allow_http: true, auth: { client_id: ${clientId}, client_secret: "\${env:SECRET}", scope: "platform:read events:read" } }
sources:
  audit: { type: audit_events, upstream: edge }
  sites: { type: sites, upstream: edge }
sinks:
  disk: { type: file, path: ${dir}/out.ndjson, format: json }
watch: { drift: { changes: [sites], trail: [audit] } }
`,
  );
  const env = { SECRET: clientSecret };
  const { exitCode, stderr } = await runSluice(['run', '--once', '-c', config], { env });
  expect(exitCode, stderr).toBe(0);
  const lines = readFileSync(join(dir, 'out.ndjson'), 'utf8').split('\n').slice(0, -1);
  expect(lines.length).toBe(8_001);
});

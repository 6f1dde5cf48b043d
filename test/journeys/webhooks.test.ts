// Webhooks from the sandbox to a file, by the real program: registered by its command, with forged, unsigned, replayed,
// redelivered and lost ones and a storm among them, the program killed again and again. What the sandbox has an answer of
// 2xx for is in the file, once for each delivery; nothing forged is; and what came both ways has one id.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { WebhookDelivery } from '../../src/sandbox/webhooks/sender.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { afterThisTest, freePort, tempDir, waitUntil } from '../support/temp.ts';

interface Event {
  readonly time: number;
  readonly metadata: {
    readonly uid: string;
    readonly log_name: string;
    readonly event_code?: string;
    readonly original_event_uid?: string;
  };
  readonly unmapped: { readonly delivery?: { readonly id: string; readonly event: string } };
}

const env = { HOOK_SECRET: 'sandbox-webhook-secret' };

async function started(rules: readonly object[]) {
  const dir = tempDir('webhooks-');
  const sandbox = await startSandbox({
    ...{ events: 20, logs: 0, rate: 0, firewallEveryS: 0 },
    faults: { rules: rules as [] },
    webhooks: { retryMs: 50 },
  });
  afterThisTest(() => sandbox.close());
  const listen = `127.0.0.1:${await freePort()}`;
  const { clientId, clientSecret } = sandbox.credentials;
  const config = join(dir, 'sluice.yaml');
  writeFileSync(
    config,
    `state: { dir: ${dir}/state }
upstreams:
  edge:
    api: unified
    ends: never
    base_url: ${sandbox.unifiedBaseUrl}
    allow_http: true
    auth: { client_id: ${clientId}, client_secret: "${clientSecret}", scope: "events:read webhooks:manage" }
sources:
  audit: { type: audit_events, upstream: edge, every: 10m }
  hooks: { type: webhooks, upstream: edge, listen: "${listen}", events: ["*"], secret: "\${env:HOOK_SECRET}" }
sinks:
  disk: { type: file, path: ${dir}/out.ndjson }
`,
  );
  const start = () => startSluice(['run', '-c', config], { env });
  const file = join(dir, 'out.ndjson');
  const events = (): readonly Event[] =>
    existsSync(file)
      ? readFileSync(file, 'utf8')
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line))
      : [];
  const brought = () => events().filter(({ metadata }) => metadata.log_name === 'hooks');
  return { sandbox, config, listen, start, events, brought };
}

const deliveryIds = (all: readonly Event[]) => all.map(({ unmapped }) => unmapped.delivery?.id);

test('deliveries from upstream are in the file, and the poller runs at once', async () => {
  const { sandbox, config, start, events, brought } = await started([
    { path: '/webhooks/**', every: 7, fault: 'forged' },
    { path: '/webhooks/**', every: 5, fault: 'unsigned' },
    { path: '/webhooks/**', every: 4, fault: 'replayed' },
    { path: '/webhooks/**', every: 3, fault: 'redelivered' },
    { path: '/webhooks/**', every: 11, fault: 'lost' },
  ]);
  const sluice = start();
  await waitUntil(() => events().length === 20, { what: () => sluice.stderr.join('\n') });

  const register = ['webhooks', 'register', '-c', config, '--source', 'hooks'];
  const [first, second] = [await runSluice(register, { env }), await runSluice(register, { env })];
  sandbox.control.grow('/v1/audit/events', 60);
  const settled = () =>
    sandbox
      .ledger()
      .deliveries()
      .filter(({ state }) => state !== 'waiting');
  await waitUntil(
    () => settled().length >= 60 && settled().length === sandbox.ledger().deliveries().length,
    {
      what: () => 'all deliveries to be settled',
    },
  );
  // The audit events of the sixty were due in ten minutes.
  await waitUntil(() => events().length - brought().length === 80, { what: () => 'the poller' });
  await waitUntil(() => brought().length >= genuine(settled()).size, { what: () => 'the file' });
  await sluice.kill('SIGTERM');

  expect([first.exitCode, second.exitCode, second.stdout]).toEqual([0, 0, first.stdout]);
  expect(deliveryIds(brought()).toSorted()).toEqual([...genuine(settled())].toSorted());
  expect(new Set(brought().map(({ metadata }) => metadata.uid)).size).toBe(brought().length);
  expect(settled().filter((one) => !one.genuine && one.answered !== 401)).toEqual([]);
  expect(settled().some(({ genuine }) => !genuine)).toBe(true);
  const polled = new Map(
    events()
      .filter(({ metadata }) => metadata.log_name === 'audit')
      .map(({ metadata }) => [metadata.original_event_uid, metadata.uid]),
  );
  for (const { metadata } of brought()) {
    expect(polled.get(metadata.original_event_uid)).toBeDefined();
    expect(polled.get(metadata.original_event_uid)).not.toBe(metadata.uid);
  }
});

/** Ids of what a receiver should have taken. */
function genuine(deliveries: readonly WebhookDelivery[]): ReadonlySet<string> {
  return new Set(
    deliveries.flatMap(({ id, genuine, state }) => (genuine && state === 'accepted' ? [id] : [])),
  );
}

test('nothing that was acknowledged is lost when sluice is killed, and nothing is there twice', async () => {
  const { sandbox, config, start, brought } = await started([
    { path: '/webhooks/**', every: 20, times: 2, fault: { kind: 'storm', count: 300 } },
  ]);
  await runSluice(['webhooks', 'register', '-c', config, '--source', 'hooks'], { env });
  const all = () => sandbox.ledger().deliveries();
  const accepted = () => all().filter(({ state }) => state === 'accepted').length;

  let sluice = start();
  for (let kill = 0; kill < 4; kill += 1) {
    sandbox.control.grow('/v1/audit/events', 30);
    const before = accepted();
    await waitUntil(() => accepted() >= before + 15, { what: () => sluice.stderr.join('\n') });
    await sluice.kill('SIGKILL');
    sluice = start();
  }
  await waitUntil(() => all().length >= 120 && all().every(({ state }) => state === 'accepted'), {
    what: () => `all to be accepted: ${accepted()} of ${all().length}`,
  });
  await waitUntil(() => brought().length >= all().length, { what: () => 'the file' });
  await sluice.kill('SIGTERM');

  expect(new Set(deliveryIds(brought()))).toEqual(new Set(all().map(({ id }) => id)));
  expect(brought()).toHaveLength(all().length);
});

test('the example that check shows is taken', async () => {
  const { config, start, brought, listen } = await started([]);
  const sluice = start();
  await waitUntil(() => sluice.stderr.some((line) => line.includes('listening for deliveries')), {
    what: () => sluice.stderr.join('\n'),
  });

  const { stdout } = await runSluice(['check', '-c', config], { env });
  const shown = stdout.slice(stdout.indexOf('signed event:') + 'signed event:'.length);
  const answer = execFileSync('sh', ['-c', shown], { env: { ...process.env, ...env } }).toString();

  expect(stdout).toContain('without timestamp_header no age is judged');
  expect(stdout).not.toContain(env.HOOK_SECRET);
  expect(shown).toContain(listen);
  expect(answer).toContain('200 OK');
  await waitUntil(() => brought().length === 1, { what: () => 'the file' });
  expect(brought()[0]).toMatchObject({
    metadata: { event_code: 'incident.created', original_event_uid: 'example-1' },
    unmapped: { delivery: { id: 'example-1', event: 'incident.created' } },
  });
  await sluice.kill('SIGTERM');
});

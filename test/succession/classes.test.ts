// OCSF classes at a cutover: rules of a SIEM name classes, so the records of a successor have those that the records of its
// predecessor have; and where they do not, it is reported before the cutover.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { runHere, startSluice } from '../support/cli.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const newPath = '/api/logs/v1/audit';

async function aSandbox(): Promise<Sandbox> {
  const sandbox = await startSandbox({ events: 50, rate: 0, firewallEveryS: 0, earlier: {} });
  afterThisTest(() => sandbox.close());
  return sandbox;
}

function upstreamsOf({
  credentials,
  unifiedBaseUrl,
  earlierBaseUrl,
  servicesBaseUrl,
}: Sandbox): object {
  const { clientId, clientSecret, apiKey } = credentials;
  const usual = { allow_http: true, ends: 'never' };
  const client = { client_id: clientId, client_secret: clientSecret };
  return {
    unified: {
      ...{ api: 'unified', base_url: unifiedBaseUrl, auth: { ...client, scope: 'events:read' } },
      ...usual,
    },
    earlier: { api: 'unified', base_url: earlierBaseUrl, auth: { api_key: apiKey }, ...usual },
    services: {
      ...{ api: 'services', base_url: servicesBaseUrl, ...usual },
      auth: { ...client, scope: 'urn:sandbox:api:public' },
    },
  };
}

const sources = {
  unified: { type: 'audit_events', upstream: 'unified', every: '200ms' },
  earlier: {
    ...{ type: 'audit_events', upstream: 'earlier', every: '200ms' },
    pagination: { style: 'page' },
  },
  next: { type: 'logs', upstream: 'services', path: newPath, every: '200ms' },
} as const;

interface Classed {
  readonly from: string;
  readonly id: string;
  readonly type: number;
  readonly place: unknown;
}

function eventsIn(file: string): readonly Classed[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  const events = lines.map((line) => JSON.parse(line));
  return events
    .filter(({ metadata }) => metadata.original_event_uid !== undefined)
    .map(({ type_uid: type, metadata, ...event }) => ({
      ...{ from: metadata.log_name, id: metadata.original_event_uid, type },
      // What a rule looks at, aside from the class.
      place: [event.severity_id, event.status_id, event.actor, event.src_endpoint, event.user],
    }));
}

async function aRun(of: object, sandbox: Sandbox) {
  const dir = tempDir();
  const config = join(dir, 'sluice.yaml');
  const out = join(dir, 'events.ndjson');
  const text = {
    ...{ state: { dir: join(dir, 'state') }, upstreams: upstreamsOf(sandbox), sources: of },
    sinks: { disk: { type: 'file', path: out } },
  };
  writeFileSync(config, JSON.stringify(text));
  return { config, events: () => eventsIn(out) };
}

test.each(['unified', 'earlier'] as const)(
  'after a cutover the classes of 50 audit records are those that the %s API gave',
  async (of) => {
    const sandbox = await aSandbox();
    const before = await aRun({ audit: sources[of] }, sandbox);
    const first = await runHere(['run', '-c', before.config, '--once', '--log-level', 'error']);
    // A record that waits longer than this is delivered as the old side gave it.
    const succeeds = { source: 'audit', overlap: '1s', patience: '1h' };
    const move = await aRun({ audit: sources[of], next: { ...sources.next, succeeds } }, sandbox);
    // Nothing is delivered by the old side, so each record has the new one's form.
    const old = await runHere(['run', '-c', move.config, '--once', '--log-level', 'error']);
    const oldEvents = move.events();
    const cut = await runHere(['succession', 'cutover', 'next', '-c', move.config, '--force']);
    const sluice = startSluice(['run', '-c', move.config]);
    sandbox.control.grow('/v1/audit/events', 50);
    await waitUntil(() => move.events().length === 100, { what: 'all records' });
    await sluice.kill();
    const again = await runHere(['run', '-c', before.config, '--once', '--log-level', 'error']);

    const lastOf = (events: readonly Classed[]) =>
      events.slice(50).toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const shown = (events: readonly Classed[]) => events.map(({ from: _, ...rest }) => rest);
    expect([first, old, cut, again].map(({ exitCode }) => exitCode)).toEqual([0, 0, 0, 0]);
    expect(oldEvents.map(({ from }) => from)).toEqual(Array(50).fill('audit'));
    expect(lastOf(move.events()).map(({ from }) => from)).toEqual(Array(50).fill('next'));
    expect(shown(lastOf(move.events()))).toEqual(shown(lastOf(before.events())));
  },
);

test('a class that changes at the cutover is reported beforehand, with the settings that the successor inherits', async () => {
  const sandbox = await aSandbox();
  const succeeds = { source: 'audit' };
  const next = { ...sources.next, succeeds };
  const reports = async (records: object) => {
    const { config } = await aRun(
      { audit: sources.unified, next: { ...next, ...records } },
      sandbox,
    );
    const [check, list] = [
      await runHere(['check', '-c', config]),
      await runHere(['succession', '-c', config]),
    ];
    const json = await runHere(['succession', '-c', config, '--json']);
    return { check: check.stdout, list: list.stdout, json: JSON.parse(json.stdout).sources[0] };
  };
  const inherited = await reports({});
  const written = await reports({ records: 'audit' });
  const logs = await reports({ records: 'log' });
  const mapped = await reports({
    mapping: { class: 'account_change', fields: { 'user.name': 'actor.name' } },
  });

  const audit = 'api_activity, entity_management, authentication';
  expect([inherited.json.classes, written.json.classes]).toEqual([null, null]);
  expect(inherited.check).toContain('set records: audit before you remove succeeds');
  expect(inherited.check + written.check).not.toContain('Base Events');
  expect(written.check).not.toContain('before you remove succeeds');
  expect(logs.json.classes).toEqual({ old: audit.split(', '), new: ['base_event'] });
  expect(mapped.json.classes).toMatchObject({ new: ['account_change'] });
  for (const { check, list } of [logs, mapped]) {
    expect(check).toContain(`the OCSF class of its events from ${audit} to `);
    expect(list).toContain(`next: the cutover changes the OCSF class of its events from ${audit}`);
  }
});

test('the proposed successor of audit events keeps their classes after succeeds is removed', async () => {
  const sandbox = await aSandbox();
  const alone = await aRun({ audit: { ...sources.earlier } }, sandbox);
  const text = readFileSync(alone.config, 'utf8');
  writeFileSync(alone.config, text.replaceAll('"never"', '"2026-12-31"'));
  const { stdout } = await runHere(['succession', 'plan', '-c', alone.config]);
  expect(stdout).toMatch(/audit_next:\n(.*\n)*?\s+records: audit/);
});

test('records: audit and a mapping contradict each other', async () => {
  const sandbox = await aSandbox();
  const mapping = { class: 'base_event', fields: {} };
  const { config } = await aRun({ next: { ...sources.next, records: 'audit', mapping } }, sandbox);
  const { exitCode, stderr } = await runHere(['check', '-c', config]);

  expect(exitCode).toBe(2);
  expect(stderr).toContain('records: audit and mapping both set the OCSF class');
});

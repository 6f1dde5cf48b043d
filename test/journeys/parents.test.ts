// Timelines and objects that are requested by the ids of other records, from the sandbox to a file by the real program,
// which is killed again and again meanwhile: each entry once, every object in its final state.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { hasShared, loadCheck, type Verdict } from '../normalise/ocsf.ts';
import { runHere, startSluice } from '../support/cli.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const tickets = '/api/ticketing/v1/companies/c-1/tickets';
const incidents = '/v1/mc/incidents';
const investigations = '/v1/intelligence/investigations';
const changes = '/api/self-service/v1/companies/c-1/changes';

interface Written {
  readonly class_uid: number;
  readonly status?: string;
  readonly activity_name?: string;
  readonly metadata: {
    readonly uid: string;
    readonly log_name: string;
    readonly original_event_uid?: string;
    readonly correlation_uid?: string;
    readonly event_code?: string;
  };
  readonly api?: { readonly operation?: string };
  readonly resources?: readonly { readonly uid?: string }[];
  readonly unmapped?: { readonly evidence?: readonly unknown[]; readonly details?: object };
}

let check: ((event: unknown) => Verdict) | null = null;

beforeAll(async () => {
  if (hasShared) check = await loadCheck();
});

function configFor(sandbox: Sandbox, dir: string): string {
  const config = join(dir, 'sluice.yaml');
  const { clientId, clientSecret, unifiedScope, servicesScope } = sandbox.credentials;
  const upstream = (api: string, base: string, scope: string) =>
    `{ api: ${api}, base_url: "${base}", allow_http: true, ends: never, auth: { client_id: ${clientId}, client_secret: ${clientSecret}, scope: "${scope}" }`;
  const these = (path: string) => `each: { ids: ${JSON.stringify(some(sandbox, path))} }`;
  const ofAudit = `each: { of: audit, id: resource.id, where: 'event.api.operation.startsWith("incident")' }`;
  const how = (api: string) => `upstream: ${api}, every: 300ms`;
  writeFileSync(
    config,
    `state: { dir: ${dir}/state }
upstreams:
  edge: ${upstream('unified', sandbox.unifiedBaseUrl, unifiedScope)} }
  ops: ${upstream('services', sandbox.servicesBaseUrl, servicesScope)}, companies: [c-1] }
sources:
  audit: { type: audit_events, ${how('edge')} }
  tickets: { type: tickets, ${how('ops')}, confirm_after: 0s, ignore: [] }
  entries: { type: ticket_events, ${how('ops')}, each: { of: tickets, id: ticket_id } }
  past: { type: incident_timeline, ${how('edge')}, ${ofAudit} }
  timelines: { type: incident_timeline, ${how('edge')}, ${these(incidents)} }
  findings: { type: investigations, ${how('edge')}, ${these(investigations)} }
  outputs: { type: changes, ${how('ops')}, ${these(changes)} }
sinks:
  disk: { type: file, path: ${dir}/events.ndjson }
`,
  );
  return config;
}

function written(dir: string): readonly Written[] {
  const lines = readFileSync(join(dir, 'events.ndjson'), { encoding: 'utf8', flag: 'a+' });
  return lines
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Written);
}

function entriesOf(dir: string, source: string): readonly string[] {
  return written(dir)
    .filter(({ metadata }) => metadata.log_name === source)
    .map(({ metadata }) => `${metadata.correlation_uid} ${metadata.original_event_uid}`)
    .toSorted();
}

/** Those that are named in the config. */
function some(sandbox: Sandbox, path: string): readonly string[] {
  return [...sandbox.ledger().collection(path).entities().keys()].slice(0, 6);
}

/** The entries that timelines have in the end. */
function timelines(sandbox: Sandbox, path: string, ids: readonly string[]): readonly string[] {
  const collection = sandbox.ledger().collection(path);
  return ids
    .flatMap((id) =>
      collection.timeline(id).map((entry) => `${id} ${(entry as { id: string }).id}`),
    )
    .toSorted();
}

test('timelines and objects come out whole and once, whenever the program is killed', async () => {
  const dir = tempDir();
  const sandbox = await startSandbox({ rate: 0, events: 300, companies: ['c-1'] });
  afterThisTest(() => sandbox.close());
  const config = configFor(sandbox, dir);
  const statusView = (path: string) => [...sandbox.ledger().collection(path).entities().keys()];
  const [refused = ''] = statusView(tickets).slice(-1);
  const touched = {
    incidents: some(sandbox, incidents),
    investigations: some(sandbox, investigations),
    changes: some(sandbox, changes),
  };
  sandbox.control.setFaults({
    rules: [
      { path: `${tickets}/${refused}/events`, fault: 403 },
      { path: '/**', every: 9, times: 40, fault: 503 },
    ],
  });
  const update = (path: string, id: string) => sandbox.control.change(path, { op: 'updated', id });

  let running = startSluice(['run', '-c', config]);
  for (let step = 0; step < 6; step += 1) {
    for (const id of statusView(tickets).slice(step, step + 8)) update(tickets, id);
    for (const id of touched.incidents) update(incidents, id);
    for (const id of touched.investigations) update(investigations, id);
    for (const id of touched.changes) if (step < 4) update(changes, id);
    await new Promise((resolve) => setTimeout(resolve, 700 + step * 150));
    await running.kill('SIGKILL');
    await running.exited;
    running = startSluice(['run', '-c', config]);
  }
  const open = statusView(tickets).filter((id) => id !== refused);
  const requested = () => [
    ...timelines(sandbox, tickets, open),
    ...timelines(sandbox, incidents, touched.incidents),
  ];
  const got = () => [...entriesOf(dir, 'entries'), ...entriesOf(dir, 'timelines')];
  const lost = () =>
    written(dir).filter(({ metadata }) => metadata.event_code === 'source.parent_lost');
  const lastOf = (source: string, id: string) =>
    written(dir).findLast(
      ({ metadata }) => metadata.log_name === source && metadata.correlation_uid === id,
    );
  const evidenceIn = (id: string) => lastOf('findings', id)?.unmapped?.evidence;
  const evidence = (id: string) =>
    (sandbox.ledger().collection(investigations).entities().get(id) as { evidence: unknown[] })
      .evidence;
  const named = () =>
    written(dir).flatMap(({ api, resources = [] }) =>
      api?.operation?.startsWith('incident') === true ? resources.map(({ uid }) => uid) : [],
    );
  const past = () =>
    written(dir)
      .filter(({ metadata }) => metadata.log_name === 'past')
      .map(({ metadata }) => metadata.correlation_uid);
  const hasAll = (id: string) => isDeepStrictEqual(evidenceIn(id), evidence(id));
  const isThere = () =>
    got().length >= requested().length &&
    lost().length > 0 &&
    new Set(past()).size >= new Set(named()).size &&
    touched.investigations.every(hasAll) &&
    touched.changes.every((id) =>
      /COMPLETED|FAILED/.test(lastOf('outputs', id)?.activity_name ?? ''),
    );
  await waitUntil(isThere, {
    what: () =>
      `${got().length} of ${requested().length} entries, ${lost().length} lost; ${running.stderr.slice(-5).join('\n')}`,
  });
  const shown = async () => (await runHere(['status', '-c', config])).stdout;
  const parents = `entries/c-1: ${statusView(tickets).length} parents`;
  // All may be there before this process has polled once.
  await waitUntil(async () => (await shown()).includes(parents), { what: parents, everyMs: 500 });
  await running.kill('SIGTERM');
  await running.exited;

  expect(got()).toEqual(requested());
  expect(new Set(named()).size).toBeGreaterThan(5);
  expect(new Set(past())).toEqual(new Set(named()));
  for (const id of touched.investigations) {
    expect(evidenceIn(id)).toEqual(evidence(id));
    const reported = written(dir).filter(({ metadata }) => metadata.correlation_uid === id);
    expect(reported.map((event) => event.activity_name)).toEqual(
      reported.map((_, at) => (at === 0 ? 'Create' : 'Update')),
    );
  }
  expect(lost()).toHaveLength(1);
  const uids = written(dir).map(({ metadata }) => metadata.uid);
  expect(new Set(uids).size).toBe(uids.length);
  const flaws = written(dir).flatMap((event) => {
    const { errors = [], warnings = [] } = check?.(event) ?? {};
    return [...errors, ...warnings];
  });
  expect(flaws).toEqual([]);
  const classes = new Map(written(dir).map((e) => [e.metadata.log_name, e.class_uid]));
  expect(['entries', 'past', 'findings', 'outputs'].map((one) => classes.get(one))).toEqual([
    3004, 3004, 2004, 3004,
  ]);
});

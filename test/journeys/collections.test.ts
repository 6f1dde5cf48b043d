// Every resource that is served whole, from the sandbox to a file and to Kafka by the real program: what there is at the
// start, and each change after it, once at both, with the entity before and after as upstream had it.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { type Sandbox, type SandboxChange, startSandbox } from '../../src/sandbox/sandbox.ts';
import { hasShared, loadCheck, type Verdict } from '../normalise/ocsf.ts';
import { startSluice } from '../support/cli.ts';
import { consumeAll, kafkaBrokers, newTopic } from '../support/kafka.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const company = '/companies/{company_id}';

/** Each source with the path of its list; tickets report no removal. */
const resources: Readonly<Record<string, string>> = {
  sites: '/v1/sites',
  web_categories: '/v1/web/categories',
  company: `/api/fleet/v1${company}`,
  hosts: `/api/fleet/v1${company}/hosts`,
  block_list: `/api/threat-protection/v1${company}/block-list-entries`,
  exclusion_list: `/api/threat-protection/v1${company}/exclusion-list-entries`,
  tickets: `/api/ticketing/v1${company}/tickets`,
};
const companies = ['c-1', 'x/../y z'];

interface Written {
  readonly class_uid: number;
  readonly metadata: {
    readonly uid: string;
    readonly event_code: string;
    readonly log_name: string;
    readonly tenant_uid?: string;
  };
  readonly entity?: { readonly uid?: string; readonly name?: string; readonly data?: unknown };
  readonly entity_result?: { readonly data?: unknown };
  readonly device?: { readonly uid?: string };
}

let check: ((event: unknown) => Verdict) | null = null;

beforeAll(async () => {
  await kafkaBrokers();
  if (hasShared) check = await loadCheck();
}, 600_000);

function pathsOf(type: string): readonly string[] {
  const path = resources[type] ?? '';
  return path.includes('{')
    ? companies.map((id) => path.replace('{company_id}', encodeURIComponent(id)))
    : [path];
}

async function configFor(sandbox: Sandbox, dir: string, topic: string): Promise<string> {
  const config = join(dir, 'sluice.yaml');
  const { clientId, clientSecret, unifiedScope, servicesScope } = sandbox.credentials;
  const upstream = (api: string, base: string, scope: string) =>
    `{ api: ${api}, base_url: "${base}", allow_http: true, ends: never, auth: { client_id: ${clientId}, client_secret: ${clientSecret}, scope: "${scope}" }`;
  const how = 'every: 500ms, confirm_after: 0s, settle: 1s, baseline: full';
  const source = (type: string) =>
    `  ${type}: { type: ${type}, upstream: ${resources[type]?.startsWith('/v1') ? 'edge' : 'ops'}, ${how} }`;
  writeFileSync(
    config,
    `state: { dir: ${dir}/state }
upstreams:
  edge: ${upstream('unified', sandbox.unifiedBaseUrl, unifiedScope)} }
  ops: ${upstream('services', sandbox.servicesBaseUrl, servicesScope)}, companies: ${JSON.stringify(companies)} }
sources:
${Object.keys(resources).map(source).join('\n')}
  other: { type: collection, upstream: edge, path: /web/categories, kind: other, ${how} }
sinks:
  disk: { type: file, path: ${dir}/events.ndjson }
  lake: { type: kafka, brokers: ${JSON.stringify(await kafkaBrokers())}, topic: ${topic}, exactly_once: true }
`,
  );
  return config;
}

/** What is in the file by now; a torn last line is left out. */
function written(dir: string): readonly Written[] {
  const lines = readFileSync(join(dir, 'events.ndjson'), { encoding: 'utf8', flag: 'a+' });
  return lines
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Written);
}

function codes(events: readonly Written[]): readonly string[] {
  return events
    .map(({ metadata, entity, device }) => `${metadata.event_code} ${entity?.uid ?? device?.uid}`)
    .toSorted();
}

/** One change of each kind to each resource; a company itself can only change. */
function changeAll(sandbox: Sandbox): readonly SandboxChange[] {
  return Object.keys(resources).flatMap((type) =>
    pathsOf(type).flatMap((path, no) => {
      const statusView = [...sandbox.ledger().collection(path).entities().keys()];
      const change = (op: SandboxChange['op'], id?: string) =>
        sandbox.control.change(path, { op, ...(id !== undefined && { id }) });
      const updated = change('updated');
      return type === 'company'
        ? updated
        : [...updated, ...change('created', `${type}-${no}`), ...change('deleted', statusView[1])];
    }),
  );
}

test('every entity and every change of every resource is once in the file and in Kafka', async () => {
  const dir = tempDir();
  const sandbox = await startSandbox({ rate: 0, events: 1, companies });
  afterThisTest(() => sandbox.close());
  const ledger = sandbox.ledger();
  const topic = await newTopic('collections');
  const config = await configFor(sandbox, dir, topic);
  const categories = '/v1/web/categories';
  const atStart = Object.keys(resources).flatMap((type) =>
    pathsOf(type).flatMap((path) => {
      const { kind, entities } = ledger.collection(path);
      return [...entities().keys()].map((id) => `${kind}.state ${id}`);
    }),
  );
  const others = [...ledger.collection(categories).entities().keys()].map(
    (id) => `other.state ${id}`,
  );
  const running = startSluice(['run', '-c', config]);
  const until = (count: number) =>
    waitUntil(() => !running.running || written(dir).length >= count, {
      what: () =>
        `${count} events in the file, which has ${written(dir).length}; stderr: ${running.stderr.slice(-5).join('\n')}`,
    });

  await until(atStart.length + others.length);
  const first = written(dir);
  // One answer in three fails for a while: what a reading does not show is not gone.
  sandbox.control.setFaults({ rules: [{ path: '/**', every: 3, times: 60, fault: 503 }] });
  const changes = changeAll(sandbox);
  const reported = changes.filter(({ kind, op }) => kind !== 'ticket' || op !== 'deleted');
  const again = reported.filter(({ path }) => path === categories);
  await until(first.length + reported.length + again.length);
  await running.kill('SIGTERM');
  await running.exited;

  expect(codes(first)).toEqual([...atStart, ...others].toSorted());
  const later = written(dir).slice(first.length);
  expect(codes(later)).toEqual(
    [
      ...reported.map(({ kind, op, id }) => `${kind}.${op} ${id}`),
      ...again.map(({ op, id }) => `other.${op} ${id}`),
    ].toSorted(),
  );
  for (const { metadata, entity, entity_result: result } of later) {
    const code = metadata.event_code.replace('other.', 'web_category.');
    const tenant = metadata.tenant_uid ?? null;
    const change = reported.find(
      (one) => one.id === entity?.uid && one.company === tenant && `${one.kind}.${one.op}` === code,
    );
    if (change === undefined) throw new Error(`nothing is known of ${metadata.event_code}`);
    const [before, after] = ledger.collection(change.path).sidesOf(change);
    expect([entity?.data, result?.data]).toEqual([before ?? after, after ?? undefined]);
  }
  const flaws = written(dir).flatMap((event) => {
    const { errors = [], warnings = [] } = check?.(event) ?? {};
    return [...errors, ...warnings];
  });
  expect(flaws).toEqual([]);
  expect(new Set(first.filter((e) => e.device).map((e) => e.class_uid))).toEqual(new Set([5001]));

  const uids = written(dir).map(({ metadata }) => metadata.uid);
  const inKafka = await consumeAll(topic, { until: uids.length });
  expect(new Set(uids).size).toBe(uids.length);
  expect(inKafka.map(({ headers }) => headers.uid).toSorted()).toEqual(uids.toSorted());
});

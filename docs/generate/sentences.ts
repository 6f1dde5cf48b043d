// The table with one sentence for each kind of event, made by the normaliser and the formats themselves.

import { wholeSentence } from '../../formats/texts.ts';
import type { Mapping } from '../../src/contracts/config.ts';
import type { PageContext, RecordKind } from '../../src/contracts/event.ts';
import type { Json } from '../../src/contracts/json.ts';
import { compileNormaliser } from '../../src/normalise/normalise.ts';
import { table } from './settings-table.ts';

/** One kind of event with a record. */
interface Sample {
  readonly kind: string;
  readonly of: RecordKind;
  readonly source: string;
  readonly record: Json;
  readonly mapping?: Mapping;
}

const admin = { type: 'admin', id: 'usr-17', name: 'Anna Schmidt' };
const ends = { client_ip: '10.1.1.1', server_ip: '203.0.113.9' };
const addresses = { 'src_endpoint.ip': 'client_ip', 'dst_endpoint.ip': 'server_ip' };
const observed = { observed_at: '2026-03-04T05:06:07Z' };
const rule = { entity_kind: 'rule', entity_id: 'r-7', entity_name: 'allow dns', ...observed };

/** Every kind of event that sluice writes. */
export const samples: readonly Sample[] = [
  audit('an administrator’s action', {
    ...{ action: 'policy.update', actor: admin, source_ip: '203.0.113.7', result: 'success' },
    resource: { type: 'policy', id: 'pol-9', name: 'Default policy' },
    summary: 'Policy updated',
  }),
  audit('an AI agent’s action', {
    ...{ action: 'agent.action.executed', source_ip: '192.0.2.7', result: 'success' },
    actor: { type: 'agent', id: 'ag-1', name: 'triage-agent' },
    resource: { type: 'agent_run', id: 'run_1', name: 'tier 1 analyst' },
  }),
  audit('an action without an address', {
    ...{ action: 'site.delete', actor: admin, result: 'failure' },
    resource: { type: 'site', id: 's-1', name: 'Zurich' },
  }),
  audit('a login', {
    ...{ action: 'session.login', actor: admin, source_ip: '203.0.113.7', result: 'failure' },
    reason: 'wrong password',
  }),
  change('a created object', { ...rule, change: 'created', after: { action: 'accept' } }),
  change('a changed object', {
    ...{ ...rule, change: 'updated', changed: ['action'] },
    ...{ before: { action: 'drop' }, after: { action: 'accept' } },
  }),
  change('a deleted object', { ...rule, change: 'deleted', before: { action: 'drop' } }),
  change('an object at the first reading', { ...rule, change: 'state', after: { action: 'drop' } }),
  change('the first reading of a collection', {
    ...{ change: 'baseline', entity_kind: 'rule', count: 12, ...observed },
  }),
  log('a flow', { ...ends, action: 'deny' }, 'network_activity', {
    ...addresses,
    action: 'action',
  }),
  log(
    'a web request',
    { ...ends, host: 'files.example', path: '/a.zip', method: 'GET' },
    'http_activity',
    {
      ...addresses,
      'http_request.url.hostname': 'host',
      'http_request.url.path': 'path',
      'http_request.http_method': 'method',
    },
  ),
  log('a DNS query', { ...ends, query: 'files.example' }, 'dns_activity', {
    ...addresses,
    'query.hostname': 'query',
  }),
  log('a finding', { ...ends, signature: 'ET SCAN Nmap', action: 'drop' }, 'detection_finding', {
    ...{ 'finding_info.title': 'signature', disposition: 'action' },
    ...{ 'evidences.src_endpoint.ip': 'client_ip', 'evidences.dst_endpoint.ip': 'server_ip' },
  }),
  {
    kind: 'a log without a mapping',
    of: 'log',
    source: 'flows',
    record: { ...ends, event_type: 'flow', user: 'anna' },
  },
  { kind: 'a log without known names', of: 'log', source: 'flows', record: { a: 1 } },
  own('a condition of a source', 'source.silent', { message: 'no new record for 2 hours' }),
  own('a change without an audit event', 'change.unexplained', {
    message: 'site s-1 updated',
    details: { entity_kind: 'site', entity_id: 's-1', operation: 'updated' },
  }),
];

function audit(kind: string, record: Json): Sample {
  return { kind, of: 'audit', source: 'audit', record };
}

function change(kind: string, record: Json): Sample {
  return { kind, of: 'drift', source: 'firewall', record };
}

function log(
  kind: string,
  record: Json,
  ofClass: Mapping['class'],
  fields: Mapping['fields'],
): Sample {
  return { kind, of: 'log', source: 'flows', record, mapping: { class: ofClass, fields } };
}

function own(kind: string, condition: string, members: { readonly [name: string]: Json }): Sample {
  const record = { condition, source: 'sites', ...observed, ...members };
  return { kind, of: 'condition', source: 'sites', record };
}

/** The sentence of a sample. */
export function sentenceOf({ of, source, record, mapping }: Sample): string {
  const context: PageContext = {
    source,
    stream: source,
    kind: of,
    fetchedAt: Date.UTC(2026, 2, 4),
  };
  const normalise = compileNormaliser(of, { time: [], id: null, ...(mapping && { mapping }) });
  return wholeSentence({ ocsf: normalise(record, 'f'.repeat(64), context) });
}

/** One line for each kind. */
export function sentenceTable(): string {
  return table(
    ['kind of event', 'sentence'],
    samples.map((sample) => [sample.kind, `\`${sentenceOf(sample)}\``]),
  );
}

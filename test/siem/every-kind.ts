// Events of every kind that a SIEM shows: audit records and attacks, changes of a configuration, tickets, network flows,
// web requests, intrusions, and conditions of the export. The log sources have the mappings that docs/siem recommends.

import type { Event } from '../../src/contracts/event.ts';
import type { JsonObject } from '../../src/contracts/json.ts';
import { compileNormaliser, type Mapping } from '../../src/normalise/normalise.ts';
import { type LogKind, logRecords } from '../../src/sandbox/log-records.ts';
import { anEvent } from '../support/an-event.ts';
import { judgedEvents } from './planted-events.ts';

const endpoints = {
  'src_endpoint.ip': 'client_ip',
  'src_endpoint.port': 'client_port',
  'dst_endpoint.ip': 'server_ip',
  'dst_endpoint.port': 'port',
};

/** Mappings of the log lists of the sandbox, as the pages in docs/siem show them. */
export const logMappings = {
  flow: {
    class: 'network_activity',
    fields: {
      ...endpoints,
      'connection_info.protocol_name': 'protocol',
      'traffic.bytes_out': 'bytes_sent',
      'traffic.bytes_in': 'bytes_received',
      action: 'action',
      'firewall_rule.name': 'rule.name',
      'firewall_rule.uid': 'rule.id',
    },
  },
  ids: {
    class: 'detection_finding',
    fields: {
      'finding_info.uid': 'signature_id',
      'finding_info.title': 'signature',
      'evidences.src_endpoint.ip': 'client_ip',
      'evidences.src_endpoint.port': 'client_port',
      'evidences.dst_endpoint.ip': 'server_ip',
      'evidences.dst_endpoint.port': 'port',
      disposition: 'action',
    },
  },
} as const satisfies Partial<Record<LogKind, Mapping>>;

const firstMs = Date.UTC(2026, 10, 26);

/** All of them, with uids of their own; the count is that of the audit records. */
export async function everyKind(auditRecords = 3_000): Promise<readonly Event[]> {
  const audit = (await judgedEvents(auditRecords)).map(({ event }) => event);
  const others = [...changes(), ...logs('flow'), ...logs('ids')];
  return [...audit, ...others.map((make, at) => make(anEvent({ offset: audit.length + at })))];
}

type Make = (blank: Event) => Event;

/** Verdicts of firewalls that the sandbox does not draw. */
const rareActions = ['drop', 'reset', 'reject', 'monitor'];

function logs(kind: keyof typeof logMappings): readonly Make[] {
  const text = logRecords('c-1', kind);
  const normalise = compileNormaliser('log', {
    time: ['timestamp'],
    id: 'id',
    mapping: logMappings[kind],
  });
  return Array.from({ length: 50 }, (_, index) => {
    const drawn = text({ seed: 11, index, timeMs: firstMs + index * 1_000, id: `${index}` });
    const action = kind === 'flow' ? rareActions[index] : undefined;
    const raw = action === undefined ? drawn : JSON.stringify({ ...JSON.parse(drawn), action });
    return (blank) => {
      const ocsf = normalise(JSON.parse(raw), blank.uid, { ...blank.context, kind: 'log' });
      return { ...blank, raw: Buffer.from(raw), ocsf };
    };
  });
}

const rule = {
  id: 'fr-1',
  name: 'allow-web',
  enabled: true,
  action: 'accept',
  source: ['any'],
  destination: ['any'],
  services: ['any'],
};
const ticket = { id: 'T-7', subject: 'tunnel down', status: 'open', priority: 'high' };
const observed = {
  generation: 2,
  epoch: 'e',
  entity_version: 2,
  observed_at: '2026-11-26T10:00:00Z',
};

const changeRecords: readonly JsonObject[] = [
  { change: 'created', entity_kind: 'rule', entity_id: 'fr-1', after: rule },
  {
    change: 'updated',
    entity_kind: 'rule',
    entity_id: 'fr-1',
    changed: ['enabled'],
    before: rule,
    after: { ...rule, enabled: false },
  },
  { change: 'deleted', entity_kind: 'object', entity_id: 'obj-1', before: { name: 'lab' } },
  { change: 'created', entity_kind: 'ticket', entity_id: 'T-7', after: ticket },
  {
    change: 'updated',
    entity_kind: 'ticket',
    entity_id: 'T-7',
    changed: ['status'],
    before: ticket,
    after: { ...ticket, status: 'closed' },
  },
  { change: 'state', entity_kind: 'policy', entity_id: 'p-1', after: { name: 'edge policy' } },
];

function changes(): readonly Make[] {
  const normalise = compileNormaliser('drift', { time: [], id: null });
  return changeRecords.map((record) => (blank) => {
    const whole = { ...observed, ...record };
    const ocsf = normalise(whole, blank.uid, { ...blank.context, kind: 'drift' });
    return { ...blank, raw: Buffer.from(JSON.stringify(whole)), ocsf };
  });
}

// Every source of both APIs in one config, into a file and a Kafka topic, with the locations of its records in the
// sandbox. Times are short, so that a change is reported within seconds.

import type { Sandbox } from '../../src/sandbox/sandbox.ts';

const ofCompany = '/companies/{company_id}';

export const companies = ['c-1', 'c-2'] as const;

/** What a source reads, by how the ledger knows it. */
export interface Planted {
  readonly source: string;
  readonly as: 'list' | 'collection' | 'timeline' | 'object';
  /** With `{company_id}` where it is a company's. */
  readonly path: string;
}

/** All but webhooks and the firewall, which are accounted for otherwise. */
export const planted: readonly Planted[] = [
  { source: 'audit', as: 'list', path: '/v1/audit/events' },
  { source: 'events', as: 'list', path: `/api/logs/v1${ofCompany}/events` },
  { source: 'web', as: 'list', path: `/api/logs/v1${ofCompany}/web` },
  { source: 'sites', as: 'collection', path: '/v1/sites' },
  { source: 'web_categories', as: 'collection', path: '/v1/web/categories' },
  { source: 'company', as: 'collection', path: `/api/fleet/v1${ofCompany}` },
  { source: 'hosts', as: 'collection', path: `/api/fleet/v1${ofCompany}/hosts` },
  {
    source: 'block_list',
    as: 'collection',
    path: `/api/threat-protection/v1${ofCompany}/block-list-entries`,
  },
  {
    source: 'exclusion_list',
    as: 'collection',
    path: `/api/threat-protection/v1${ofCompany}/exclusion-list-entries`,
  },
  { source: 'tickets', as: 'collection', path: `/api/ticketing/v1${ofCompany}/tickets` },
  { source: 'ticket_events', as: 'timeline', path: `/api/ticketing/v1${ofCompany}/tickets` },
  { source: 'incidents', as: 'timeline', path: '/v1/mc/incidents' },
  { source: 'investigations', as: 'object', path: '/v1/intelligence/investigations' },
  { source: 'changes', as: 'object', path: `/api/self-service/v1${ofCompany}/changes` },
];

/** Where the config stands for. */
export interface ConfigParts {
  readonly dir: string;
  readonly sandbox: Sandbox;
  readonly brokers: readonly string[];
  readonly topic: string;
  readonly hookPort: number;
}

/** The file that the events are in. */
export const fileIn = (dir: string) => `${dir}/events.ndjson`;

/** The text of `sluice.yaml`. */
export function configText({ dir, sandbox, brokers, topic, hookPort }: ConfigParts): string {
  const { clientId, clientSecret, unifiedScope, servicesScope } = sandbox.credentials;
  const auth = (scope: string) =>
    `auth: { client_id: ${clientId}, client_secret: ${clientSecret}, scope: "${scope}" }`;
  const reading = 'every: 1s, lookback: 1m, rewind_every: 20s, reconcile_every: 30s';
  const whole = 'every: 2s, confirm_after: 1s, settle: 4s, baseline: full';
  const each = (of: string, id: string, where = '') =>
    `every: 1s, sweep: 30s, each: { of: ${of}, id: ${id}${where === '' ? '' : `, where: '${where}'`} }`;
  const named = (name: string) => `event.api.operation.startsWith("${name}")`;
  const logs = `/api/logs/v1${ofCompany}`;
  return `state: { dir: ${dir}/state }
upstreams:
  edge: { api: unified, ends: never, base_url: "${sandbox.unifiedBaseUrl}", allow_http: true, timeout: 10s, ${auth(unifiedScope)} }
  ops: { api: services, base_url: "${sandbox.servicesBaseUrl}", allow_http: true, timeout: 10s, companies: [${companies}], ${auth(servicesScope)} }
sources:
  audit: { type: audit_events, upstream: edge, ${reading} }
  events: { type: logs, upstream: ops, path: "${logs}/events", ${reading} }
  web: { type: logs, upstream: ops, path: "${logs}/web", pagination: { style: offset }, ${reading} }
  sites: { type: sites, upstream: edge, ${whole} }
  web_categories: { type: web_categories, upstream: edge, ${whole} }
  company: { type: company, upstream: ops, ${whole} }
  hosts: { type: hosts, upstream: ops, ${whole}, ignore: [last_seen, updated_at] }
  block_list: { type: block_list, upstream: ops, ${whole} }
  exclusion_list: { type: exclusion_list, upstream: ops, ${whole} }
  tickets: { type: tickets, upstream: ops, ${whole} }
  firewall: { type: firewall, upstream: ops, ${whole} }
  ticket_events: { type: ticket_events, upstream: ops, ${each('tickets', 'ticket_id')} }
  incidents: { type: incident_timeline, upstream: edge, ${each('audit', 'resource.id', named('incident'))} }
  investigations: { type: investigations, upstream: edge, ${each('audit', 'resource.id', named('investigation'))} }
  changes: { type: changes, upstream: ops, ${each('block_list', 'change_id')} }
  hooks: { type: webhooks, upstream: edge, listen: "127.0.0.1:${hookPort}", url: "http://127.0.0.1:${hookPort}/webhooks", secret: ${sandbox.webhookSecret}, events: ["incident.*", "site.*", "ticket.*"] }
sinks:
  disk: { type: file, path: ${fileIn(dir)}, format: { type: json, raw_data: true } }
  lake: { type: kafka, brokers: ${JSON.stringify(brokers)}, topic: ${topic}, exactly_once: true }
`;
}

// The config that a torture run gives the program: every kind of source, every sink that keeps anything, each setting that
// has to do with time made short.

import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import type { Receivers } from './receivers.ts';

/** What a config is made from. */
export interface ConfigParts {
  readonly dir: string;
  readonly activeFile: string;
  readonly sandbox: Sandbox;
  readonly receivers: Receivers;
}

/** Bytes after which the file sink begins a new segment. */
const rotateBytes = '128KiB';

/** The text of `sluice.yaml`. */
export function configText({ dir, activeFile, sandbox, receivers }: ConfigParts): string {
  const { siem, archive, upstream, kafka, otel, post, trust } = receivers;
  const at = (url: string) => url.replace(`:${sandbox.port}`, `:${upstream.port}`);
  const { clientId } = sandbox.credentials;
  const auth = `client_id: ${clientId}, client_secret: "\${env:EDGE_SECRET}"`;
  const reading = 'every: 1s, lookback: 30s, rewind_every: 5s, reconcile_every: 5s';
  const kafkaSink = (name: string, more: string) =>
    `{ type: kafka, brokers: ["${kafka.addresses.plain}"], topic: ${name}, format: json, exactly_once: true, transactional_id: ${name}, timeout: 5s, ${more}, ${retry} }`;
  // What a busy machine is late with is no repeat without a cause.
  const patient = '20s';
  const retry = 'retry: { min: 100ms, max: 2s }';
  return `state: { dir: ${dir}/state }
upstreams:
  edge:
    api: unified
    ends: never
    base_url: ${at(sandbox.unifiedBaseUrl)}
    allow_http: true
    timeout: 2s
    auth: { ${auth}, scope: events:read }
  ops:
    api: services
    base_url: ${at(sandbox.servicesBaseUrl)}
    allow_http: true
    timeout: 2s
    auth: { ${auth}, scope: "urn:sandbox:api:public" }
    companies: [c-1, c-2]
sources:
  audit: { type: audit_events, upstream: edge, page_limit: 100, ${reading} }
  events: { type: logs, upstream: ops, page_limit: 100, ${reading}, path: "/api/logs/v1/companies/{company_id}/events" }
  web: { type: logs, upstream: ops, page_limit: 100, ${reading}, path: "/api/logs/v1/companies/{company_id}/web", pagination: { style: offset } }
  alerts: { type: logs, upstream: ops, ${reading}, path: "/api/logs/v1/companies/{company_id}/all", pagination: { style: none } }
  firewall: { type: firewall, upstream: ops, every: 2s, confirm_after: 0s, settle: 1s, removals_after: 2, baseline: full }
sinks:
  siem: { type: syslog, address: "tls://127.0.0.1:${siem.port}", format: { type: cef, vendor: Acme, product: Edge }, max_message: 60000, tls: { ca_file: ${trust.siem.caFile} }, ${retry} }
  archive: { type: syslog, address: "tcp://127.0.0.1:${archive.port}", format: json, max_message: 60000, resend_window: 500ms, confirm: close, ${retry} }
  lake: ${kafkaSink('lake', 'driver: kafkajs, compression: gzip')}
  river: ${kafkaSink('river', 'driver: platformatic, compression: gzip')}
  otel: { type: otlp, url: "${otel.url}", format: { type: otel, raw_data: true }, compression: gzip, timeout: ${patient}, batch: { events: 200, wait: 200ms }, ${retry} }
  post: { type: http, url: "${post.url}/in", format: { type: json, raw_data: true }, tls: { ca_file: ${trust.post.caFile} }, timeout: ${patient}, batch: { events: 200, wait: 200ms }, ${retry} }
  disk: { type: file, path: ${activeFile}, format: json, rotate: { bytes: ${rotateBytes} }, compress: gzip, batch: { wait: 50ms }, ${retry} }
shutdown: { timeout: 4s }
`;
}

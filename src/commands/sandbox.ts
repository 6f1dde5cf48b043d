// `sluice sandbox`: both upstream APIs on loopback, to try sluice out and to rehearse faults. It prints a config that
// reads from it, ready to paste. The credentials are the sandbox's own and open nothing else.

import { readFileSync } from 'node:fs';
import { whyUnreadable } from '../config/index.ts';
import { ExportError, UsageError } from '../contracts/index.ts';
import { listenForShutdown } from '../run/index.ts';
import {
  type FaultScript,
  FaultScriptError,
  parseFaultScript,
  type Sandbox,
  startSandbox,
} from '../sandbox/sandbox.ts';
import { defineCommand } from './shared/command.ts';
import { movingLines } from './shared/moving-config.ts';

/** Serves until a signal. */
export const sandbox = defineCommand({
  name: 'sandbox',
  about: 'serve both upstream APIs on loopback, with invented data that grows',
  options: {
    port: { value: 'n', about: 'port on 127.0.0.1; default: any free port' },
    events: {
      value: 'n',
      about: 'audit events, and log records per list, at the start',
      usual: '500',
    },
    rate: {
      value: 'n/s',
      about: 'new audit events a second; logs grow three times as fast',
      usual: '2/s',
    },
    earlier: {
      about: 'serve the earlier form of the same ledger as well, at the next port',
    },
    attacks: {
      about: 'plant attacks and near misses for the detection rules of deploy/siem',
    },
    faults: {
      value: 'file',
      about: 'script of faults, such as config/sandbox-faults.yaml',
    },
  },
  async run(given, deps) {
    const port = given.port === undefined ? 0 : wholeNumber('--port', given.port, 65_535);
    const events = wholeNumber('--events', given.events, 1_000_000_000);
    const rate = rateOf(given.rate);
    const attacks = given.attacks === true;
    const usualFaults = attacks ? changesWithoutTrail : {};
    const faults = given.faults === undefined ? usualFaults : readFaults(given.faults);
    const { ports, options } = portsOf(port, given.earlier === true);
    const shutdown = listenForShutdown(() => deps.exit(1));
    const serving = await started(ports, () =>
      startSandbox({ ...options, events, rate, attacks, faults }),
    );
    try {
      const { earlierBaseUrl } = serving;
      const lines =
        earlierBaseUrl === null
          ? invitation(serving, attacks)
          : movingLines(earlierBaseUrl, serving);
      for (const line of lines) deps.out(line);
      await new Promise<void>((resolve) => {
        shutdown.stop.addEventListener('abort', () => resolve());
        if (shutdown.stop.aborted) resolve();
      });
      return 0;
    } finally {
      await serving.close();
      shutdown.release();
    }
  },
});

/** The earlier API has the next port, so that both are the same from one start to the next. */
function portsOf(port: number, isEarlier: boolean) {
  if (!isEarlier) return { ports: `port ${port}`, options: { port } };
  const next = port === 0 ? 0 : port + 1;
  return { ports: `port ${port} or ${next}`, options: { port, earlier: { port: next } } };
}

/** Starts a sandbox; if a port is in use, the error names the next step. `ports` names the options for it. */
export async function started(ports: string, start: () => Promise<Sandbox>): Promise<Sandbox> {
  try {
    return await start();
  } catch (error) {
    throw new ExportError(
      'upstream_unreachable',
      `starting the sandbox: ${ports} of 127.0.0.1 cannot be used`,
      { next: 'End the process that uses it, or choose another port.', cause: error },
    );
  }
}

function invitation(
  { url, unifiedBaseUrl, servicesBaseUrl, credentials, webhookSecret }: Sandbox,
  hasAttacks: boolean,
): string[] {
  const auth = (scope: string) =>
    `auth: { client_id: ${credentials.clientId}, client_secret: ${credentials.clientSecret}, scope: "${scope}" }`;
  return [
    '# A config that reads it; save it as sandbox.yaml, then: npx sluice run -c sandbox.yaml',
    'state: { dir: ./state }',
    'upstreams:',
    '  edge:',
    '    api: unified',
    '    ends: never',
    `    base_url: ${unifiedBaseUrl}`,
    '    allow_http: true',
    `    ${auth(credentials.unifiedScope)}`,
    '  ops:',
    '    api: services',
    `    base_url: ${servicesBaseUrl}`,
    '    allow_http: true',
    `    ${auth(credentials.servicesScope)}`,
    '    companies: [c-1, c-2]',
    'sources:',
    '  audit: { type: audit_events, upstream: edge, every: 5s }',
    '  web_logs:',
    '    type: logs',
    '    upstream: ops',
    '    every: 5s',
    '    path: /api/logs/v1/companies/{company_id}/web',
    '    pagination: { style: offset }',
    ...(hasAttacks ? silentSource : []),
    '  firewall: { type: firewall, upstream: ops, every: 1m }',
    '  sites: { type: sites, upstream: edge, every: 30s }',
    '  web_categories: { type: web_categories, upstream: edge, every: 30s }',
    '  company: { type: company, upstream: ops, every: 30s }',
    '  hosts: { type: hosts, upstream: ops, every: 30s }',
    '  block_list: { type: block_list, upstream: ops, every: 30s }',
    '  exclusion_list: { type: exclusion_list, upstream: ops, every: 30s }',
    '  tickets: { type: tickets, upstream: ops, every: 30s }',
    '  change_list:',
    '    type: collection',
    '    upstream: ops',
    '    every: 30s',
    '    path: /api/self-service/v1/companies/{company_id}/changes',
    '    id: change_id',
    '    kind: change',
    '  ticket_events: { type: ticket_events, upstream: ops, every: 30s, each: { of: tickets, id: ticket_id } }',
    '  incidents: { type: incident_timeline, upstream: edge, every: 30s, each: { ids: [INC-30000, INC-30001] } }',
    '  investigations: { type: investigations, upstream: edge, every: 30s, each: { ids: [inv_700000] } }',
    '  changes: { type: changes, upstream: ops, every: 30s, each: { of: change_list, id: change_id } }',
    `  hooks: { type: webhooks, upstream: edge, listen: 127.0.0.1:8088, secret: ${webhookSecret} }`,
    ...(hasAttacks ? driftWatch : []),
    'sinks:',
    '  disk: { type: file, path: ./out/events.ndjson, format: json }',
    '',
    // Last, so that it stays on the screen.
    `# unified API:  ${unifiedBaseUrl}`,
    `# services API: ${servicesBaseUrl}`,
    `# sandbox: listening on ${url} (Ctrl-C ends it); credentials: ${credentials.clientId} / ${credentials.clientSecret}`,
  ];
}

/** Changes without an audit event are one of the planted attacks. */
const changesWithoutTrail: FaultScript = { lists: [{ path: '/v1/sites', unexplained_every: 3 }] };

/** One of its streams has no new records. */
const silentSource = [
  '  alerts:',
  '    type: logs',
  '    upstream: ops',
  '    every: 5s',
  '    expect_every: 1m',
  '    path: /api/logs/v1/companies/{company_id}/all',
  '    pagination: { style: offset }',
];
const driftWatch = ['watch: { drift: { changes: [sites], trail: [audit], within: 30s } }'];

function readFaults(file: string): FaultScript {
  try {
    return parseFaultScript(readFileSync(file, 'utf8'), file);
  } catch (error) {
    if (error instanceof FaultScriptError) throw new UsageError(`--faults:\n${error.message}`);
    throw new UsageError(`--faults: ${file} cannot be read: ${whyUnreadable(error)}`);
  }
}

function wholeNumber(flag: string, text: string, max: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= max) return value;
  throw new UsageError(`${flag}: expected a whole number up to ${max}, found ${text}`);
}

function rateOf(text: string): number {
  const number = /^(\d+(?:\.\d+)?)(?:\/s)?$/.exec(text)?.[1];
  if (number === undefined)
    throw new UsageError(`--rate: expected a rate such as 5/s, found ${text}`);
  return Number(number);
}

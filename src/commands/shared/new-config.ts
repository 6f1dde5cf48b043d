// A first config, written from a few answers: sources, sinks, and beside each the settings that are changed most often,
// as comments. Invariants: every answer is quoted, so that none can become another key; no secret is requested or
// written, only its location.

import type { SinkDefinition } from '../../contracts/config.ts';

/** The answers that a config is written from. */
export interface InitAnswers {
  /** Base addresses; null: that API is not read. */
  readonly unified: string | null;
  readonly services: string | null;
  /** The services API: the companies, the scope, and the log list; null: no logs. */
  readonly companies: readonly string[];
  readonly scope: string;
  readonly logs: string | null;
  /** Directory of files with one secret each; null: environment variables. */
  readonly secrets: string | null;
  /** The sink, and where it sends. */
  readonly sink: SinkDefinition;
  readonly to: string;
}

/** The config's text. */
export function configText(answers: InitAnswers): string {
  const { type, sample } = answers.sink;
  const lines = [
    '# Written by `sluice init`. For completion in an editor: npx sluice schema > schema.json, and as the first line here',
    '# yaml-language-server: $schema=./schema.json',
    '',
    'state: # checkpoints, and events not yet delivered',
    '  # dir: ./state # relative to this file; default: $STATE_DIRECTORY/state under systemd, else ./state',
    '  max_bytes: 1GiB # polling pauses while this much is held; nothing is dropped',
    '',
    '# Secrets are references. sluice reads them with each token, so they can be rotated at any time.',
    'upstreams:',
    ...(answers.unified === null ? [] : unifiedUpstream(answers, answers.unified)),
    ...(answers.services === null ? [] : servicesUpstream(answers, answers.services)),
    '',
    'sources:',
    ...sourceLines(answers),
    '',
    'sinks:',
    `  ${sample.name ?? type}:`,
    `    type: ${type}`,
    ...indented(4, sample.lines(answers.to)),
    '',
    '# routes: # default: every source to every sink',
    `#   - { from: [...], to: [...], where: "event.severity_id >= 3", redact: [actor.user.email_addr] }`,
    '',
    'status: { listen: 127.0.0.1:8686 } # page, /metrics, /healthz, /readyz; also used by `sluice top`',
  ];
  return `${lines.join('\n')}\n`;
}

function unifiedUpstream(answers: InitAnswers, url: string): readonly string[] {
  return [
    '  edge:',
    '    api: unified',
    ...indented(4, addressLines(url)),
    ...indented(4, [endsLine(url)]),
    ...indented(4, authLines('edge', answers.secrets)),
    '      scope: events:read',
    '      # api_key: "${env:EDGE_API_KEY}" # instead of the three above',
    '    # throttle: [ { path: /audit/events, requests: 60, per: 1m } ] # a ceiling of your own',
  ];
}

function servicesUpstream(answers: InitAnswers, url: string): readonly string[] {
  return [
    '  ops:',
    '    api: services',
    ...indented(4, addressLines(url)),
    ...indented(4, authLines('ops', answers.secrets)),
    `      scope: ${quoted(answers.scope)}`,
    `    companies: [${answers.companies.map(quoted).join(', ')}] # {company_id} in a path makes one stream of each`,
  ];
}

function addressLines(url: string): readonly string[] {
  return [
    `base_url: ${quoted(url)}`,
    ...(isPlain(url) ? ['allow_http: true # for a loopback address only'] : []),
  ];
}

/** Only a sandbox has a plain address. */
function endsLine(url: string): string {
  return isPlain(url)
    ? 'ends: never # the sandbox has no end'
    : '# ends: 2026-12-31 # when this API ends: a date, or never; default: as its headers say, else this date';
}

function isPlain(url: string): boolean {
  return /^http:/i.test(url);
}

/** Secrets as environment variables, or as files in a directory. */
function authLines(upstream: 'edge' | 'ops', directory: string | null): readonly string[] {
  const reference = (secret: string) => {
    const name = `${upstream}_${secret}`;
    if (directory === null) return `  ${secret}: "\${env:${name.toUpperCase()}}"`;
    return `  ${secret}: "\${file:${directory.replace(/\/+$/, '')}/${name}}"`;
  };
  return ['auth:', reference('client_id'), reference('client_secret')];
}

function sourceLines({ unified, services, logs }: InitAnswers): readonly string[] {
  const audit = [
    '  audit: # every action of an admin or agent',
    '    type: audit_events',
    '    upstream: edge',
    '    every: 30s # or schedule: "*/5 * * * *", timezone: Europe/Zurich',
    '    # start: now # or a time; default: the whole history',
    '    # lookback: 10m # how late an event may turn up and still be found',
    '  # sites: { type: sites, upstream: edge, every: 5m } # or web_categories; scope: events:read platform:read',
  ];
  const list = [
    '  logs:',
    '    type: logs',
    '    upstream: ops',
    '    every: 10s',
    `    path: ${quoted(logs ?? '')}`,
    '    # pagination: { style: cursor } # or offset, page, link, next_url, window, none: see docs/paging.md',
    '    # mapping: # OCSF class and fields; without one everything goes to unmapped',
    '    #   class: network_activity',
    '    #   fields: { src_endpoint.ip: client_ip, dst_endpoint.ip: server_ip }',
  ];
  const firewall = [
    '  firewall: # objects, policies and rules, read whole and reported as changes',
    '    type: firewall',
    '    upstream: ops',
    '    every: 1h',
    '  # hosts: { type: hosts, upstream: ops, every: 15m } # or company, block_list, exclusion_list, tickets',
  ];
  return [
    ...(unified === null ? [] : audit),
    ...(services === null || logs === null ? [] : list),
    ...(services === null ? [] : firewall),
  ];
}

/** JSON's quotes are YAML's double quotes. */
function quoted(text: string): string {
  return JSON.stringify(text.trim());
}

function indented(by: number, lines: readonly string[]): readonly string[] {
  return lines.map((line) => `${' '.repeat(by)}${line}`);
}

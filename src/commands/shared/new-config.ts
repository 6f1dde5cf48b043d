// A first config, written from a few answers: what is read, where it goes, and beside each the settings that people change
// next, as comments. What must stay true: every text that is asked for stands in quotes, so that no answer can become
// another key; and no secret is ever asked for or written, only where sluice is to find it.

/** What a config is written from. */
export interface Answers {
  /** Base addresses; null: that API is not read. */
  readonly unified: string | null;
  readonly services: string | null;
  /** The services API: whose data, under which scope, and which log list; null: no logs. */
  readonly companies: readonly string[];
  readonly scope: string;
  readonly logs: string | null;
  /** Directory of files with one secret each; null: environment variables. */
  readonly secrets: string | null;
  /** Type of the sink, and where it sends. */
  readonly sink: SinkType;
  readonly to: string;
}

/** A sink that a first config can have. */
export type SinkType = keyof typeof sinkKinds;

interface SinkKind {
  /** What is asked for, with an example; null: nothing. */
  readonly to: { readonly what: string; readonly usual: string } | null;
  /** The lines of its block. */
  lines(to: string): readonly string[];
}

/** The sinks, in the order in which they are offered. */
export const sinkKinds = {
  file: {
    to: { what: 'the file to write', usual: './out/events.ndjson' },
    lines: (to: string) => [
      `path: ${quoted(to)}`,
      'format: json # one OCSF event a line; { type: json, schema: original } is the record as it came',
      '# rotate: { bytes: 100MiB, every: 1h }',
      '# compress: gzip # of files that are finished',
    ],
  },
  syslog: {
    to: { what: 'the receiver', usual: 'tls://siem.example:6514' },
    lines: (to: string) => [
      `address: ${quoted(to)} # tls://, tcp:// or udp://; over udp:// nobody can know what arrived`,
      'format: cef # or syslog, or json',
      '# format: { type: cef, vendor: Acme, product: Edge }',
      '# tls: { ca_file: /etc/ssl/siem-ca.pem }',
    ],
  },
  kafka: {
    to: { what: 'brokers and topic', usual: 'kafka-1.example:9092/security-events' },
    lines: (to: string) => {
      const slash = to.lastIndexOf('/');
      const brokers = to.slice(0, Math.max(0, slash)).split(',').map(quoted);
      return [
        `brokers: [${brokers.join(', ')}]`,
        `topic: ${quoted(to.slice(slash + 1))}`,
        'format: json',
        'exactly_once: true # readers set isolation.level=read_committed',
        '# tls: {} # the system’s authorities',
        '# sasl: { mechanism: scram-sha-512, username: "${env:KAFKA_USER}", password: "${env:KAFKA_PASSWORD}" }',
      ];
    },
  },
  otlp: {
    to: { what: 'the collector’s logs endpoint', usual: 'http://localhost:4318/v1/logs' },
    lines: (to: string) => [
      `url: ${quoted(to)}`,
      'compression: gzip',
      '# headers: { Authorization: "Bearer ${env:OTLP_TOKEN}" }',
    ],
  },
  http: {
    to: { what: 'the URL to post to', usual: 'https://ingest.example/events' },
    lines: (to: string) => [
      `url: ${quoted(to)}`,
      'format: json # one OCSF event a line',
      '# headers: { Authorization: "Bearer ${env:INGEST_TOKEN}" }',
    ],
  },
  stdout: { to: null, lines: () => ['format: json'] },
} as const satisfies Record<string, SinkKind>;

/** The config's text. */
export function configText(answers: Answers): string {
  const lines = [
    '# Written by `sluice init`. For completion in an editor: npx sluice schema > schema.json, and as the first line here',
    '# yaml-language-server: $schema=./schema.json',
    '',
    'state: # checkpoints, and events that a sink has yet to take',
    '  # dir: ./state # relative to this file; left out: $STATE_DIRECTORY/state where systemd gives one, else so',
    '  max_bytes: 1GiB # polling pauses while this much is held; nothing is dropped',
    '',
    '# Secrets are references, read anew with each token, so they may be rotated at any time.',
    'upstreams:',
    ...(answers.unified === null ? [] : unifiedUpstream(answers, answers.unified)),
    ...(answers.services === null ? [] : servicesUpstream(answers, answers.services)),
    '',
    'sources:',
    ...sourceLines(answers),
    '',
    'sinks:',
    `  ${answers.sink === 'stdout' ? 'screen' : answers.sink}:`,
    `    type: ${answers.sink}`,
    ...indented(4, sinkKinds[answers.sink].lines(answers.to)),
    '',
    '# routes: # left out: every source to every sink',
    `#   - { from: [...], to: [...], where: "event.severity_id >= 3", redact: [actor.user.email_addr] }`,
    '',
    'status: { listen: 127.0.0.1:8686 } # page, /metrics, /healthz, /readyz; and what `sluice top` asks',
  ];
  return `${lines.join('\n')}\n`;
}

function unifiedUpstream(answers: Answers, url: string): readonly string[] {
  return [
    '  edge:',
    '    api: unified',
    ...indented(4, addressLines(url)),
    ...indented(4, authLines('edge', answers.secrets)),
    '      scope: events:read',
    '      # api_key: "${env:EDGE_API_KEY}" # instead of the three above',
    '    # throttle: [ { path: /audit/events, requests: 60, per: 1m } ] # a ceiling of your own',
  ];
}

function servicesUpstream(answers: Answers, url: string): readonly string[] {
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
  const plain = /^http:/i.test(url);
  return [
    `base_url: ${quoted(url)}`,
    ...(plain ? ['allow_http: true # taken for a loopback address only'] : []),
  ];
}

/** Names of the secrets of an upstream: as environment variables, or as files in a directory. */
export function secretNames(upstream: 'edge' | 'ops', directory: string | null): readonly string[] {
  const names = [`${upstream}_client_id`, `${upstream}_client_secret`];
  if (directory === null) return names.map((name) => name.toUpperCase());
  return names.map((name) => `${directory.replace(/\/+$/, '')}/${name}`);
}

function authLines(upstream: 'edge' | 'ops', directory: string | null): readonly string[] {
  const from = directory === null ? 'env' : 'file';
  const [id, secret] = secretNames(upstream, directory).map((name) => `\${${from}:${name}}`);
  return ['auth:', `  client_id: "${id}"`, `  client_secret: "${secret}"`];
}

function sourceLines({ unified, services, logs }: Answers): readonly string[] {
  const audit = [
    '  audit: # every action of an admin or agent',
    '    type: audit_events',
    '    upstream: edge',
    '    every: 30s # or schedule: "*/5 * * * *", timezone: Europe/Zurich',
    '    # start: now # or a time; left out: the whole history',
    '    # lookback: 10m # how late an event may turn up and still be found',
  ];
  const list = [
    '  logs:',
    '    type: logs',
    '    upstream: ops',
    '    every: 10s',
    `    path: ${quoted(logs ?? '')}`,
    '    # pagination: { style: cursor } # or offset, or none; items, next and total name the answer’s members',
    '    # mapping: # what the records mean; without one everything goes to unmapped',
    '    #   class: network_activity',
    '    #   fields: { src_endpoint.ip: client_ip, dst_endpoint.ip: server_ip }',
  ];
  const firewall = [
    '  firewall: # objects, policies and rules, read whole and told as changes',
    '    type: firewall',
    '    upstream: ops',
    '    every: 1h',
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

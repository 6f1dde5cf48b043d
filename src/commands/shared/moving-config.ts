// The config that `sluice sandbox --earlier` prints: the earlier API, and its successor as a second upstream. `sluice
// succession plan` proposes successors for its sources.

/** A running sandbox: the addresses of its APIs, and its credentials. */
interface Reached {
  readonly url: string;
  readonly servicesBaseUrl: string;
  readonly unifiedBaseUrl: string;
  readonly credentials: {
    readonly apiKey: string;
    readonly clientId: string;
    readonly clientSecret: string;
    readonly servicesScope: string;
  };
}

/** The lines of the config, then how to reach both APIs. */
export function movingLines(earlierBaseUrl: string, sandbox: Reached): readonly string[] {
  const { url, servicesBaseUrl, unifiedBaseUrl, credentials } = sandbox;
  const { apiKey, clientId, clientSecret, servicesScope } = credentials;
  const page = 'pagination: { style: page }';
  const collection = (name: string, path: string, id: string) =>
    `  ${name}: { type: collection, upstream: old, every: 5s, path: ${path}, id: ${id}, ignore: [updatedAt], ${page} }`;
  return [
    '# A config that reads the API that ends; save it as moving.yaml, then: npx sluice run -c moving.yaml',
    '# For the successors of its sources: npx sluice succession plan -c moving.yaml',
    'state: { dir: ./state }',
    'upstreams:',
    '  old:',
    '    api: unified',
    `    base_url: ${earlierBaseUrl}`,
    '    allow_http: true',
    `    auth: { api_key: ${apiKey} }`,
    '  new:',
    '    api: services',
    `    base_url: ${servicesBaseUrl}`,
    '    allow_http: true',
    `    auth: { client_id: ${clientId}, client_secret: ${clientSecret}, scope: "${servicesScope}" }`,
    '    companies: ["1001", "1002"]',
    'sources:',
    `  audit: { type: audit_events, upstream: old, every: 5s, ${page} }`,
    collection('tickets', '/tickets', 'ticketId'),
    collection('hosts', '/hosts', 'hostId'),
    collection('block_list', '/utp/block-list', 'entryId'),
    'sinks:',
    '  disk: { type: file, path: ./out/events.ndjson, format: json }',
    '',
    `# earlier API:  ${earlierBaseUrl} (API key: ${apiKey})`,
    `# unified API:  ${unifiedBaseUrl}, of the same ledger`,
    `# services API: ${servicesBaseUrl}; audit events: /api/logs/v1/audit`,
    `# sandbox: listening on ${url} (Ctrl-C ends it); credentials: ${clientId} / ${clientSecret}`,
  ];
}

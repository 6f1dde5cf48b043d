// The SIEMs of `init --siem`: the sink for each, its settings, and the set-up on the receiver's side. A SIEM is offered
// if its sink is available. The pages in docs/recipes have more; this file has the parts that must be typed.

import { sinks } from '../../config/index.ts';
import type { SinkDefinition } from '../../contracts/config.ts';

/** One that is offered. */
export interface Siem {
  readonly name: string;
  /** The sink, with its settings in a first config. */
  readonly sink: SinkDefinition;
  /** The set-up of the receiver, in a file of that name. */
  readonly receiver: { readonly file: string; lines(to: string): readonly string[] };
  /** Paths in a checkout: rules and dashboards, and the page that leads to the first alert. */
  readonly content: { readonly folder: string; readonly page: string };
}

interface Known {
  readonly name: string;
  readonly type: string;
  /** Undefined: as the sink itself has it. */
  readonly to?: { readonly what: string; readonly usual: string };
  readonly lines?: (to: string) => readonly string[];
  /** Settings after those of the sink itself. */
  readonly more?: readonly string[];
  readonly file: string;
  readonly receiver: (to: string) => readonly string[];
  /** Below `deploy/siem`, and below `docs/siem`. */
  readonly content: readonly [folder: string, page: string];
}

const changes = 'Changes by administrators and agents:';

const known: readonly Known[] = [
  {
    name: 'splunk',
    type: 'splunk_hec',
    content: ['splunk', 'splunk.md'],
    // The form that add-ons for OCSF expect; an existing config keeps the default sluice:ocsf.
    more: ['sourcetype: ocsf:sluice # fields and searches: deploy/siem/splunk'],
    file: 'splunk-receiver.conf',
    receiver: () => [
      '# Settings, Data inputs, HTTP Event Collector: a new token with "Enable indexer acknowledgement",',
      '# allowed to write to the index; or in inputs.conf:',
      '[http://sluice]',
      'useACK = true',
      'index = security',
      'indexes = security',
      '',
      '# Install the app deploy/siem/splunk/sluice (docs/siem/splunk.md). Without the app, at least:',
      '# props.conf (indexers and search heads): no long event is cut, fields are found by their names',
      '[ocsf:sluice]',
      'TRUNCATE = 0',
      'KV_MODE = json',
      '',
      '# fields.conf (search heads)',
      '[sluice_uid]',
      'INDEXED = true',
      '',
      `# ${changes}`,
      '# index=security sourcetype=ocsf:sluice class_uid IN (6003, 3004) NOT activity_name=Read',
      '# | dedup sluice_uid',
    ],
  },
  {
    name: 'sentinel',
    type: 'sentinel',
    content: ['sentinel', 'sentinel.md'],
    file: 'sentinel-receiver.txt',
    receiver: () => [
      '1. Entra, App registrations: an application with a secret (AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET).',
      '2. Deploy deploy/siem/sentinel/azuredeploy.json to the resource group of the workspace (docs/siem/sentinel.md). It creates',
      '   the table Sluice_CL, the data collection endpoint and rule, the ASIM parsers, the analytic rules and a workbook:',
      '   az deployment group create --resource-group GROUP --template-file azuredeploy.json \\',
      '     --parameters workspaceName=WORKSPACE principalId=OBJECT_ID_OF_THE_SERVICE_PRINCIPAL',
      '3. Its outputs endpoint, dcr_immutable_id and stream_name are the values of these keys in the config.',
      '4. The deployment assigns the role "Monitoring Metrics Publisher" on the rule; the role can need up to 30 minutes to work.',
      '',
      `${changes}`,
      '  Sluice_CL | where EventClass in ("API Activity", "Entity Management") and EventType != "Read"',
      '  | summarize take_any(*) by EventUid',
    ],
  },
  {
    name: 'elastic',
    type: 'elasticsearch',
    content: ['elastic', 'elastic.md'],
    more: [
      '# dashboards: { url: "https://kibana.example:5601", file: deploy/siem/elastic/dashboards.kibana.ndjson } # check --setup',
    ],
    file: 'elastic-receiver.txt',
    receiver: () => [
      '# Kibana, Dev Tools: the key, whose `encoded` is ELASTIC_API_KEY',
      'POST /_security/api_key',
      '{',
      '  "name": "sluice",',
      '  "role_descriptors": {',
      '    "sluice": {',
      '      "cluster": ["monitor", "manage_index_templates"],',
      '      "indices": [{ "names": ["sluice-*"], "privileges": ["create_index", "create_doc"] }]',
      '    }',
      '  }',
      '}',
      '',
      '# Kibana, Data views: sluice-*, time field @timestamp',
      `# ${changes}`,
      '# event.category: configuration or (event.category: api and not event.type: access)',
    ],
  },
  {
    name: 'opensearch',
    type: 'elasticsearch',
    content: ['elastic', 'elastic.md'],
    to: { what: 'the address of the cluster', usual: 'https://opensearch.example:9200' },
    lines: (to) => [
      `url: ${JSON.stringify(to)}`,
      'auth: { username: sluice, password: "${env:OPENSEARCH_PASSWORD}" } # or sigv4: { region: eu-central-1 }',
      '# dashboards: { url: "https://dashboards.example:5601", file: deploy/siem/elastic/dashboards.opensearch.ndjson } # check --setup',
    ],
    file: 'opensearch-receiver.txt',
    receiver: () => [
      '# Dashboards, Dev Tools: the role, then a user in it whose password is OPENSEARCH_PASSWORD',
      'PUT /_plugins/_security/api/roles/sluice',
      '{',
      '  "cluster_permissions": ["cluster_monitor", "indices:data/write/bulk", "indices:admin/index_template/put"],',
      '  "index_permissions": [{ "index_patterns": ["sluice-*"], "allowed_actions": ["create_index", "write"] }]',
      '}',
      'PUT /_plugins/_security/api/rolesmapping/sluice',
      '{ "users": ["sluice"] }',
      '',
      '# Dashboards, Index patterns: sluice-*, time field @timestamp',
      `# ${changes}`,
      '# event.category: configuration or (event.category: api and not event.type: access)',
    ],
  },
  {
    name: 'qradar',
    type: 'syslog',
    content: ['qradar', 'qradar.md'],
    to: { what: 'the listener of its log source', usual: 'tls://qradar.example:6514' },
    lines: (to) => [
      `address: ${JSON.stringify(to)}`,
      'framing: newline',
      'hostname: sluice-1 # the log source identifier',
      'format: { type: leef, vendor: Acme, product: Edge }',
      'max_message: 4000',
    ],
    file: 'qradar-receiver.txt',
    receiver: (to) => [
      'Admin, Log Sources, New log source:',
      '  Log source type        Universal LEEF',
      `  Protocol               ${to.startsWith('tls:') ? 'TLS Syslog, with a listen port' : 'Syslog'}`,
      '  Log source identifier  sluice-1',
      'Then deploy the changes. Map event ids (the name of the action) to categories in the DSM editor.',
      `${changes}`,
      "  SELECT DATEFORMAT(starttime, 'yyyy-MM-dd HH:mm:ss'), username, sourceip, UTF8(payload) FROM events",
      "  WHERE LOGSOURCENAME(logsourceid) ILIKE '%sluice%'",
      "    AND UTF8(payload) MATCHES '.*name=(API Activity|Entity Management): (?!Read).*' LAST 24 HOURS",
    ],
  },
  {
    name: 'arcsight',
    type: 'syslog',
    content: ['qradar', 'arcsight.md'],
    to: { what: 'the SmartConnector', usual: 'tcp://connector.example:514' },
    lines: (to) => [
      `address: ${JSON.stringify(to)}`,
      'protocol: rfc3164',
      'framing: newline',
      'format: { type: cef, vendor: Acme, product: Edge }',
    ],
    file: 'arcsight-receiver.txt',
    receiver: (to) => [
      `A SmartConnector of the kind "Syslog Daemon" (TLS: "Syslog NG Daemon") that listens at ${to}.`,
      'The uid of an event is deviceCustomString6, with the label uid.',
    ],
  },
  {
    name: 'graylog',
    type: 'http',
    content: ['graylog', 'graylog.md'],
    to: { what: 'its input "GELF HTTP"', usual: 'https://graylog.example:12201/gelf' },
    lines: (to) => [
      `url: ${JSON.stringify(to)}`,
      'format: gelf',
      'batch: { events: 1 } # the input accepts one message per request',
    ],
    file: 'graylog-receiver.txt',
    receiver: (to) => [
      `System, Inputs: launch a new "GELF HTTP" input that listens at ${to}, with TLS.`,
    ],
  },
  {
    name: 'secops',
    type: 'google_secops',
    content: ['secops', 'secops.md'],
    file: 'secops-receiver.txt',
    receiver: () => [
      '1. Google Cloud, IAM: a role with the permission chronicle.events.import, a service account with this role, and a JSON',
      '   key of this account at /run/secrets/secops.json.',
      '2. SecOps, SIEM Settings, Profile: the customer id is instance in the config. Set project and location there as well.',
      '',
      `${changes}`,
      '  additional.fields["class_name"] = /^(API Activity|Entity Management)$/ AND additional.fields["activity_name"] != "Read"',
    ],
  },
  {
    name: 'datadog',
    type: 'datadog',
    content: ['datadog', 'datadog.md'],
    to: { what: 'the site, or an address instead of its intake', usual: 'datadoghq.com' },
    lines: (to) => [
      `${/^https?:/.test(to) ? 'url' : 'site'}: ${JSON.stringify(to)}`,
      'api_key: "${env:DD_API_KEY}"',
      '# ddtags: env:prod,team:security',
    ],
    file: 'datadog-receiver.txt',
    receiver: () => [
      '1. Organization Settings, API Keys: a new key, which is DD_API_KEY.',
      '2. Log Explorer: the facets @uid, @ocsf.class_uid, @ocsf.activity_name, @ocsf.actor.user.name, and those of the rules.',
      '3. Logs, Configuration, Indexes: an index whose filter has source:sluice, with the retention that you need.',
      '',
      `${changes}`,
      '  source:sluice @ocsf.class_uid:(6003 OR 3004) -@ocsf.activity_name:Read',
    ],
  },
  {
    name: 'otel',
    type: 'otlp',
    content: ['sigma', 'otel.md'],
    to: { what: 'the collector’s port for OTLP over gRPC', usual: 'http://localhost:4317' },
    lines: (to) => [
      `url: ${JSON.stringify(to)}`,
      'protocol: grpc',
      '# headers: { Authorization: "Bearer ${env:OTLP_TOKEN}" }',
    ],
    file: 'otel-receiver.yaml',
    receiver: (to) => [
      '# OpenTelemetry Collector: receives events from sluice. Replace debug by your own exporters.',
      'receivers:',
      '  otlp:',
      `    protocols: { grpc: { endpoint: "0.0.0.0:${new URL(to).port || '4317'}" } }`,
      'exporters:',
      '  debug: { verbosity: detailed }',
      'service:',
      '  pipelines:',
      '    logs: { receivers: [otlp], exporters: [debug] }',
      '',
      `# ${changes}`,
      '# log.record.uid identifies a repeat; the class is in the body: class_uid 6003 and 3004, activity_name other than Read',
    ],
  },
];

/** All that are offered, by name. */
export const siems: readonly Siem[] = known.flatMap(
  ({ name, type, to, lines, more, file, receiver, content: [folder, page] }) => {
    const sink = sinks.find((one) => one.type === type);
    if (sink === undefined) return [];
    const own = lines ?? sink.sample.lines;
    const all = (address: string) => [...own(address), ...(more ?? [])];
    const sample = { ...sink.sample, ...(to && { to }), lines: all, name };
    const content = { folder: `deploy/siem/${folder}`, page: `docs/siem/${page}` };
    return [{ name, sink: { ...sink, sample }, receiver: { file, lines: receiver }, content }];
  },
);

// The Elastic Common Schema field of each OCSF attribute, as a table used by format, index
// template, reference page and tests. A field is filled from the first of its attributes that is
// present and accepted; an attribute without a field keeps its OCSF name below `sluice.ocsf`. Names
// and types are those of ECS 9.4 (https://www.elastic.co/docs/reference/ecs).

/** The ECS version in events. */
export const ecsVersion = '9.4.0';

/**
 * The type of a field. `lower`: a text that ECS requires in lower case; `port`: 0 to 65535; `mac`:
 * an address that ECS requires in upper case and with hyphens; `text`: words for full-text search;
 * `wildcard`: a text of any length with substring search.
 */
export type EcsKind =
  | 'keyword'
  | 'lower'
  | 'text'
  | 'wildcard'
  | 'ip'
  | 'mac'
  | 'long'
  | 'port'
  | 'float'
  | 'date';

/** One field and the origin of its value. */
export interface EcsField {
  readonly field: string;
  readonly kind: EcsKind;
  /** OCSF attributes, the best first; none if it is computed from the whole event. */
  readonly from: readonly string[];
  /** ECS defines a list of these values. */
  readonly isList: boolean;
  /** The field that collects values of its kind from the whole event. */
  readonly related: 'ip' | 'user' | 'hosts' | 'hash' | null;
}

function field(kind: EcsKind, name: string, from: string): EcsField {
  const isList = /^host\.(ip|mac)$|^user\.roles$/.test(name);
  return {
    field: name,
    kind,
    from: from === '' ? [] : from.split(' '),
    isList,
    related: relatedOf(name),
  };
}

function relatedOf(name: string): EcsField['related'] {
  if (/^(source|destination|host)\.ip$/.test(name)) return 'ip';
  if (/^user\.(target\.)?(name|id|email)$/.test(name)) return 'user';
  if (/^file\.hash\./.test(name)) return 'hash';
  return /\.(domain|hostname)$|^host\.name$/.test(name) && !name.startsWith('user')
    ? 'hosts'
    : null;
}

const both = (kind: EcsKind, name: string, from: string): readonly EcsField[] => [
  field(kind, `source.${name}`, `src_endpoint.${from} evidences.src_endpoint.${from}`),
  field(kind, `destination.${name}`, `dst_endpoint.${from} evidences.dst_endpoint.${from}`),
];
const users = (name: string, from: string): readonly EcsField[] => [
  field('keyword', `user.${name}`, `actor.user.${from}`),
  field('keyword', `user.target.${name}`, `user.${from} entity.user.${from}`),
];
const keyword = (name: string, from: string) => field('keyword', name, from);
const long = (name: string, from: string) => field('long', name, from);

/** All fields that are filled from one attribute, and the message. */
export const ecsFields: readonly EcsField[] = [
  // The event's sentence.
  { field: 'message', kind: 'text', from: [], isList: false, related: null },
  keyword('event.action', 'disposition action api.operation'),
  keyword('event.code', 'metadata.event_code'),
  keyword('event.provider', 'metadata.log_provider'),
  field('date', 'event.created', 'metadata.logged_time'),
  field('date', 'event.start', 'start_time'),
  field('date', 'event.end', 'end_time'),
  keyword('event.reason', 'status_detail'),
  long('event.severity', 'severity_id'),
  field('float', 'event.risk_score', 'risk_score'),
  field('lower', 'log.level', 'severity'),
  ...users('id', 'uid'),
  ...users('name', 'name'),
  ...users('full_name', 'full_name'),
  ...users('email', 'email_addr'),
  ...users('domain', 'domain'),
  // Of the actor, from `unmapped`.
  field('keyword', 'user.roles', ''),
  ...both('ip', 'ip', 'ip'),
  ...both('port', 'port', 'port'),
  ...both('keyword', 'domain', 'hostname'),
  ...both('mac', 'mac', 'mac'),
  long('source.bytes', 'traffic.bytes_out'),
  long('source.packets', 'traffic.packets_out'),
  long('destination.bytes', 'traffic.bytes_in'),
  long('destination.packets', 'traffic.packets_in'),
  long('network.bytes', 'traffic.bytes'),
  long('network.packets', 'traffic.packets'),
  field(
    'lower',
    'network.transport',
    'connection_info.protocol_name evidences.connection_info.protocol_name',
  ),
  keyword('network.iana_number', 'connection_info.protocol_num'),
  field('lower', 'network.direction', 'connection_info.direction'),
  keyword('network.community_id', 'connection_info.community_uid'),
  field('lower', 'network.protocol', 'app_protocol_name'),
  field('lower', 'network.application', 'app_name'),
  keyword('http.request.method', 'http_request.http_method'),
  keyword('http.request.referrer', 'http_request.referrer'),
  keyword('http.request.id', 'http_request.uid api.request.uid'),
  long('http.request.bytes', 'http_request.length'),
  long('http.request.body.bytes', 'http_request.body_length'),
  keyword('http.version', 'http_request.version'),
  long('http.response.status_code', 'http_response.code'),
  long('http.response.bytes', 'http_response.length'),
  long('http.response.body.bytes', 'http_response.body_length'),
  keyword('http.response.mime_type', 'http_response.content_type'),
  keyword('user_agent.original', 'http_request.user_agent'),
  field('wildcard', 'url.original', 'http_request.url.url_string url.url_string'),
  // The same as `url.original`.
  field('wildcard', 'url.full', ''),
  field('wildcard', 'url.path', 'http_request.url.path url.path'),
  keyword('url.query', 'http_request.url.query_string url.query_string'),
  field('lower', 'url.scheme', 'http_request.url.scheme url.scheme'),
  keyword('url.domain', 'http_request.url.hostname url.hostname'),
  field('port', 'url.port', 'http_request.url.port url.port'),
  keyword('dns.question.name', 'query.hostname'),
  keyword('dns.question.type', 'query.type'),
  keyword('dns.question.class', 'query.class'),
  keyword('dns.op_code', 'query.opcode'),
  keyword('dns.response_code', 'rcode'),
  keyword('rule.id', 'firewall_rule.uid finding_info.analytic.uid'),
  keyword('rule.name', 'firewall_rule.name finding_info.analytic.name'),
  keyword('rule.category', 'firewall_rule.category finding_info.analytic.category'),
  keyword('rule.description', 'firewall_rule.desc finding_info.analytic.desc'),
  keyword('rule.version', 'firewall_rule.version finding_info.analytic.version'),
  keyword('rule.ruleset', 'policy.name'),
  keyword('host.id', 'device.uid'),
  keyword('host.name', 'device.name'),
  keyword('host.hostname', 'device.hostname'),
  keyword('host.domain', 'device.domain'),
  field('ip', 'host.ip', 'device.ip'),
  field('mac', 'host.mac', 'device.mac'),
  keyword('host.os.name', 'device.os.name'),
  keyword('host.os.version', 'device.os.version'),
  keyword('file.name', 'file.name evidences.file.name'),
  keyword('file.path', 'file.path evidences.file.path'),
  keyword('file.extension', 'file.ext evidences.file.ext'),
  keyword('file.mime_type', 'file.mime_type evidences.file.mime_type'),
  long('file.size', 'file.size evidences.file.size'),
  keyword('process.name', 'actor.process.name'),
  long('process.pid', 'actor.process.pid'),
  keyword('organization.id', 'metadata.tenant_uid'),
  keyword('observer.vendor', 'metadata.product.vendor_name'),
  keyword('observer.product', 'metadata.product.name'),
  keyword('observer.version', 'metadata.product.version'),
];

/** Attributes that other fields contain, or that are derived from `sluice.ocsf`. */
export const writtenInFields: readonly string[] = [
  'unmapped',
  'time',
  'metadata.uid',
  'metadata.version',
  'activity_id',
  'category_uid',
  'category_name',
  'type_uid',
  'type_name',
];

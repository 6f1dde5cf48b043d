// The CEF key for each value, as a table used by formatter, reference page and tests. The attributes
// that security teams search by have keys of the dictionary, the same in every kind of event, so that
// a SIEM's column has one meaning; attributes without a dictionary key are in `sluice…` keys. Each row
// names the OCSF attributes for its key, the first present one counts; and for unmapped logs the
// common names of the same value, compared as the normaliser does (without case, `_`, `-`, `.`, a
// nested name being the same as a flat one). Addresses, ports and sluice's own keys are found under
// these names in every record; people, targets and rules only in logs, because an audit record's have
// been found already, and the remaining ones may belong to someone else.
//
// Lengths are those of the dictionary of the ArcSight CEF Implementation Standard (version 27), in
// characters.

/** How a value is written, and which values a key accepts. */
export type CefKind =
  | 'text'
  | 'whole'
  | 'header'
  | 'address'
  | 'port'
  | 'count'
  | 'several'
  | 'time'
  | 'mac'
  | 'privilege'
  | 'direction';

/** One key and the origin of its value. */
export interface CefKey {
  readonly key: string;
  readonly kind: CefKind;
  /** Maximum length in characters; 0 if the kind bounds it. */
  readonly length: number;
  /** The meaning of a custom key; sent under a key of its own. */
  readonly label: string;
  /** OCSF attributes, the best first. */
  readonly from: readonly string[];
  /** Common names in records, the best first. */
  readonly names: readonly string[];
  /** Whether the names count in records of any kind. */
  readonly anywhere: boolean;
}

/** Lengths of the header fields (Standard, "Header information"). */
export const headerLengths = {
  deviceVendor: 63,
  deviceProduct: 63,
  deviceVersion: 31,
  deviceEventClassId: 1023,
  name: 512,
} as const;

/** Maximum length under a key outside the dictionary: as long as the longest in it. */
export const ownLengthMax = 4000;

interface More {
  readonly label?: string;
  readonly names?: string;
}

function row(kind: CefKind, key: string, length: number, from: string, more: More = {}): CefKey {
  return {
    key,
    kind,
    length,
    label: more.label ?? '',
    from: words(from),
    names: words(more.names ?? ''),
    anywhere: /^(src|spt|shost|smac|dst|dpt|dhost|dmac|sluice\w+)$/.test(key),
  };
}

function words(text: string): readonly string[] {
  return text.split(' ').filter((word) => word !== '');
}

const text = (key: string, length: number, from: string, names = '', label = '') =>
  row('text', key, length, from, { names, label });
const own = (key: string, from: string, names = '') => text(key, ownLengthMax, from, names);

/** All keys except `cs6`, `deviceFacility`, `outcome` and `frameworkName`, in output order. */
export const cefKeys: readonly CefKey[] = [
  row(
    'header',
    'deviceEventClassId',
    headerLengths.deviceEventClassId,
    'metadata.event_code finding_info.analytic.uid',
    {
      names: 'signatureid alertsignatureid sigid sid eventtype eventname logtype',
    },
  ),
  row('header', 'name', headerLengths.name, 'finding_info.title', {
    names: 'signature alertsignature signaturename',
  }),
  row('time', 'rt', 0, 'time'),
  row('whole', 'externalId', 40, 'metadata.original_event_uid', {
    names: 'id eventid eventuuid uuid logid recordid',
  }),
  text('cat', 1023, 'class_name'),
  text('act', 63, 'disposition action api.operation', 'action alertaction eventaction'),
  text('reason', 1023, 'status_detail status_code rcode', 'reason rcodename dnsrcode errormessage'),
  row('time', 'start', 0, 'start_time'),
  row('time', 'end', 0, 'end_time'),
  row('several', 'cnt', 0, 'count'),
  text('cs2', 4000, 'metadata.tenant_uid', 'companyid tenantid', 'tenant'),
  own('sluiceCorrelationId', 'metadata.correlation_uid'),
  text(
    'suser',
    1023,
    'actor.user.name actor.user.email_addr actor.user.full_name',
    'user username srcuser sourceuser useridentityusername principal actorname actor login',
  ),
  text(
    'suid',
    1023,
    'actor.user.uid',
    'userid srcuserid actorid useridentityprincipalid principalid',
  ),
  row('privilege', 'spriv', 1023, 'actor.user.type'),
  text(
    'duser',
    1023,
    'user.name entity.user.name user.email_addr',
    'dstuser destuser destinationuser targetuser targetusername',
  ),
  text('duid', 1023, 'user.uid entity.user.uid', 'dstuserid targetuserid'),
  row('privilege', 'dpriv', 1023, 'user.type'),
  text('sourceServiceName', 1023, 'api.service.name actor.invoked_by', 'eventsource'),
  text('destinationServiceName', 1023, 'service.name'),
  row('address', 'src', 0, 'src_endpoint.ip evidences.src_endpoint.ip', {
    names:
      'srcip sourceip clientip idorigh sourceipaddress sourceaddress srcaddr srcaddress src clientaddress clientaddr ' +
      'remoteip remoteaddr remoteaddress callerip senderip originip ip ipaddress',
  }),
  text(
    'shost',
    1023,
    'src_endpoint.hostname src_endpoint.name evidences.src_endpoint.hostname',
    'srchost srchostname sourcehost sourcehostname clienthost clienthostname',
  ),
  row('port', 'spt', 0, 'src_endpoint.port evidences.src_endpoint.port', {
    names: 'srcport sourceport clientport idorigp remoteport spt sport',
  }),
  row('mac', 'smac', 0, 'src_endpoint.mac evidences.src_endpoint.mac', {
    names: 'srcmac sourcemac clientmac',
  }),
  text('deviceInboundInterface', 128, 'src_endpoint.interface_name'),
  row('address', 'dst', 0, 'dst_endpoint.ip evidences.dst_endpoint.ip', {
    names:
      'dstip destip destinationip serverip idresph destinationipaddress destinationaddress dstaddr dstaddress dst dest ' +
      'serveraddress targetip',
  }),
  text(
    'dhost',
    1023,
    'dst_endpoint.hostname dst_endpoint.name evidences.dst_endpoint.hostname http_request.url.hostname url.hostname',
    'dsthost dsthostname desthost desthostname destinationhost destinationhostname serverhost servername',
  ),
  row('port', 'dpt', 0, 'dst_endpoint.port evidences.dst_endpoint.port', {
    names: 'dstport destport destinationport serverport idrespp dpt dport port',
  }),
  row('mac', 'dmac', 0, 'dst_endpoint.mac evidences.dst_endpoint.mac', {
    names: 'dstmac destmac destinationmac servermac',
  }),
  text('deviceOutboundInterface', 128, 'dst_endpoint.interface_name'),
  row('address', 'dvc', 0, 'device.ip'),
  text('dvchost', 100, 'device.hostname device.name'),
  text('deviceExternalId', 255, 'device.uid', 'hostid deviceid sensorid'),
  text(
    'proto',
    31,
    'connection_info.protocol_name evidences.connection_info.protocol_name',
    // A name is more useful than a number.
    'protocolname protoname ipprotocolname protocolnumbername protocolnumname protocolidname ipprotocolnumbername ' +
      'protonumname ipprotoname transportprotocolname proto protocol transport ipprotocol transportprotocol',
  ),
  text(
    'app',
    31,
    'app_protocol_name app_name dst_endpoint.svc_name',
    'appproto service application',
  ),
  row('count', 'in', 0, 'traffic.bytes_out', {
    names: 'bytessent bytesout bytestoserver origbytes flowbytestoserver',
  }),
  row('count', 'out', 0, 'traffic.bytes_in', {
    names: 'bytesreceived bytesin bytestoclient respbytes flowbytestoclient',
  }),
  row('direction', 'deviceDirection', 0, 'connection_info.direction_id'),
  text('destinationDnsDomain', 255, 'query.hostname', 'query qname queryname dnsrrname rrname'),
  own('sluiceDnsQueryType', 'query.type', 'qtypename querytype qtype dnsrrtype rrtype'),
  text(
    'request',
    1023,
    'http_request.url.url_string url.url_string http_request.url.path url.path',
    'url requesturl uri requesturi httpurl',
  ),
  text('requestMethod', 1023, 'http_request.http_method', 'method httpmethod httphttpmethod'),
  text('requestClientApplication', 1023, 'http_request.user_agent', 'useragent httphttpuseragent'),
  text('requestContext', 2048, 'http_request.referrer', 'referrer referer httphttprefer'),
  own('sluiceRequestId', 'api.request.uid http_request.uid', 'requestid'),
  row('count', 'cn1', 0, 'http_response.code', {
    label: 'http_status',
    names: 'statuscode httpstatus httpstatuscode status',
  }),
  text(
    'cs1',
    4000,
    'firewall_rule.name firewall_rule.uid policy.name policy.uid finding_info.analytic.name',
    'rulename rule ruleid policyname policy policyid aclname acl firewallrule quarantinerule',
    'rule',
  ),
  text(
    'cs3',
    4000,
    'entity.type resources.type',
    'resourcetype targettype objecttype',
    'resource_type',
  ),
  text(
    'cs4',
    4000,
    'entity.name resources.name',
    'resourcename resource targetname target',
    'resource',
  ),
  text('cs5', 4000, 'entity.uid resources.uid', 'resourceid targetid objectid', 'resource_uid'),
  text('fname', 1023, 'file.name evidences.file.name', 'filename'),
  text('filePath', 1023, 'file.path evidences.file.path', 'filepath'),
  row('count', 'fsize', 0, 'file.size evidences.file.size'),
  text('fileHash', 255, 'file.hashes.value evidences.file.hashes.value'),
  text('threatAttackID', 32, 'attacks.technique.uid finding_info.attacks.technique.uid'),
  text('msg', 1023, 'message', 'message msg description'),
  own('sluiceSeverity', '', 'severity'),
  own('sluiceOriginalTime', 'metadata.original_time', 'timestamp eventtime time ts messagetime'),
];

/** Attributes without output of their own, because a key or the header contains the same. */
export const writtenInKeys: readonly string[] = words(
  'class_uid category_uid category_name activity_id activity_name type_uid type_name severity_id severity status_id status ' +
    'metadata.version metadata.product metadata.uid metadata.log_name metadata.logged_time metadata.profiles metadata.tags ' +
    'actor.app_name actor.app_uid actor.user.type_id user.type_id entity.type_id entity_result.uid entity_result.name ' +
    'entity_result.type entity_result.type_id entity_result.version raw_data raw_data_size unmapped',
);

/** Attributes that replace a better one: they use dictionary keys only if that is missing. */
export const standIns: Readonly<Record<string, string>> = {
  'evidences.src_endpoint': 'src_endpoint',
  'evidences.dst_endpoint': 'dst_endpoint',
  'evidences.connection_info': 'connection_info',
  'evidences.file': 'file',
  'finding_info.attacks': 'attacks',
  resources: 'entity',
};

/** sluice's own keys that no value may use. */
export const reservedKeys: ReadonlySet<string> = new Set([
  ...cefKeys.map(({ key }) => key),
  'sluiceTruncated',
  'sluiceUnmapped',
]);

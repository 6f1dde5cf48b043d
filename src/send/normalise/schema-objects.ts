// The OCSF 1.8.0 objects (https://schema.ocsf.io/1.8.0/objects) and enums that the classes in schema-classes.ts use, in
// the same notation. A test compares them with the official schema, and that no required attribute is left out.

/** An object as the table has it. */
export interface ObjectRow {
  readonly attributes: string;
  /** At least one of these must be there. */
  readonly some?: string;
}

const named = 'name uid';
const endpoint =
  'ip:ip port:port hostname mac:mac name uid domain svc_name instance_uid interface_name interface_uid zone ' +
  'vlan_uid vpc_uid subnet_uid type_id=endpointType isp location:location owner:user os:os ' +
  'autonomous_system:autonomous_system';
const endpointSome =
  'ip uid name hostname svc_name instance_uid interface_uid interface_name domain';

/** The objects, by name. */
export const objectRows: Readonly<Record<string, ObjectRow>> = {
  metadata: {
    attributes:
      'original_event_uid event_code correlation_uid log_level log_provider log_version log_source log_format ' +
      'tenant_uid sequence:int labels[]',
  },
  network_endpoint: { attributes: endpoint, some: endpointSome },
  network_connection_info: {
    attributes:
      'direction_id=direction! boundary_id=boundary protocol_name protocol_num:int protocol_ver_id=ipVersion uid ' +
      'community_uid flag_history tcp_flags:int session:session',
  },
  network_traffic: {
    attributes:
      'bytes:long bytes_in:long bytes_out:long bytes_missed:long packets:long packets_in:long packets_out:long ' +
      'chunks:long chunks_in:long chunks_out:long start_time:time end_time:time',
  },
  network_interface: {
    attributes: 'ip:ip mac:mac name hostname uid namespace type_id=interfaceType',
    some: 'ip mac name hostname uid',
  },
  autonomous_system: { attributes: 'name number:int', some: 'number name' },
  tls: {
    attributes:
      'version! cipher sni alert:int key_length:int handshake_dur:int certificate:certificate',
  },
  certificate: {
    attributes:
      'issuer! serial_number! subject version uid created_time:time expiration_time:time is_self_signed:bool',
  },
  http_request: {
    attributes:
      'http_method=httpMethod url:url user_agent referrer version args uid length:int body_length:int x_forwarded_for:ip[]',
  },
  http_response: {
    attributes: 'code:int! message status content_type length:int body_length:int latency:int',
  },
  url: {
    attributes:
      'url_string path hostname domain subdomain port:port query_string scheme resource_type categories[]',
    some: 'url_string path',
  },
  dns_query: { attributes: 'hostname! type class packet_uid:int' },
  dns_answer: { attributes: 'rdata! type class ttl:int packet_uid:int' },
  user: {
    attributes:
      'name uid uid_alt email_addr:email full_name display_name domain type_id=userType phone_number ' +
      'risk_level_id=risk risk_score:int has_mfa:bool account:account groups:group[] org:organization',
    some: 'account name uid',
  },
  account: { attributes: named, some: named },
  group: { attributes: `${named} uid_alt desc domain type privileges[]`, some: named },
  organization: { attributes: `${named} ou_name ou_uid`, some: named },
  actor: {
    attributes: 'user:user session:session app_name app_uid process:process',
    some: 'process user invoked_by session app_name app_uid',
  },
  session: {
    attributes:
      'uid uid_alt issuer terminal credential_uid expiration_reason count:int created_time:time expiration_time:time ' +
      'is_mfa:bool is_remote:bool is_vpn:bool',
  },
  process: {
    attributes:
      'name uid pid:int cmd_line path integrity_id=integrity user:user file:file created_time:time',
    some: 'pid uid cpid',
  },
  service: { attributes: `${named} version labels[]`, some: named },
  product: { attributes: `${named} vendor_name version path lang`, some: named },
  api: {
    attributes: 'operation! service:service version request:request response:response group:group',
  },
  request: { attributes: 'uid! flags[] data:json' },
  response: { attributes: 'code:int error error_message message flags[] data:json' },
  resource_details: {
    attributes: `${named} uid_alt type version namespace criticality hostname ip:ip labels[] owner:user data:json role_id=role`,
    some: named,
  },
  managed_entity: {
    attributes: `${named} type_id=entityType version data:json user:user group:group policy:policy org:organization device:device`,
    some: 'name uid device group org policy user',
  },
  policy: {
    attributes: `${named} desc type version data:json is_applied:bool`,
    some: 'name type uid',
  },
  firewall_rule: {
    attributes: `${named} category condition desc type version duration:long match_details[] match_location sensitivity rate_limit:int`,
    some: named,
  },
  finding_info: {
    attributes:
      'uid! uid_alt title desc src_url types[] data_sources[] created_time:time modified_time:time first_seen_time:time ' +
      'last_seen_time:time related_events_count:int analytic:analytic attacks:attack[] product:product',
  },
  analytic: {
    attributes: `${named} category desc version type_id=analyticType! state_id=analyticState`,
    some: named,
  },
  attack: {
    attributes: 'tactic:tactic technique:technique sub_technique:sub_technique version',
    some: 'tactic technique sub_technique',
  },
  tactic: { attributes: `${named} src_url`, some: named },
  technique: { attributes: `${named} src_url`, some: named },
  sub_technique: { attributes: `${named} src_url`, some: named },
  evidences: {
    attributes:
      'data:json src_endpoint:network_endpoint dst_endpoint:network_endpoint user:user url:url file:file ' +
      'connection_info:network_connection_info query:dns_query process:process device:device actor:actor',
    some:
      'actor api connection_info data database databucket device dst_endpoint email file process query src_endpoint ' +
      'url user job script reg_key reg_value win_service',
  },
  device: {
    attributes:
      'ip:ip mac:mac hostname name uid uid_alt domain instance_uid interface_name interface_uid zone region model ' +
      'vendor_name desc type_id=endpointType! os:os location:location owner:user org:organization groups:group[] ' +
      'is_managed:bool is_compliant:bool is_trusted:bool risk_level_id=risk risk_score:int first_seen_time:time ' +
      'last_seen_time:time',
    some: 'ip uid name hostname instance_uid interface_uid interface_name',
  },
  os: { attributes: 'name! version build type_id=osType!' },
  location: {
    attributes: 'city country continent region postal_code desc lat:float long:float',
    some: 'city country postal_code region',
  },
  file: {
    attributes:
      'name! path size:long mime_type ext uid type_id=fileType! created_time:time modified_time:time hashes:fingerprint[]',
  },
  fingerprint: { attributes: 'value! algorithm_id=hash!' },
};

const low = '1 Low,2 Medium,3 High';

/** The enums, `id caption` each; `httpMethod` is one of texts. */
export const enumRows: Readonly<Record<string, string>> = {
  severity: '0 Unknown,1 Informational,2 Low,3 Medium,4 High,5 Critical,6 Fatal,99 Other',
  status: '0 Unknown,1 Success,2 Failure,99 Other',
  findingStatus:
    '0 Unknown,1 New,2 In Progress,3 Suppressed,4 Resolved,5 Archived,6 Deleted,99 Other',
  incidentStatus: '0 Unknown,1 New,2 In Progress,3 On Hold,4 Resolved,5 Closed,99 Other',
  action: '0 Unknown,1 Allowed,2 Denied,3 Observed,4 Modified,99 Other',
  disposition:
    '0 Unknown,1 Allowed,2 Blocked,3 Quarantined,4 Isolated,5 Deleted,6 Dropped,7 Custom Action,8 Approved,9 Restored,' +
    '10 Exonerated,11 Corrected,12 Partially Corrected,13 Uncorrected,14 Delayed,15 Detected,16 No Action,17 Logged,' +
    '18 Tagged,19 Alert,20 Count,21 Reset,22 Captcha,23 Challenge,24 Access Revoked,25 Rejected,26 Unauthorized,' +
    '27 Error,99 Other',
  confidence: `0 Unknown,${low},99 Other`,
  impact: `0 Unknown,${low},4 Critical,99 Other`,
  priority: `0 Unknown,${low},4 Critical,99 Other`,
  risk: `0 Info,${low},4 Critical,99 Other`,
  verdict:
    '0 Unknown,1 False Positive,2 True Positive,3 Disregard,4 Suspicious,5 Benign,6 Test,7 Insufficient Data,' +
    '8 Security Risk,9 Managed Externally,10 Duplicate,99 Other',
  authProtocol:
    '0 Unknown,1 NTLM,2 Kerberos,3 Digest,4 OpenID,5 SAML,6 OAUTH 2.0,7 PAP,8 CHAP,9 EAP,10 RADIUS,' +
    '11 Basic Authentication,12 LDAP,99 Other',
  logonType:
    '0 Unknown,1 System,2 Interactive,3 Network,4 Batch,5 OS Service,7 Unlock,8 Network Cleartext,9 New Credentials,' +
    '10 Remote Interactive,11 Cached Interactive,12 Cached Remote Interactive,13 Cached Unlock,99 Other',
  observationPoint: '0 Unknown,1 Source,2 Destination,3 Neither,4 Both,99 Other',
  tunnelType: '0 Unknown,1 Split Tunnel,2 Full Tunnel,99 Other',
  deviceState: '0 Unknown,1 Disabled,2 Enabled,99 Other',
  securityLevel: '0 Unknown,1 Secure,2 At Risk,3 Compromised,99 Other',
  rcode:
    '0 NoError,1 FormError,2 ServError,3 NXDomain,4 NotImp,5 Refused,6 YXDomain,7 YXRRSet,8 NXRRSet,9 NotAuth,' +
    '10 NotZone,11 DSOTYPENI,16 BADSIG_VERS,17 BADKEY,18 BADTIME,19 BADMODE,20 BADNAME,21 BADALG,22 BADTRUNC,' +
    '23 BADCOOKIE,24 Unassigned,25 Reserved,99 Other',
  direction: '0 Unknown,1 Inbound,2 Outbound,3 Lateral,4 Local,99 Other',
  boundary:
    '0 Unknown,1 Localhost,2 Internal,3 External,4 Same VPC,5 Internet/VPC Gateway,6 Virtual Private Gateway,' +
    '7 Intra-region VPC,8 Inter-region VPC,9 Local Gateway,10 Gateway VPC,11 Internet Gateway,99 Other',
  ipVersion:
    '0 Unknown,4 Internet Protocol version 4 (IPv4),6 Internet Protocol version 6 (IPv6),99 Other',
  interfaceType: '0 Unknown,1 Wired,2 Wireless,3 Mobile,4 Tunnel,99 Other',
  endpointType:
    '0 Unknown,1 Server,2 Desktop,3 Laptop,4 Tablet,5 Mobile,6 Virtual,7 IOT,8 Browser,9 Firewall,10 Switch,11 Hub,' +
    '12 Router,13 IDS,14 IPS,15 Load Balancer,99 Other',
  httpMethod: 'CONNECT,DELETE,GET,HEAD,OPTIONS,PATCH,POST,PUT,TRACE',
  userType: '0 Unknown,1 User,2 Admin,3 System,4 Service,99 Other',
  entityType:
    '0 Unknown,1 Device,2 User,3 Group,4 Organization,5 Policy,6 Email,7 Network Zone,99 Other',
  role: '0 Unknown,1 Target,2 Actor,3 Affected,4 Related,99 Other',
  integrity: '0 Unknown,1 Untrusted,2 Low,3 Medium,4 High,5 System,6 Protected,99 Other',
  analyticType:
    '0 Unknown,1 Rule,2 Behavioral,3 Statistical,4 Learning (ML/DL),5 Fingerprinting,6 Tagging,7 Keyword Match,' +
    '8 Regular Expressions,9 Exact Data Match,10 Partial Data Match,11 Indexed Data Match,99 Other',
  analyticState: '0 Unknown,1 Active,2 Suppressed,3 Experimental,99 Other',
  osType:
    '0 Unknown,99 Other,100 Windows,101 Windows Mobile,200 Linux,201 Android,300 macOS,301 iOS,302 iPadOS,' +
    '400 Solaris,401 AIX,402 HP-UX',
  fileType:
    '0 Unknown,1 Regular File,2 Folder,3 Character Device,4 Block Device,5 Local Socket,6 Named Pipe,7 Symbolic Link,' +
    '8 Executable File,99 Other',
  hash:
    '0 Unknown,1 MD5,2 SHA-1,3 SHA-256,4 SHA-512,5 CTPH,6 TLSH,7 quickXorHash,8 SHA-224,9 SHA-384,10 SHA-512/224,' +
    '11 SHA-512/256,12 SHA3-224,13 SHA3-256,14 SHA3-384,15 SHA3-512,16 xxHash H3 64-bit,17 xxHash H3 128-bit,' +
    '18 Imphash,19 NPF,20 HASSH,99 Other',
};

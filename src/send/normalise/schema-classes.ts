// The OCSF 1.8.0 classes (https://schema.ocsf.io/1.8.0/classes) that sluice writes, as far as logs of a network-security
// platform need them; a test compares every word with the official schema. An attribute is written
//   name            text                        name:ip, name:int …   another type, or an object's name
//   name_id=enum    an enum with its caption in `name`                name…[]   a list      name…!   required
//   +name           only with the profile security_control            ~name     only with the profile host
//   -name           one of `baseAttributes` that the class lacks
// schema.ts reads this; nothing here does work.

/** A class as the table has it. */
export interface ClassRow {
  readonly uid: number;
  readonly caption: string;
  readonly activities: string;
  /** `activity_id` of a record that tells none. */
  readonly usual: number;
  readonly attributes: string;
  /** At least one of these must be there. */
  readonly some?: string;
  /** Exactly one of these must be there. */
  readonly one?: string;
}

/** Attributes of every class; a class may have its own version of one. */
export const baseAttributes =
  'time:time! message status_code status_detail count:int duration:long start_time:time end_time:time ' +
  'timezone_offset:int severity_id=severity! status_id=status activity_id=activity! metadata:metadata! ' +
  '+action_id=action +disposition_id=disposition +confidence_id=confidence +confidence_score:int +is_alert:bool ' +
  '+firewall_rule:firewall_rule +policy:policy +attacks:attack[] +risk_details +risk_level_id=risk +risk_score:int ' +
  '~device:device ~actor:actor';

const network =
  'src_endpoint:network_endpoint dst_endpoint:network_endpoint connection_info:network_connection_info ' +
  'traffic:network_traffic cumulative_traffic:network_traffic tls:tls app_name app_protocol_name ' +
  'observation_point_id=observationPoint';
const identity =
  'actor:actor src_endpoint:network_endpoint http_request:http_request http_response:http_response';
const crud = '0 Unknown,1 Create,2 Read,3 Update,4 Delete';
const findings = '0 Unknown,1 Create,2 Update,3 Close,99 Other';

/** The classes, by the name that a mapping gives. */
export const classRows = {
  base_event: {
    uid: 0,
    caption: 'Base Event',
    activities: '0 Unknown,99 Other',
    usual: 0,
    attributes: '',
  },
  account_change: {
    uid: 3001,
    caption: 'Account Change',
    activities:
      '0 Unknown,1 Create,2 Enable,3 Password Change,4 Password Reset,5 Disable,6 Delete,7 Attach Policy,' +
      '8 Detach Policy,9 Lock,10 MFA Factor Enable,11 MFA Factor Disable,12 Unlock,99 Other',
    usual: 0,
    attributes: `${identity} -policy user:user! user_result:user policies:policy[]`,
  },
  authentication: {
    uid: 3002,
    caption: 'Authentication',
    activities:
      '0 Unknown,1 Logon,2 Logoff,3 Authentication Ticket,4 Service Ticket Request,5 Service Ticket Renew,6 Preauth,' +
      '7 Account Switch,99 Other',
    usual: 1,
    attributes:
      `${identity} user:user! service:service dst_endpoint:network_endpoint session:session ` +
      'auth_protocol_id=authProtocol logon_type_id=logonType is_mfa:bool is_remote:bool is_cleartext:bool ' +
      'is_new_logon:bool',
    some: 'service dst_endpoint',
  },
  authorize_session: {
    uid: 3003,
    caption: 'Authorize Session',
    activities: '0 Unknown,1 Assign Privileges,2 Assign Groups,99 Other',
    usual: 0,
    attributes: `${identity} user:user! group:group privileges[] session:session dst_endpoint:network_endpoint`,
    one: 'privileges group',
  },
  entity_management: {
    uid: 3004,
    caption: 'Entity Management',
    activities: `${crud},5 Move,6 Enroll,7 Unenroll,8 Enable,9 Disable,10 Activate,11 Deactivate,12 Suspend,13 Resume,99 Other`,
    usual: 0,
    attributes: `${identity} entity:managed_entity! entity_result:managed_entity comment access_list[] access_mask:int`,
  },
  user_access: {
    uid: 3005,
    caption: 'User Access Management',
    activities: '0 Unknown,1 Assign Privileges,2 Revoke Privileges,99 Other',
    usual: 0,
    attributes: `${identity} user:user! privileges[]! resources:resource_details[]`,
  },
  group_management: {
    uid: 3006,
    caption: 'Group Management',
    activities:
      '0 Unknown,1 Assign Privileges,2 Revoke Privileges,3 Add User,4 Remove User,5 Delete,6 Create,7 Add Subgroup,' +
      '8 Remove Subgroup,99 Other',
    usual: 0,
    attributes: `${identity} group:group! subgroup:group user:user privileges[] resource:resource_details`,
  },
  detection_finding: {
    uid: 2004,
    caption: 'Detection Finding',
    activities: findings,
    usual: 1,
    attributes:
      'finding_info:finding_info! status_id=findingStatus confidence_id=confidence confidence_score:int comment ' +
      'is_alert:bool impact_id=impact impact_score:int risk_details risk_level_id=risk risk_score:int device:device ' +
      'resources:resource_details[] evidences:evidences[]',
  },
  incident_finding: {
    uid: 2005,
    caption: 'Incident Finding',
    activities: findings,
    usual: 1,
    attributes:
      'finding_info_list:finding_info[]! status_id=incidentStatus! assignee:user assignee_group:group comment desc ' +
      'confidence_id=confidence confidence_score:int impact_id=impact impact_score:int priority_id=priority ' +
      'src_url is_suspected_breach:bool verdict_id=verdict attacks:attack[]',
    some: 'assignee assignee_group',
  },
  network_activity: {
    uid: 4001,
    caption: 'Network Activity',
    activities: '0 Unknown,1 Open,2 Close,3 Reset,4 Fail,5 Refuse,6 Traffic,7 Listen,99 Other',
    usual: 6,
    attributes: `${network} url:url is_src_dst_assignment_known:bool`,
    some: 'dst_endpoint src_endpoint',
  },
  http_activity: {
    uid: 4002,
    caption: 'HTTP Activity',
    activities:
      '0 Unknown,1 Connect,2 Delete,3 Get,4 Head,5 Options,6 Post,7 Put,8 Trace,9 Patch,99 Other',
    usual: 0,
    attributes: `${network} http_request:http_request http_response:http_response file:file`,
    some: 'http_request http_response',
  },
  dns_activity: {
    uid: 4003,
    caption: 'DNS Activity',
    activities: '0 Unknown,1 Query,2 Response,6 Traffic,99 Other',
    usual: 1,
    attributes: `${network} query:dns_query answers:dns_answer[] rcode_id=rcode query_time:time response_time:time`,
    some: 'dst_endpoint src_endpoint',
  },
  tunnel_activity: {
    uid: 4014,
    caption: 'Tunnel Activity',
    activities: '0 Unknown,1 Open,2 Close,3 Renew,99 Other',
    usual: 0,
    attributes:
      `${network} protocol_name session:session tunnel_interface:network_interface tunnel_type_id=tunnelType ` +
      'user:user device:device',
    some: 'connection_info session src_endpoint traffic tunnel_interface tunnel_type_id',
  },
  device_config_state_change: {
    uid: 5019,
    caption: 'Device Config State Change',
    activities: '0 Unknown,1 Log,2 Collect,99 Other',
    usual: 1,
    attributes:
      'device:device! actor:actor state_id=deviceState security_level_id=securityLevel ' +
      'prev_security_level_id=securityLevel',
  },
  application_lifecycle: {
    uid: 6002,
    caption: 'Application Lifecycle',
    activities:
      '0 Unknown,1 Install,2 Remove,3 Start,4 Stop,5 Restart,6 Enable,7 Disable,8 Update,99 Other',
    usual: 0,
    attributes: 'app:product!',
  },
  api_activity: {
    uid: 6003,
    caption: 'API Activity',
    activities: `${crud},99 Other`,
    usual: 0,
    attributes:
      'actor:actor! api:api! src_endpoint:network_endpoint! dst_endpoint:network_endpoint ' +
      'resources:resource_details[] http_request:http_request http_response:http_response',
  },
} as const satisfies Record<string, ClassRow>;

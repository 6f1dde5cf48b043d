// The app's knowledge of our events, as tables: calculated fields of Splunk's Common Information Model (CIM), event types
// and tags. Field names are those that Splunk reads from OCSF JSON: a list of objects has {} after its name. Invariants: a
// calculated field reads extracted fields only, since Splunk calculates all of them at the same time; each field named here
// is in an event of the tests.

/** Both source types: the one that `init` writes, and the default of the sink. */
export const sourceTypes = ['ocsf:sluice', 'sluice:ocsf'] as const;

const change = 'class_uid=3001 OR class_uid=3004 OR class_uid=6003';
const isTicket = `class_uid=3004 AND like('entity.type',"ticket%")`;
const first = (path: string) => `mvindex('${path}',0)`;
const targetType = `coalesce(${first('resources{}.type')},'entity.type')`;
const targetUid = `coalesce(${first('resources{}.uid')},'entity.uid')`;

const verdict = `case(action_id=1,"allowed",action_id=2,"blocked",action_id=3,"allowed",true(),null())`;
const changeAction = `case(activity_id=1,"created",activity_id=2,"read",activity_id=4,"deleted",activity_id=99,"other",true(),"modified")`;

/** Calculated fields by name: `EVAL-` in props.conf. */
export const calculated: Readonly<Record<string, string>> = {
  action: `case(class_uid=3002,case(status_id=1,"success",status_id=2,"failure",true(),null()),${change},${changeAction},class_uid=4001 OR class_uid=2004,${verdict},true(),action)`,
  app: `coalesce('app.name','api.service.name','service.name','metadata.product.name')`,
  bytes_in: `'traffic.bytes_in'`,
  bytes_out: `'traffic.bytes_out'`,
  category: first('finding_info.types{}'),
  change_type: `case(NOT (${change}),null(),class_uid=3001 OR match(${targetType},"(?i)user|admin|role|group|api_|account|session"),"AAA",true(),"configuration")`,
  description: 'message',
  dest: `coalesce('dst_endpoint.ip','dst_endpoint.hostname',${first('evidences{}.dst_endpoint.ip')},if(class_uid=3002 OR ${change},coalesce('service.name','api.service.name','metadata.product.name'),null()))`,
  dest_ip: `coalesce('dst_endpoint.ip',${first('evidences{}.dst_endpoint.ip')})`,
  dest_port: `coalesce('dst_endpoint.port',${first('evidences{}.dst_endpoint.port')})`,
  id: `'metadata.uid'`,
  ids_type: `if(class_uid=2004,"network",null())`,
  object: `coalesce(${first('resources{}.name')},'entity.name',${targetUid})`,
  object_attrs: `coalesce('unmapped.changed{}','unmapped.changes{}.field')`,
  object_category: targetType,
  object_id: targetUid,
  protocol: `if(class_uid=4001,"ip",null())`,
  rule: `coalesce('firewall_rule.name','firewall_rule.uid')`,
  severity: `case(severity_id=1,"informational",severity_id=2,"low",severity_id=3,"medium",severity_id=4,"high",severity_id=5 OR severity_id=6,"critical",true(),"unknown")`,
  signature: `'finding_info.title'`,
  signature_id: `'finding_info.uid'`,
  src: `coalesce('src_endpoint.ip','src_endpoint.hostname',${first('evidences{}.src_endpoint.ip')})`,
  src_ip: `coalesce('src_endpoint.ip',${first('evidences{}.src_endpoint.ip')})`,
  src_port: `coalesce('src_endpoint.port',${first('evidences{}.src_endpoint.port')})`,
  status: `case(${isTicket},coalesce('entity_result.data.status','entity.data.status'),status_id=1 AND (${change}),"success",status_id=2 AND (${change}),"failure",true(),status)`,
  ticket_id: `if(${isTicket},'entity.uid',null())`,
  transport: `lower('connection_info.protocol_name')`,
  type: `if('metadata.log_name'="sluice","alert",null())`,
  user: `coalesce('actor.user.name','user.name','actor.user.email_addr','user.email_addr','actor.user.uid','user.uid','actor.app_name')`,
  vendor_product: `coalesce('metadata.product.vendor_name'." ".'metadata.product.name','metadata.product.name')`,
};

/** An event type: the search for its events, and its tags. */
export interface EventType {
  readonly search: string;
  readonly tags: readonly string[];
  /** The CIM data model that finds its events by the tags. */
  readonly model: string;
  /** CIM fields that each of its events must have, and those that some must have. */
  readonly always: readonly string[];
  readonly often: readonly string[];
}

const changes = 'class_uid IN (3001, 3004, 6003) NOT activity_id=2';
const changeFields = {
  model: 'Change',
  always: ['action', 'change_type', 'object_category', 'object_id', 'vendor_product'],
  often: ['object', 'object_attrs', 'user', 'src', 'status', 'dest'],
} as const;

/** All event types by name. */
export const eventTypes: Readonly<Record<string, EventType>> = {
  sluice_authentication: {
    search: 'class_uid=3002',
    tags: ['authentication'],
    model: 'Authentication',
    always: ['action', 'app', 'dest', 'user', 'src'],
    often: [],
  },
  sluice_change: { search: changes, tags: ['change', 'audit'], ...changeFields },
  sluice_account_change: {
    search: `${changes} ("resources{}.type" IN ("user", "admin*", "role", "group", "api_user", "api_client") OR entity.type IN ("user", "admin*", "role", "group", "api_user", "api_client"))`,
    tags: ['change', 'account'],
    ...changeFields,
  },
  sluice_network_change: {
    search: `${changes} ("resources{}.type" IN ("firewall*", "policy", "tunnel", "site") OR entity.type IN ("rule", "object", "Policy", "site"))`,
    tags: ['change', 'network'],
    ...changeFields,
  },
  sluice_network_traffic: {
    search: 'class_uid=4001',
    tags: ['network', 'communicate'],
    model: 'Network_Traffic',
    always: ['action', 'src', 'src_ip', 'dest', 'dest_ip', 'dest_port', 'transport', 'protocol'],
    often: ['bytes_in', 'bytes_out', 'rule', 'src_port'],
  },
  sluice_intrusion: {
    search: 'class_uid=2004 NOT metadata.log_name=sluice',
    tags: ['ids', 'attack'],
    model: 'Intrusion_Detection',
    always: ['signature', 'severity', 'ids_type', 'src', 'dest', 'action', 'vendor_product'],
    often: ['signature_id', 'src_port', 'dest_port'],
  },
  sluice_alert: {
    search: 'metadata.log_name=sluice (class_uid=2004 OR severity_id>=4)',
    tags: ['alert'],
    model: 'Alerts',
    always: ['id', 'severity', 'type', 'app', 'description'],
    often: ['signature'],
  },
  sluice_ticket: {
    search: 'class_uid=3004 entity.type=ticket* NOT activity_id=2',
    tags: ['ticketing'],
    model: 'Ticket_Management',
    always: ['ticket_id', 'severity', 'description'],
    often: ['status'],
  },
};

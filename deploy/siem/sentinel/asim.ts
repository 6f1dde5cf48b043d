// ASIM parsers of Microsoft Sentinel over the table Sluice_CL, as tables of columns: a function with filters (vim…) and one
// without (ASim…) for each schema (https://learn.microsoft.com/azure/sentinel/normalization-about-schemas). Invariants: a
// filter on a column of the table comes before repeats are removed; each path into Event is in an event of the tests.

/** A parameter of a filtering parser; all have defaults. */
interface Parameter {
  readonly name: string;
  readonly type: 'datetime' | 'dynamic' | 'string' | 'int' | 'bool';
  readonly usual: string;
}

/** One schema. */
export interface AsimSchema {
  /** As in the names of functions, such as AuditEvent. */
  readonly name: string;
  readonly version: string;
  readonly parameters: readonly Parameter[];
  /** Filters on columns of the table. */
  readonly early: readonly string[];
  /** Names of values that columns use. */
  readonly lets: Readonly<Record<string, string>>;
  readonly columns: Readonly<Record<string, string>>;
  /** Filters on columns of the schema. */
  readonly late: readonly string[];
}

const at = (name: string): Parameter => ({ name, type: 'datetime', usual: 'datetime(null)' });
const list = (name: string): Parameter => ({ name, type: 'dynamic', usual: 'dynamic([])' });
const result: Parameter = { name: 'eventresult', type: 'string', usual: "'*'" };
const disabled: Parameter = { name: 'disabled', type: 'bool', usual: 'false' };
const times = [at('starttime'), at('endtime')];

const hasAny = (parameter: string, column: string) =>
  `array_length(${parameter}) == 0 or ${column} has_any (${parameter})`;
const inAny = (parameter: string, column: string) =>
  `array_length(${parameter}) == 0 or ${column} in~ (${parameter})`;
const prefix = (parameter: string, column: string) =>
  `array_length(${parameter}) == 0 or has_any_ipv4_prefix(${column}, ${parameter})`;
const absent = (parameter: string) => `array_length(${parameter}) == 0`;
const resultFilter = `eventresult == "*" or EventResult =~ eventresult`;

const outcome = `iff(EventResult in ("Success", "Failure"), EventResult, "NA")`;
const actorFields = {
  ActorUserId: 'tostring(Event.actor.user.uid)',
  ActorUsernameType: `case(isempty(ActorUsername), "", ActorUsername has "@", "UPN", "Simple")`,
  ActorOriginalUserType: 'tostring(Event.actor.user.type)',
  ActorUserType: `case(isnotempty(Event.actor.app_name), "Application", tolower(Event.actor.user.type) == "admin", "Admin", isempty(ActorUsername), "", "Regular")`,
  ActingAppId: 'tostring(Event.actor.app_uid)',
  ActingAppName: 'tostring(Event.actor.app_name)',
  ActingAppType: `iff(isnotempty(Event.actor.app_name), "Other", "")`,
};
const sourceFields = {
  SrcPortNumber: 'toint(Event.src_endpoint.port)',
  HttpUserAgent: 'tostring(Event.http_request.user_agent)',
};

const auditEvent: AsimSchema = {
  name: 'AuditEvent',
  version: '0.1.2',
  parameters: [
    ...times,
    list('srcipaddr_has_any_prefix'),
    list('eventtype_in'),
    result,
    list('actorusername_has_any'),
    list('operation_has_any'),
    list('object_has_any'),
    list('newvalue_has_any'),
    disabled,
  ],
  early: [
    'EventClass in ("API Activity", "Entity Management", "Account Change")',
    prefix('srcipaddr_has_any_prefix', 'SrcIpAddr'),
    hasAny('actorusername_has_any', 'ActorUsername'),
  ],
  lets: {
    Target: 'coalesce(Event.resources[0], Event.entity)',
    Before: 'coalesce(Event.resources[0].data.before, Event.entity.data)',
    After: 'coalesce(Event.resources[0].data.after, Event.entity_result.data)',
  },
  columns: {
    EventType: `case(EventType in ("Create", "Read", "Delete", "Enable", "Disable"), EventType, EventType == "Activate", "Enable", EventType in ("Deactivate", "Suspend"), "Disable", toint(Event.activity_id) == 99, "Other", "Set")`,
    EventResult: outcome,
    Operation: 'tostring(Event.metadata.event_code)',
    Object: 'tostring(coalesce(Target.name, Target.uid))',
    ObjectId: 'tostring(Target.uid)',
    OriginalObjectType: 'tostring(Target.type)',
    ObjectType: `case(Target.type has_any ("rule", "policy"), "Policy Rule", Target.type has_any ("agent_run", "session", "ticket"), "Other", "Configuration Atom")`,
    OldValue: 'tostring(Before)',
    NewValue: 'tostring(After)',
    ...actorFields,
    ...sourceFields,
    TargetAppName: 'tostring(Event.api.service.name)',
  },
  late: [
    resultFilter,
    inAny('eventtype_in', 'EventType'),
    hasAny('operation_has_any', 'Operation'),
    hasAny('object_has_any', 'Object'),
    hasAny('newvalue_has_any', 'NewValue'),
  ],
};

const authentication: AsimSchema = {
  name: 'Authentication',
  version: '0.1.4',
  parameters: [
    ...times,
    list('username_has_any'),
    list('targetappname_has_any'),
    list('srcipaddr_has_any_prefix'),
    list('srchostname_has_any'),
    list('eventtype_in'),
    list('eventresultdetails_in'),
    result,
    disabled,
  ],
  early: [
    'EventClass == "Authentication"',
    prefix('srcipaddr_has_any_prefix', 'SrcIpAddr'),
    hasAny('username_has_any', 'ActorUsername'),
    absent('srchostname_has_any'),
  ],
  lets: { Reason: 'tostring(coalesce(Event.status_detail, Event.unmapped.auth.reason))' },
  columns: {
    EventType: 'iff(toint(Event.activity_id) == 2, "Logoff", "Logon")',
    EventResult: outcome,
    EventOriginalResultDetails: 'Reason',
    EventResultDetails: `case(EventResult != "Failure", "", Reason has_any ("account_locked", "locked"), "User locked", Reason has_any ("password", "bad_password", "invalid_password"), "Incorrect password", Reason has "expired", "Session expired", "Other")`,
    TargetUsername: 'tostring(coalesce(Event.user.name, Event.user.email_addr, Event.user.uid))',
    TargetUsernameType: `iff(isempty(Event.user.name) and isnotempty(Event.user.email_addr), "UPN", "Simple")`,
    TargetUserId: 'tostring(Event.user.uid)',
    TargetUserType: `iff(tolower(Event.user.type) == "admin", "Admin", "Regular")`,
    TargetOriginalUserType: 'tostring(Event.user.type)',
    TargetAppName: 'tostring(coalesce(Event.service.name, Event.metadata.product.name))',
    TargetAppType: '"Service"',
    ...sourceFields,
  },
  late: [
    resultFilter,
    inAny('eventtype_in', 'EventType'),
    inAny('eventresultdetails_in', 'EventResultDetails'),
    hasAny('targetappname_has_any', 'TargetAppName'),
  ],
};

const networkSession: AsimSchema = {
  name: 'NetworkSession',
  version: '0.2.7',
  parameters: [
    ...times,
    list('srcipaddr_has_any_prefix'),
    list('dstipaddr_has_any_prefix'),
    list('ipaddr_has_any_prefix'),
    { name: 'dstportnumber', type: 'int', usual: 'int(null)' },
    list('hostname_has_any'),
    list('dvcaction'),
    result,
    disabled,
  ],
  early: [
    'EventClass == "Network Activity"',
    prefix('srcipaddr_has_any_prefix', 'SrcIpAddr'),
    absent('hostname_has_any'),
  ],
  lets: { Verdict: 'toint(Event.action_id)', Disposition: 'tostring(Event.disposition)' },
  columns: {
    EventType: '"NetworkSession"',
    DvcAction: `case(Verdict in (1, 3), "Allow", Verdict == 2 and Disposition == "Dropped", "Drop", Verdict == 2 and Disposition == "Reset", "Reset", Verdict == 2, "Deny", "")`,
    EventResult: 'iff(Verdict == 2, "Failure", "Success")',
    DstIpAddr: 'tostring(Event.dst_endpoint.ip)',
    DstPortNumber: 'toint(Event.dst_endpoint.port)',
    SrcPortNumber: 'toint(Event.src_endpoint.port)',
    NetworkProtocol: 'toupper(Event.connection_info.protocol_name)',
    SrcBytes: 'tolong(Event.traffic.bytes_out)',
    DstBytes: 'tolong(Event.traffic.bytes_in)',
    NetworkRuleName: 'tostring(Event.firewall_rule.name)',
  },
  late: [
    resultFilter,
    prefix('dstipaddr_has_any_prefix', 'DstIpAddr'),
    'array_length(ipaddr_has_any_prefix) == 0 or has_any_ipv4_prefix(SrcIpAddr, ipaddr_has_any_prefix) or has_any_ipv4_prefix(DstIpAddr, ipaddr_has_any_prefix)',
    'isnull(dstportnumber) or DstPortNumber == dstportnumber',
    inAny('dvcaction', 'DvcAction'),
  ],
};

const alertEvent: AsimSchema = {
  name: 'AlertEvent',
  version: '0.1',
  parameters: [
    ...times,
    list('ipaddr_has_any_prefix'),
    list('hostname_has_any'),
    list('username_has_any'),
    list('attacktactics_has_any'),
    list('attacktechniques_has_any'),
    list('threatcategory_has_any'),
    list('alertverdict_has_any'),
    list('eventseverity_has_any'),
    disabled,
  ],
  early: [
    'EventClass == "Detection Finding"',
    ...['hostname', 'attacktactics', 'attacktechniques', 'threatcategory', 'alertverdict'].map(
      (name) => absent(`${name}_has_any`),
    ),
    hasAny('username_has_any', 'ActorUsername'),
  ],
  lets: {},
  columns: {
    EventType: '"Alert"',
    EventSubType: '"Threat"',
    AlertId: 'EventUid',
    AlertName: "tostring(Event.finding_info['title'])",
    AlertDescription: 'EventMessage',
    AlertOriginalStatus: 'tostring(Event.status)',
    AlertStatus: 'iff(Event.status in ("Resolved", "Suppressed"), "Closed", "Active")',
    Username: 'ActorUsername',
    DvcIpAddr: 'tostring(Event.evidences[0].dst_endpoint.ip)',
    IpAddr: 'tostring(coalesce(Event.evidences[0].src_endpoint.ip, Event.src_endpoint.ip))',
  },
  late: [
    prefix('ipaddr_has_any_prefix', 'IpAddr'),
    inAny('eventseverity_has_any', 'EventSeverity'),
  ],
};

/** All schemas. */
export const asimSchemas: readonly AsimSchema[] = [
  auditEvent,
  authentication,
  networkSession,
  alertEvent,
];

/** Aliases and common columns, after those of the schema. */
const aliases: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  AuditEvent: { User: 'ActorUsername', Src: 'SrcIpAddr', IpAddr: 'SrcIpAddr' },
  Authentication: { User: 'TargetUsername', Src: 'SrcIpAddr', IpAddr: 'SrcIpAddr' },
  NetworkSession: { Src: 'SrcIpAddr', Dst: 'DstIpAddr', IpAddr: 'SrcIpAddr' },
  AlertEvent: { User: 'Username' },
};

/** A function of the workspace. */
export interface KqlFunction {
  readonly name: string;
  /** `name: type = default`, as a function's parameters are stored; empty: none. */
  readonly parameters: string;
  readonly body: string;
}

/** The parser with filters, and the one without. */
export function asimParsers(schema: AsimSchema): readonly KqlFunction[] {
  const { name, parameters } = schema;
  return [
    {
      name: `vim${name}Sluice`,
      parameters: parameters.map((one) => `${one.name}:${one.type}=${one.usual}`).join(', '),
      body: bodyOf(schema),
    },
    {
      name: `ASim${name}Sluice`,
      parameters: 'disabled:bool=false',
      body: `vim${name}Sluice(disabled=disabled)`,
    },
  ];
}

function bodyOf({ name, version, early, lets, columns, late }: AsimSchema): string {
  const where = (filters: readonly string[]) => filters.map((one) => `| where ${one}`);
  const extend = (values: Readonly<Record<string, string>>) => {
    const entries = Object.entries(values).map(([key, value]) => `    ${key} = ${value}`);
    return entries.length === 0 ? [] : [`| extend\n${entries.join(',\n')}`];
  };
  return [
    'Sluice_CL',
    '| where not(disabled) and Parts == 1',
    '| where (isnull(starttime) or TimeGenerated >= starttime) and (isnull(endtime) or TimeGenerated <= endtime)',
    ...where(early),
    '| summarize take_any(*) by EventUid',
    ...extend(lets),
    ...extend({
      EventCount: 'int(1)',
      EventEndTime: 'EventStartTime',
      EventOriginalType: 'tostring(Event.metadata.event_code)',
      EventOriginalSeverity: 'EventSeverity',
      EventSeverity: `case(EventSeverity in ("Critical", "Fatal", "High"), "High", EventSeverity in ("Medium", "Low"), EventSeverity, "Informational")`,
      EventSchema: `"${name}"`,
      EventSchemaVersion: `"${version}"`,
      EventVendor: 'iff(isempty(EventVendor), "sluice", EventVendor)',
      Dvc: 'EventProduct',
      AdditionalFields: 'Event.unmapped',
    }),
    ...extend(columns),
    ...extend(aliases[name] ?? {}),
    ...where(late),
    `| project-away ${['Event', 'EventClass', 'Part', 'Parts', 'Source', 'Stream', ...Object.keys(lets)].join(', ')}`,
  ].join('\n');
}

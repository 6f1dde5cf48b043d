// The common names under which records carry the values that an event needs. The upstream's audit
// record is not documented, so the table is generous: a name is compared without case, `_`, `-`, `.`,
// `@` and blanks, and a nested name is the same as a flat one (`actor.email`, `actorEmail`,
// `actor_email`, `{ "actor": { "email" } }`). Earlier names take precedence over later ones; the
// value of the later one stays in `unmapped`. Names in braces are tried with each of the prefixes
// before them:
//
//   id           id, event_id, event_uuid, uuid, audit_id, log_id, record_id, insert_id, guid, gid, uid …
//   time         timestamp, event_time, time, occurred_at, ts, created_at, created, date, published_at …
//   operation    action, event_name, operation, operation_name, event_type, activity, method_name, verb, type, name …
//   actor        actor, actor.user, performed_by, initiator, principal, user_identity, admin, operator, user, author,
//                created_by, login … { itself, name, username, login, display_name, id, uid, principal_id, email, type, role }
//   agent        agent, bot, copilot { itself, name, id }
//   source       ip, source, src, client, remote, caller, origin, request, context, network, actor, session
//                { ip, ip_address, address, addr, port, mac, hostname }; remote_addr, sourceIPAddress
//   target       target, resource, object, entity, item, and policy, site, tunnel, rule, device … { id, name, type }
//   result       status, outcome, result, success, error_code, status_code, reason, error_message …
//   severity     severity, sev, severity_id, priority, level, log_level, risk, criticality …
//   request      request_id, correlation_id, trace_id, session_id, user_agent, http method, url, http status
//   others       service, event_source, module, api_version, company_id, tenant_id, message, before, after, old, new
//   changes      changes, diff, modified_properties … as a list of { field, from, to } (change-list.ts)
//
// `event`, `audit`, `attributes`, `log` … are wrappers: their members count as members of the record,
// but rank after those outside.

import { Names } from './names.ts';
import { type Accepts, groupSize, slots, type Vocabulary } from './slots.ts';

const idNames =
  'id eventid eventuuid eventuid auditid auditeventid uuid logid activityid activityuuid entryid recordid documentid ' +
  'insertid messageid guid gid uid';
const timeNames =
  'timestamp eventtime time eventtimestamp occurredat occurred ts datetime createdat created creationtime isotimestamp ' +
  'eventdate date publishedat published generatedat generateddatetime loggedat performedat recordedat receivedat ' +
  'effectiveat activitydatetime messagetime starttime';
const messageNames =
  'message msg description summary eventmessage displaymessage actiondescription changedescription details detail text title';
const detailNames =
  'reason failurereason statusreason errormessage statusmessage statusdetail outcomereason resultreason errordetail ' +
  'resultdescription error';

const actorGroups: readonly string[] = [
  'actor actoruser actoraccount actorsessionuser',
  'performedby initiator initiatedby initiatedbyuser',
  'principal useridentity identity authenticationinfo',
  'admin administrator operator',
  'user useraccount',
  'author createdby sender subject caller',
  'login',
  'by addedby changedby updatedby modifiedby executedby requestedby triggeredby submittedby postedby enteredby',
  'requester requestor reporter commenter editor',
];

/** In a timeline the author of an entry is the actor; a user beside the author is the target. */
const timelineActorGroups: readonly string[] = [
  'author createdby addedby postedby enteredby by',
  ...actorGroups,
];

const targetGroups: readonly string[] = [
  'target targetresource targetobject targetentity',
  'resource resourcedetails',
  'object objectref',
  'entity affectedresource',
  'item',
];

const thingKinds =
  'policy rule site tunnel incident changerequest investigation agentrun run device group role webhook apikey network ' +
  'zone category certificate integration ticket';

const sourcePrefixes =
  'client source src remote caller request context network actor user session actorsession origin performedby ' +
  'clientinfo requestmetadata';

/** Containers that describe a connection without being either end: the ends are named inside. */
const carriers = 'network request context http connection clientinfo requestmetadata';

function addGroups(
  names: Names,
  groups: readonly string[],
  add: (prefix: string, rank: number) => void,
): void {
  groups.forEach((prefixes, group) => {
    names.contain(prefixes);
    for (const prefix of prefixes.split(' ')) add(prefix, (group + 1) * groupSize);
  });
}

function addActors(names: Names, groups = actorGroups): void {
  addGroups(names, groups, (prefix, rank) => {
    names.cross(
      prefix,
      'username login loginname name userprincipalname principalname alias -',
      slots.actorName,
      'word',
      rank,
    );
    names.cross(
      prefix,
      'id uid userid agentid principalid gid accountid',
      slots.actorUid,
      'text',
      rank,
    );
    names.cross(
      prefix,
      'email emailaddress emailaddr mail useremail principalemail alternateid',
      slots.actorEmail,
      'email',
      rank,
    );
    names.cross(prefix, 'type kind usertype role', slots.actorType, 'word', rank);
    names.cross(prefix, 'displayname fullname', slots.actorFullName, 'text', rank);
  });
  const ofUsers = groups.findIndex((prefixes) => prefixes.startsWith('user ')) + 1;
  names.add(slots.actorEmail, 'email', 'email', ofUsers * groupSize + 8);
  names.cross('agent bot copilot', '- name', slots.agentName);
  names.cross('agent bot copilot', 'id uid', slots.agentUid);
}

function addTargets(names: Names): void {
  addGroups(names, targetGroups, (prefix, rank) => {
    names.cross(prefix, 'name displayname label title -', slots.targetName, 'text', rank);
    names.cross(prefix, 'id uid gid arn', slots.targetUid, 'text', rank);
    names.cross(prefix, 'type kind resourcetype', slots.targetType, 'text', rank);
    names.cross(prefix, 'version', slots.targetVersion, 'text', rank);
  });
  thingKinds.split(' ').forEach((kind, index) => {
    const rank = (targetGroups.length + 1 + index) * groupSize;
    names.cross(kind, 'name title', slots.targetName, 'text', rank);
    names.cross(kind, 'id uid', slots.targetUid, 'text', rank);
  });
}

function addSource(names: Names): void {
  names.add(slots.srcIp, 'ip', 'ip ipaddress ipaddr sourceipaddress');
  names.cross(sourcePrefixes, 'ip ipaddress ipaddr address addr callerip', slots.srcIp, 'ip', 8);
  names.add(
    slots.srcIp,
    'ip',
    'clientipaddr actorclientip source client src origin xforwardedfor',
    200,
  );
  names.cross(
    carriers,
    'sourceip sourceipaddress sourceaddress srcip clientip clientipaddress remoteip remoteaddr',
    slots.srcIp,
    'ip',
    128,
  );
  names.cross('source src client remote', 'port', slots.srcPort, 'port');
  names.cross(carriers, 'sourceport srcport clientport remoteport', slots.srcPort, 'port', 16);
  names.cross('source src client', 'mac macaddress', slots.srcMac, 'mac');
  names.cross('source src client', 'host hostname', slots.srcHost, 'host');
}

function addRequest(names: Names): void {
  names.add(
    slots.requestId,
    'text',
    'requestid requestuid xrequestid reqid httprequestid apirequestid',
  );
  names
    .cross('request', 'id uid', slots.requestId, 'text', 16)
    .cross('context', 'requestid', slots.requestId, 'text', 24);
  names.add(slots.correlation, 'text', 'correlationid correlationuid xcorrelationid transactionid');
  names.cross('trace', 'id', slots.trace);
  names.cross('session actorsession', 'id uid', slots.session);
  names.add(
    slots.session,
    'text',
    'sid session contextsessionid actorsessionuid externalsessionid',
    16,
  );
  names.add(
    slots.userAgent,
    'text',
    'useragent useragentoriginal rawuseragent httpuseragent ua browseruseragent',
  );
  names.cross(
    'client context request http network connection actorsession session actor',
    'useragent ua',
    slots.userAgent,
    'text',
    16,
  );
  names.add(slots.userAgent, 'text', 'clientuseragentrawuseragent', 32);
  names.add(slots.httpMethod, 'method', 'httpmethod requestmethod method httprequestmethod');
  names.add(
    slots.url,
    'text',
    'url requesturl uri requesturi path requestpath httpurl httppath urlfull urloriginal',
  );
  names.add(
    slots.httpCode,
    'code',
    'httpstatus httpstatuscode httpresponsestatuscode responsecode responsestatuscode',
  );
  names.add(
    slots.httpCode,
    'code',
    'statuscode responsestatus responsestatuscode httpresponsecode',
    16,
  );
  names.contain(
    'http httprequest httpresponse response url responsestatus clientuseragent useragent',
  );
}

function addResult(names: Names, outcome: Accepts): void {
  names.add(
    slots.status,
    outcome,
    'status outcome outcomeresult result resultstatus actionresult resulttype',
  );
  names.add(
    slots.status,
    outcome,
    'eventoutcome executionstatus responsestatus success issuccess succeeded',
    8,
  );
  names.add(
    slots.statusCode,
    'text',
    'errorcode resultcode statuscode responsestatuscode reasoncode',
  );
  names.add(slots.statusDetail, 'text', detailNames);
  names.contain('status outcome result error');
}

function addSeverity(names: Names): void {
  names.add(slots.severity, 'severity_id', 'severityid');
  names.add(slots.severity, 'severity', 'severity sev severitylevel severityname', 1);
  names.add(slots.severity, 'risk', 'risklevel risk criticality threatlevel', 8);
  names.add(slots.severity, 'priority', 'priority urgency', 16);
  names.add(slots.severity, 'level', 'level loglevel', 24);
}

const wrappers: ReadonlySet<string> = new Set(
  'event audit protopayload auditevent attributes log'.split(' '),
);

/** The kind in a target's name, such as `policy` in `policy_id`; otherwise empty. */
export function impliedKind(group: number): string {
  return group <= targetGroups.length
    ? ''
    : (thingKinds.split(' ')[group - targetGroups.length - 1] ?? '');
}

/** The names for audit records: all of them. */
export function auditVocabulary(): Vocabulary {
  const names = new Names();
  names.add(slots.id, 'text', idNames).add(slots.time, 'time', timeNames);
  names.add(
    slots.operation,
    'word',
    'action eventname operation operationname eventaction actionname eventtype eventtypename',
  );
  names.add(
    slots.operation,
    'word',
    'activity activitytype activityname methodname actiontype operationtype verb type event name',
    8,
  );
  names.contain('action operation');
  names.cross('service api', 'servicename service name id', slots.service);
  names.add(
    slots.service,
    'word',
    'service eventsource module component subsystem applicationname application appname app workload',
    8,
  );
  names.add(slots.apiVersion, 'text', 'apiversion');
  names.cross('company tenant organization organisation org', 'id uid -', slots.tenant);
  addActors(names);
  addTargets(names);
  addSource(names);
  addRequest(names);
  addResult(names, 'outcome');
  addSeverity(names);
  names.add(slots.message, 'text', messageNames);
  const changes = 'changes change diff';
  names
    .cross(changes, 'before old', slots.before, 'json', 16)
    .cross(changes, 'after new', slots.after, 'json', 16);
  names.add(
    slots.changes,
    'changes',
    `${changes} changelist changedfields fieldchanges modifiedproperties modifications`,
  );
  names.add(slots.before, 'json', 'before old oldvalue oldvalues previous previousvalue');
  names.add(slots.after, 'json', 'after new newvalue newvalues current currentvalue');
  return { meanings: names.meanings, containers: names.containers, wrappers };
}

/** The names for webhook events: those of audit records, also in `data`. */
export function deliveryVocabulary(): Vocabulary {
  const vocabulary = auditVocabulary();
  const meanings = new Map(vocabulary.meanings);
  // Of these only a subject has a name.
  meanings.delete('name');
  return { ...vocabulary, meanings, wrappers: new Set([...wrappers, 'data', 'payload', 'body']) };
}

/** The names for logs, where only a mapping knows the rest. */
export function logVocabulary(): Vocabulary {
  const names = new Names();
  names.add(slots.id, 'text', idNames).add(slots.time, 'time', timeNames);
  names.add(slots.message, 'text', messageNames);
  addResult(names, 'outcome');
  addSeverity(names);
  names.add(slots.tenant, 'text', 'companyid tenantid tenantuid');
  return { meanings: names.meanings, containers: new Set(['error']), wrappers };
}

/** The names for records of a parent: those of logs, and the actor's. */
export function timelineVocabulary(): Vocabulary {
  const log = logVocabulary();
  const people = new Names();
  addActors(people, timelineActorGroups);
  // A ticket's subject is its title.
  people.meanings.delete('subject');
  const meanings = new Map(log.meanings);
  for (const [name, found] of people.meanings)
    meanings.set(name, [...(meanings.get(name) ?? []), ...found]);
  return { meanings, containers: new Set([...log.containers, ...people.containers]), wrappers };
}

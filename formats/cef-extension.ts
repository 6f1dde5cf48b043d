// Which OCSF attribute goes to which CEF extension key. CEF is a projection: it carries what security teams search by,
// under the dictionary's keys, and the JSON formats carry the whole. Each key stands at most once; empty values are left
// out, since decoders fall over them; times are epoch milliseconds. What decides a doubtful case:
//
//   cs1 rule, else policy    cs2 tenant    cs3 resource type    cs4 resource name, else uid    cs5 resource uid
//   cs6 uid, always whole    cn1 HTTP status    c6a1 device, c6a2 source, c6a3 destination where the address is IPv6
//   deviceFacility stream    in: bytes source to destination (OCSF bytes_out), out: the other way
//   suser who acts, duser who is acted on; at a login without another actor both are the one who logs in
//   sluiceRequestId, sluiceCorrelationId, sluiceDnsQueryType, sluiceUnmapped: our own, where the dictionary has no key
//
// The allotment of cs1 to cs6 is the same for every kind of event, so that a SIEM's column means one thing.

import type { Event } from '../src/contracts/event.ts';
import type { JsonObject } from '../src/contracts/json.ts';
import {
  type AddressKeys,
  addressPair,
  labelled,
  macPair,
  numberPair,
  type Pen,
  wholePair,
} from './cef-pairs.ts';
import { jsonText } from './json-text.ts';
import { actionOf, countOf, firstOf, part, portOf, statusOf, textOf, timeOf } from './parts.ts';

type Ocsf = Event['ocsf'];

const baseEvent = 0;
const authentication = 3002;
const dnsActivity = 4003;

/** The extension of an event: pairs with a blank between them, the uid first. */
export function extensionOf(event: Event, pen: Pen): string {
  const { ocsf } = event;
  const evidence = firstOf(ocsf.evidences);
  return (
    identity(event, pen) +
    people(ocsf, pen) +
    endpoint(part(ocsf.src_endpoint ?? evidence.src_endpoint), sourceKeys, pen) +
    endpoint(part(ocsf.dst_endpoint ?? evidence.dst_endpoint), targetKeys, pen) +
    device(part(ocsf.device), pen) +
    network(ocsf, part(ocsf.connection_info ?? evidence.connection_info), pen) +
    request(ocsf, pen) +
    subject(ocsf, pen) +
    finding(ocsf, part(ocsf.file ?? evidence.file), pen) +
    pen.pair(' msg=', ocsf.message, pen.lengths.msg) +
    (pen.unmapped || ocsf.class_uid === baseEvent ? unmapped(ocsf, pen) : '')
  );
}

function identity(event: Event, pen: Pen): string {
  const { ocsf } = event;
  const { lengths } = pen;
  const metadata = part(ocsf.metadata);
  const count = countOf(ocsf.count);
  return (
    // Hexadecimal digits: nothing to escape, and never shortened with the other values.
    `cs6=${event.uid} cs6Label=uid` +
    numberPair(' rt=', timeOf(ocsf.time)) +
    wholePair(' externalId=', metadata.original_event_uid, lengths.externalId) +
    pen.pair(' cat=', ocsf.class_name, lengths.cat) +
    pen.pair(' act=', actionOf(ocsf), lengths.act) +
    pen.pair(' outcome=', outcomeOf(ocsf), lengths.outcome) +
    pen.pair(' reason=', reasonOf(ocsf), lengths.reason) +
    numberPair(' start=', timeOf(ocsf.start_time)) +
    numberPair(' end=', timeOf(ocsf.end_time)) +
    numberPair(' cnt=', count !== undefined && count > 1 ? count : undefined) +
    pen.pair(' deviceFacility=', event.stream, lengths.deviceFacility) +
    labelled(pen.pair(' cs2=', metadata.tenant_uid, lengths.cs2), ' cs2Label=tenant') +
    pen.pair(' sluiceCorrelationId=', metadata.correlation_uid, lengths.sluiceCorrelationId)
  );
}

function outcomeOf(ocsf: Ocsf): string | undefined {
  if (ocsf.status_id === 1) return 'success';
  if (ocsf.status_id === 2) return 'failure';
  return statusOf(ocsf);
}

function reasonOf(ocsf: Ocsf): string | undefined {
  return textOf(ocsf.status_detail) ?? textOf(ocsf.status_code) ?? textOf(ocsf.rcode);
}

function people(ocsf: Ocsf, pen: Pen): string {
  const { lengths } = pen;
  const actor = part(ocsf.actor);
  const target = part(ocsf.user ?? part(ocsf.entity).user);
  const acting = ocsf.class_uid === authentication && !actor.user ? target : part(actor.user);
  const service =
    textOf(part(part(ocsf.api).service).name) ?? textOf(actor.app_name) ?? textOf(actor.invoked_by);
  return (
    pen.pair(' suser=', nameOf(acting), lengths.suser) +
    pen.pair(' suid=', acting.uid, lengths.suid) +
    pen.pair(' spriv=', privilegesOf(acting), lengths.spriv) +
    pen.pair(' duser=', nameOf(target), lengths.duser) +
    pen.pair(' duid=', target.uid, lengths.duid) +
    pen.pair(' sourceServiceName=', service, lengths.sourceServiceName) +
    pen.pair(' destinationServiceName=', part(ocsf.service).name, lengths.destinationServiceName)
  );
}

function nameOf(user: JsonObject): string | undefined {
  return textOf(user.name) ?? textOf(user.email_addr);
}

function privilegesOf(user: JsonObject): string | undefined {
  if (user.type_id === 1) return 'User';
  if (user.type_id === 2) return 'Administrator';
  return textOf(user.type);
}

interface EndpointKeys extends AddressKeys {
  readonly host: string;
  readonly hostLength: 'shost' | 'dhost';
  readonly port: string;
  readonly mac: string;
  readonly interface: string;
  readonly interfaceLength: 'deviceInboundInterface' | 'deviceOutboundInterface';
}

const sourceKeys: EndpointKeys = {
  ip4: ' src=',
  ip6: ' c6a2=',
  ip6Label: ' c6a2Label=Source IPv6 Address',
  host: ' shost=',
  hostLength: 'shost',
  port: ' spt=',
  mac: ' smac=',
  interface: ' deviceInboundInterface=',
  interfaceLength: 'deviceInboundInterface',
};

const targetKeys: EndpointKeys = {
  ip4: ' dst=',
  ip6: ' c6a3=',
  ip6Label: ' c6a3Label=Destination IPv6 Address',
  host: ' dhost=',
  hostLength: 'dhost',
  port: ' dpt=',
  mac: ' dmac=',
  interface: ' deviceOutboundInterface=',
  interfaceLength: 'deviceOutboundInterface',
};

const deviceKeys: AddressKeys = {
  ip4: ' dvc=',
  ip6: ' c6a1=',
  ip6Label: ' c6a1Label=Device IPv6 Address',
};

function endpoint(end: JsonObject, keys: EndpointKeys, pen: Pen): string {
  return (
    addressPair(end.ip, keys) +
    pen.pair(keys.host, hostOf(end), pen.lengths[keys.hostLength]) +
    numberPair(keys.port, portOf(end.port)) +
    macPair(keys.mac, end.mac) +
    pen.pair(keys.interface, end.interface_name, pen.lengths[keys.interfaceLength])
  );
}

function device(device: JsonObject, pen: Pen): string {
  return (
    addressPair(device.ip, deviceKeys) +
    pen.pair(' dvchost=', hostOf(device), pen.lengths.dvchost) +
    pen.pair(' deviceExternalId=', device.uid, pen.lengths.deviceExternalId)
  );
}

function hostOf(end: JsonObject): string | undefined {
  return textOf(end.hostname) ?? textOf(end.name);
}

function network(ocsf: Ocsf, connection: JsonObject, pen: Pen): string {
  const { lengths } = pen;
  const traffic = part(ocsf.traffic);
  const query = part(ocsf.query);
  return (
    pen.pair(' proto=', connection.protocol_name, lengths.proto) +
    pen.pair(' app=', applicationOf(ocsf), lengths.app) +
    numberPair(' in=', countOf(traffic.bytes_out)) +
    numberPair(' out=', countOf(traffic.bytes_in)) +
    numberPair(' deviceDirection=', directionOf(connection.direction_id)) +
    pen.pair(' destinationDnsDomain=', query.hostname, lengths.destinationDnsDomain) +
    pen.pair(' sluiceDnsQueryType=', query.type, lengths.sluiceDnsQueryType)
  );
}

function applicationOf(ocsf: Ocsf): string | undefined {
  if (ocsf.class_uid === dnsActivity) return 'DNS';
  return (
    textOf(ocsf.app_protocol_name) ??
    textOf(ocsf.app_name) ??
    textOf(part(ocsf.dst_endpoint).svc_name)
  );
}

/** CEF counts inbound 0 and outbound 1 where OCSF has 1 and 2. */
function directionOf(directionId: unknown): number | undefined {
  return directionId === 1 || directionId === 2 ? directionId - 1 : undefined;
}

function request(ocsf: Ocsf, pen: Pen): string {
  const { lengths } = pen;
  const http = part(ocsf.http_request);
  const url = part(http.url ?? ocsf.url);
  const status = countOf(part(ocsf.http_response).code);
  const requestId = textOf(part(part(ocsf.api).request).uid) ?? http.uid;
  return (
    pen.pair(' request=', textOf(url.url_string) ?? url.path, lengths.request) +
    pen.pair(' requestMethod=', http.http_method, lengths.requestMethod) +
    pen.pair(' requestClientApplication=', http.user_agent, lengths.requestClientApplication) +
    pen.pair(' requestContext=', http.referrer, lengths.requestContext) +
    pen.pair(' sluiceRequestId=', requestId, lengths.sluiceRequestId) +
    labelled(numberPair(' cn1=', status), ' cn1Label=http_status')
  );
}

/** What was acted on, and the rule that decided. */
function subject(ocsf: Ocsf, pen: Pen): string {
  const { lengths } = pen;
  const resource = part(ocsf.entity ?? firstOf(ocsf.resources));
  const rule = part(ocsf.firewall_rule ?? ocsf.policy);
  return (
    labelled(pen.pair(' cs1=', titleOf(rule), lengths.cs1), ' cs1Label=rule') +
    labelled(pen.pair(' cs3=', resource.type, lengths.cs3), ' cs3Label=resource_type') +
    labelled(pen.pair(' cs4=', titleOf(resource), lengths.cs4), ' cs4Label=resource') +
    labelled(pen.pair(' cs5=', resource.uid, lengths.cs5), ' cs5Label=resource_uid')
  );
}

function titleOf(thing: JsonObject): string | undefined {
  return textOf(thing.name) ?? textOf(thing.uid);
}

/** What a detection adds: the file, and the technique (CEF 1.2). */
function finding(ocsf: Ocsf, file: JsonObject, pen: Pen): string {
  const { lengths } = pen;
  const attack = firstOf(ocsf.attacks ?? part(ocsf.finding_info).attacks);
  const technique = pen.pair(
    ' threatAttackID=',
    part(attack.technique).uid,
    lengths.threatAttackID,
  );
  return (
    pen.pair(' fname=', file.name, lengths.fname) +
    pen.pair(' filePath=', file.path, lengths.filePath) +
    numberPair(' fsize=', countOf(file.size)) +
    pen.pair(' fileHash=', firstOf(file.hashes).value, lengths.fileHash) +
    (technique === ''
      ? ''
      : technique + pen.pair(' frameworkName=', 'MITRE ATT&CK', lengths.frameworkName))
  );
}

/** What the mapping did not place, as JSON: on request, and of a Base Event, which tells nothing without it. */
function unmapped(ocsf: Ocsf, pen: Pen): string {
  if (ocsf.unmapped === undefined) return '';
  return pen.pair(' sluiceUnmapped=', jsonText(ocsf.unmapped), pen.lengths.sluiceUnmapped);
}

// One event as an OpenTelemetry log record. Resource and scope name the emitter (sluice);
// attributes describe the occurrence under the names of the semantic conventions, so that a back
// end finds it like any other telemetry. Invariant: the body (or, if it is a text, the attribute
// `ocsf`) holds the whole OCSF event, so that nothing is lost. `log.record.uid` identifies repeated
// events: collectors do not deduplicate.

import type { AnyValue, SeverityNumber } from '@opentelemetry/api';
import type { Event, Look } from '../src/contracts/index.ts';
import { rawData as rawDataOf } from './json.ts';
import { anyValue } from './otel-value.ts';
import {
  actingUser,
  classNameOf,
  countOf,
  epochMsOf,
  part,
  portOf,
  severityOf,
  textOf,
} from './parts.ts';
import { textsOfSentence } from './sentence.ts';

/** The body's content: the event as a map, the event as JSON text, or a sentence. */
export type OtelBodyForm = 'map' | 'json' | 'message';

type RecordAttributes = { [name: string]: AnyValue };

// OCSF levels 0 to 6 as OpenTelemetry severity numbers: unspecified, INFO, INFO2, WARN, ERROR,
// ERROR2, FATAL.
const severityNumbers: readonly SeverityNumber[] = [0, 9, 10, 13, 17, 18, 21];
/** The last millisecond whose nanoseconds fit 64 bits. */
const nanosMaxMs = 18_446_744_073_709;
const identityCategory = 3;
const applicationCategory = 6;
const httpActivity = 4002;

/** The record's severity number. */
export function severityNumberOf(event: Event): SeverityNumber {
  return severityNumbers[severityOf(event.ocsf.severity_id)] ?? 0;
}

/** When the event happened, epoch milliseconds; 0, unknown in OpenTelemetry, if not a time. */
export function happenedMs(event: Event): number {
  return heldMs(event.ocsf.time) ?? 0;
}

/** When sluice read the record, otherwise when it happened: OpenTelemetry requires a value. */
export function observedMs(event: Event): number {
  return heldMs(part(event.ocsf.metadata).logged_time) ?? happenedMs(event);
}

/** A time from 1970 to 2554: a fixed64 cannot hold the nanoseconds of others. */
function heldMs(value: unknown): number | undefined {
  const time = epochMsOf(value);
  return time === undefined || time > nanosMaxMs ? undefined : Math.max(0, time);
}

/** Creates the function for event names, `ocsf.api_activity`; it caches the last one. */
export function eventNames(): (ocsf: Event['ocsf']) => string {
  let className: unknown;
  let name = 'ocsf.event';
  return (ocsf) => {
    if (ocsf.class_name !== className) {
      className = ocsf.class_name;
      name = `ocsf.${classNameOf(className) ?? 'event'}`;
    }
    return name;
  };
}

/** The inspected properties of an event's values in addition to their output. */
export function looksOf(event: Event, body: OtelBodyForm): readonly Look[] {
  const { ocsf } = event;
  const looked = (value: unknown, as: Look['as']): Look => {
    return { value, as, bytesMax: Number.POSITIVE_INFINITY, rival: undefined };
  };
  // A text is never one of these numbers.
  const numbers = (values: readonly unknown[], as: Look['as']) =>
    values.filter((value) => typeof value === 'number').map((value) => looked(value, as));
  return [
    looked(ocsf.class_name, 'other'),
    looked(part(ocsf.connection_info).protocol_name, 'other'),
    ...numbers([part(ocsf.src_endpoint).port, part(ocsf.dst_endpoint).port], 'port'),
    ...numbers([part(ocsf.http_response).code], 'count'),
    ...(body === 'message' ? textsOfSentence(event).texts.map((text) => looked(text, 'line')) : []),
  ];
}

/** The attributes of an event, by the OpenTelemetry semantic conventions (1.44.0). */
export function attributesOf(event: Event, rawData: boolean): RecordAttributes {
  const { ocsf } = event;
  const attributes: RecordAttributes = {
    'log.record.uid': anyValue(event.uid),
    'sluice.source': anyValue(event.source),
    'sluice.stream': anyValue(event.stream),
  };
  if (rawData) attributes['log.record.original'] = anyValue(rawDataOf(event));
  addEndpoints(attributes, ocsf);
  addUser(attributes, ocsf);
  addRequest(attributes, ocsf);
  return attributes;
}

function addEndpoints(attributes: RecordAttributes, ocsf: Event['ocsf']): void {
  const source = part(ocsf.src_endpoint);
  const target = part(ocsf.dst_endpoint);
  const address = textOf(source.ip) ?? textOf(source.hostname);
  const port = portOf(source.port);
  add(attributes, 'source.address', address);
  add(attributes, 'source.port', port);
  if (hasClient(ocsf)) {
    add(attributes, 'client.address', address);
    add(attributes, 'client.port', port);
  }
  add(attributes, 'destination.address', textOf(target.ip) ?? textOf(target.hostname));
  add(attributes, 'destination.port', portOf(target.port));
  const connection = part(ocsf.connection_info);
  add(attributes, 'network.transport', textOf(connection.protocol_name)?.toLowerCase());
}

/** True if the source is known to be the client of a call, and not just one end of a flow. */
function hasClient(ocsf: Event['ocsf']): boolean {
  const category = ocsf.category_uid;
  return (
    category === applicationCategory ||
    category === identityCategory ||
    ocsf.class_uid === httpActivity
  );
}

function addUser(attributes: RecordAttributes, ocsf: Event['ocsf']): void {
  const user = actingUser(ocsf);
  add(attributes, 'user.id', textOf(user.uid));
  add(attributes, 'user.name', textOf(user.name));
  add(attributes, 'user.email', textOf(user.email_addr));
}

function addRequest(attributes: RecordAttributes, ocsf: Event['ocsf']): void {
  const request = part(ocsf.http_request);
  const url = part(request.url ?? ocsf.url);
  add(attributes, 'http.request.method', textOf(request.http_method));
  const status = countOf(part(ocsf.http_response).code);
  add(attributes, 'http.response.status_code', status);
  add(attributes, 'url.full', textOf(url.url_string));
  add(attributes, 'url.path', textOf(url.path));
  add(attributes, 'user_agent.original', textOf(request.user_agent));
  add(attributes, 'dns.question.name', textOf(part(ocsf.query).hostname));
}

function add(attributes: RecordAttributes, name: string, value: string | number | undefined): void {
  if (value !== undefined) attributes[name] = anyValue(value);
}

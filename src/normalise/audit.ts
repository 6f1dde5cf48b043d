// Audit records as OCSF: API Activity if a source address is known, otherwise Entity Management,
// and Authentication for logins. The upstream's record shape is not documented, so every field is
// found by its common names (vocabulary.ts). A record without actor, action or target becomes a
// Base Event. This is the hot path.

import {
  isObject,
  type Json,
  type JsonObject,
  type OcsfEvent,
  type OcsfMetadata,
  type PageContext,
  type ParsedRecord,
  sidesOf,
  type Uid,
} from '../contracts/index.ts';
import { type BaseEvent, baseEventMaker } from './base.ts';
import type { SourcePaths } from './branch.ts';
import {
  EventClass,
  factsOf,
  metadataMaker,
  type Open,
  type Product,
  setSeverity,
  setStatus,
  stampTenant,
} from './envelope.ts';
import { statusCaptions, statusReader } from './levels.ts';
import { type Operation, operationReader } from './operations.ts';
import { actorFrom, keepOneGroup, type People, peopleReader, sourceOf } from './people.ts';
import { Reading, slotsReadBy } from './reading.ts';
import { namedClass } from './schema.ts';
import { type Attention, slotCount, slots, type Vocabulary } from './slots.ts';
import { sameWord } from './values.ts';
import { auditVocabulary, impliedKind } from './vocabulary.ts';

/** OCSF `managed_entity.type` captions by the words that records use. */
const entityTypes: Readonly<Record<string, readonly [id: number, caption: string]>> = {
  device: [1, 'Device'],
  user: [2, 'User'],
  group: [3, 'Group'],
  organization: [4, 'Organization'],
  organisation: [4, 'Organization'],
  policy: [5, 'Policy'],
  email: [6, 'Email'],
};

/** An audit record reports an action: Informational by default. */
const informational = 1;
const target = [slots.targetName, slots.targetUid, slots.targetType, slots.targetVersion] as const;
const unknownUser: People = {
  user: { name: 'unknown', type_id: 0, type: 'Unknown' },
  agent: undefined,
};

/** Data of one audit record on its way into an event. */
interface Found {
  readonly reading: Reading;
  readonly people: People;
  readonly metadata: Open<OcsfMetadata>;
  readonly name: string | undefined;
  readonly operation: Operation | undefined;
  readonly session: JsonObject | undefined;
}

/**
 * Slots whose values are copied; only the named property is inspected: for a name, whether it is an
 * e-mail address; for a URL, whether it begins with `/`. All other slots decide the form of the
 * event.
 */
const passedOn: Attention['passedOn'] = new Map([
  [slots.id, 'nothing'],
  [slots.time, 'nothing'],
  [slots.requestId, 'nothing'],
  [slots.correlation, 'nothing'],
  [slots.trace, 'nothing'],
  [slots.session, 'nothing'],
  [slots.userAgent, 'nothing'],
  [slots.url, 'path'],
  [slots.actorName, 'email'],
  [slots.actorUid, 'nothing'],
  [slots.actorEmail, 'nothing'],
  [slots.actorFullName, 'email'],
  [slots.srcIp, 'nothing'],
  [slots.srcPort, 'nothing'],
  [slots.srcHost, 'nothing'],
  [slots.targetName, 'nothing'],
  [slots.targetUid, 'nothing'],
  [slots.targetVersion, 'nothing'],
  [slots.before, 'nothing'],
  [slots.after, 'nothing'],
  [slots.changes, 'nothing'],
  [slots.message, 'nothing'],
]);

/** Options for records that are similar to audit records. */
interface AuditOptions {
  /** Default: all common names. */
  readonly vocabulary?: Vocabulary;
  /** Fills slots that the common names have left empty. */
  readonly complete?: (reading: Reading, record: JsonObject, context: PageContext) => void;
}

/**
 * Creates the normaliser of a source's audit records; `asked`: the config's paths for time and id.
 */
export function auditNormaliser(
  asked: SourcePaths,
  product: Product | undefined,
  { vocabulary = auditVocabulary(), complete }: AuditOptions = {},
): BaseEvent {
  const reading = new Reading({ vocabulary, ...asked, slotCount, readStatus: statusReader() });
  const metadataOf = metadataMaker(product);
  const readOperation = operationReader();
  const readPeople = peopleReader();
  const baseEvent = baseEventMaker(asked, product);
  const classes = {
    api: new EventClass(namedClass('api_activity')),
    entity: new EventClass(namedClass('entity_management')),
    login: new EventClass(namedClass('authentication')),
  };

  const normalise = (record: ParsedRecord, uid: Uid, context: PageContext): OcsfEvent => {
    if (!isObject(record)) return baseEvent(record, uid, context);
    reading.read(record);
    const people = readPeople(reading);
    keepOneGroup(reading, target);
    complete?.(reading, record, context);
    const name = reading.text(slots.operation);
    const known = name !== undefined || people.user !== undefined || people.agent !== undefined;
    if (!known && !hasTarget(reading)) return baseEvent(record, uid, context);

    const metadata = metadataOf(uid, context, factsOf(reading, name));
    const operation = name === undefined ? undefined : readOperation(name);
    const session = sessionOf(reading);
    const found: Found = { reading, people, metadata, name, operation, session };
    const event = eventOf(found, classes, context);
    if (!Number.isNaN(reading.time)) event.time = reading.time;
    stampTenant(metadata, reading);
    setSeverity(event, reading);
    setResult(event, found);
    const message = reading.text(slots.message);
    if (message !== undefined) event.message = message;
    event.unmapped = reading.rest;
    return event;
  };
  return Object.assign(normalise, { attention: slotsReadBy(reading, passedOn, baseEvent) });
}

interface Classes {
  readonly api: EventClass;
  readonly entity: EventClass;
  readonly login: EventClass;
}

function eventOf(found: Found, classes: Classes, context: PageContext): Open<OcsfEvent> {
  const { reading, people, metadata, name, operation } = found;
  const login = operation?.login ?? 0;
  const source = sourceOf(reading);
  let event: Open<OcsfEvent>;
  if (login !== 0 && (people.user !== undefined || people.agent !== undefined)) {
    event = classes.login.start(login, name, informational, metadata);
    addLogin(event, found, context);
  } else if (source !== undefined) {
    event = classes.api.start(operation?.api ?? 0, name, informational, metadata);
    addApi(event, found);
  } else {
    event = classes.entity.start(operation?.entity ?? 0, name, informational, metadata);
    addEntity(event, found, context);
  }
  if (source !== undefined) event.src_endpoint = source;
  addRequest(event, found);
  return event;
}

function addLogin(
  event: Open<OcsfEvent>,
  { reading, people, metadata, session }: Found,
  context: PageContext,
): void {
  const { user, agent } = people;
  if (user !== undefined) event.user = user;
  else event.user = { name: agent?.app_name ?? agent?.app_uid ?? '', type_id: 4, type: 'Service' };
  const actor = agent === undefined ? undefined : actorFrom({ user: undefined, agent }, undefined);
  if (actor !== undefined) event.actor = actor;
  if (session !== undefined) event.session = session;
  event.service = {
    name: reading.text(slots.service) ?? metadata.product.name ?? context.source,
  };
  reading.putBack(slots.apiVersion);
  putTargetBack(reading);
}

function addApi(
  event: Open<OcsfEvent>,
  { reading, people, name, operation, session }: Found,
): void {
  event.actor =
    actorFrom(
      people.user === undefined && people.agent === undefined ? unknownUser : people,
      session,
    ) ?? {};
  const api: Open<JsonObject> = { operation: name ?? 'unknown' };
  const service = reading.text(slots.service);
  if (service !== undefined) api.service = { name: service };
  const request = reading.text(slots.requestId);
  if (request !== undefined) api.request = { uid: request };
  const version = reading.text(slots.apiVersion);
  if (version !== undefined) api.version = version;
  event.api = api;
  const resource = targetOf(reading, operation?.object);
  if (resource === undefined) {
    reading.putBack(slots.before);
    reading.putBack(slots.after);
  } else {
    const change = changeOf(reading);
    if (change.before !== undefined || change.after !== undefined) resource.data = { ...change };
    event.resources = [resource];
  }
}

/** The target before and after, as the record shows it, otherwise from its list of changes. */
function changeOf({ values }: Reading): { readonly before?: Json; readonly after?: Json } {
  const before = values[slots.before];
  const after = values[slots.after];
  const list = values[slots.changes];
  if (before === undefined && after === undefined) {
    return (list === undefined ? undefined : sidesOf(list)) ?? {};
  }
  return { ...(before !== undefined && { before }), ...(after !== undefined && { after }) };
}

function addEntity(event: Open<OcsfEvent>, found: Found, context: PageContext): void {
  const { reading, people, operation, session } = found;
  const actor = actorFrom(people, session);
  if (actor !== undefined) event.actor = actor;
  const entity = targetOf(reading, operation?.object) ?? {
    name: operation?.object || context.source,
  };
  const type = entity.type;
  if (typeof type === 'string') setEntityType(entity, type, reading);
  const { before, after } = changeOf(reading);
  event.entity = before === undefined ? entity : { ...entity, data: before };
  if (after !== undefined) event.entity_result = { ...entity, data: after };
  reading.putBack(slots.service);
  reading.putBack(slots.apiVersion);
}

function setEntityType(entity: Open<JsonObject>, type: string, reading: Reading): void {
  const word = type.toLowerCase();
  const known = Object.hasOwn(entityTypes, word) ? entityTypes[word] : undefined;
  if (known === undefined && word !== 'other') {
    entity.type_id = 99;
    return;
  }
  const [id, caption] = known ?? [0, 'Unknown'];
  entity.type_id = id;
  entity.type = caption;
  if (!sameWord(type, caption)) reading.putBack(slots.targetType);
}

/**
 * The target with its known fields, with kind `object` if unknown; undefined if it has neither name
 * nor id.
 */
function targetOf(reading: Reading, object = ''): Open<JsonObject> | undefined {
  const uid = reading.text(slots.targetUid);
  const name = reading.text(slots.targetName);
  if (uid === undefined && name === undefined) {
    reading.putBack(slots.targetType);
    reading.putBack(slots.targetVersion);
    return undefined;
  }
  const found: Open<JsonObject> = {};
  if (uid !== undefined) found.uid = uid;
  if (name !== undefined) found.name = name;
  const kind = reading.takes[uid === undefined ? slots.targetName : slots.targetUid];
  const type = reading.text(slots.targetType) ?? (kind ? impliedKind(kind.group) : object);
  if (type !== '') found.type = type;
  const version = reading.text(slots.targetVersion);
  if (version !== undefined) found.version = version;
  return found;
}

function hasTarget({ values }: Reading): boolean {
  return values[slots.targetName] !== undefined || values[slots.targetUid] !== undefined;
}

function putTargetBack(reading: Reading): void {
  for (const slot of target) reading.putBack(slot);
  reading.putBack(slots.before);
  reading.putBack(slots.after);
}

function sessionOf(reading: Reading): JsonObject | undefined {
  const uid = reading.text(slots.session);
  return uid === undefined ? undefined : { uid };
}

function addRequest(event: Open<OcsfEvent>, { reading, metadata }: Found): void {
  const { values } = reading;
  const agent = values[slots.userAgent];
  const method = values[slots.httpMethod];
  const url = reading.text(slots.url);
  const requestId = event.api === undefined ? reading.text(slots.requestId) : undefined;
  if (agent !== undefined || method !== undefined || url !== undefined || requestId !== undefined) {
    const request: Open<JsonObject> = {};
    if (requestId !== undefined) request.uid = requestId;
    if (method !== undefined) request.http_method = method;
    if (url !== undefined) request.url = url.startsWith('/') ? { path: url } : { url_string: url };
    if (agent !== undefined) request.user_agent = String(agent);
    event.http_request = request;
  }
  const code = values[slots.httpCode];
  if (code !== undefined) event.http_response = { code };
  const correlation = reading.text(slots.correlation);
  if (correlation !== undefined) {
    metadata.correlation_uid = correlation;
    reading.putBack(slots.trace);
    return;
  }
  const trace = reading.text(slots.trace);
  if (trace !== undefined) metadata.correlation_uid = trace;
}

/** The reported outcome; otherwise the one implied by HTTP status, error code or action name. */
function setResult(event: Open<OcsfEvent>, { reading, operation }: Found): void {
  setStatus(event, reading);
  if (reading.values[slots.status] !== undefined) return;
  const code: Json | undefined = reading.values[slots.httpCode];
  let id = operation?.status ?? 0;
  if (typeof code === 'number') id = code < 400 ? 1 : 2;
  else if (/^error/i.test(reading.takes[slots.statusCode]?.path.join('.') ?? '')) id = 2;
  if (id === 0) return;
  event.status_id = id;
  event.status = statusCaptions[id] ?? 'Unknown';
}

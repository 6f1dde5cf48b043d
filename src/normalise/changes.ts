// Changes between two scans of a collection, as OCSF: Entity Management with the entity before and
// after, or the class that a source's mapping names. The documents show few fields of any entity,
// so its name is searched under the usual keys; the whole entity is in the event in any case.
// Invariant: a change that no mapping fits, or with malformed fields, is still delivered.

import type { Mapping } from '../contracts/config.ts';
import {
  type ChangeRecord,
  isObject,
  type Json,
  type JsonObject,
  type OcsfEvent,
  type PageContext,
  type ParsedRecord,
  type Uid,
} from '../contracts/index.ts';
import type { BaseEvent } from './base.ts';
import type { SourcePaths } from './branch.ts';
import { EventClass, metadataMaker, type Open, type Product } from './envelope.ts';
import { severityCaptions } from './levels.ts';
import { logNormaliser } from './logs.ts';
import { observedOf, unplacedFields } from './own-records.ts';
import type { Draft } from './reading.ts';
import { classOf, namedClass } from './schema.ts';
import { slots } from './slots.ts';

type Normalise = (record: ParsedRecord, uid: Uid, context: PageContext) => OcsfEvent;
type Change = ChangeRecord['change'];

/** How a source's changes are normalised. */
export interface ChangeSettings {
  /** Paths of the change time within an entity; none: the observation time. */
  readonly time: readonly string[];
  readonly parseTime: SourcePaths['parseTime'];
  readonly mapping?: Mapping;
  readonly state?: Mapping;
  readonly product?: Product;
}

const informational = 1;
const medium = 3;

/** A change deserves attention; an initial state does not. */
const changeActivities: Readonly<
  Record<Change, readonly [activity: number, caption: string, severity: number]>
> = {
  created: [1, 'Create', medium],
  updated: [3, 'Update', medium],
  deleted: [4, 'Delete', medium],
  state: [2, 'Read', informational],
  baseline: [2, 'Read', informational],
};

/** OCSF `managed_entity.type` by entity kind; any other kind is used verbatim. */
const entityTypes: Readonly<Record<string, readonly [id: number, caption: string]>> = {
  host: [1, 'Device'],
  company: [4, 'Organization'],
  policy: [5, 'Policy'],
  Other: [0, 'Unknown'],
};

/** Kinds whose purpose is to change all day long. */
const busyKinds: ReadonlySet<string> = new Set(['ticket']);

/** Members that may hold an entity's display name if it has no `name`. */
const nameMembers =
  'display_name title subject summary label hostname value url domain ip customer_reference'.split(
    ' ',
  );

/** Fields of a change with an attribute of their own; the others go to `unmapped`. */
const placedOfChange: ReadonlySet<string> = new Set([
  'change',
  'entity_kind',
  'entity_id',
  'entity_name',
  'entity_version',
  'observed_at',
  'before',
  'after',
]);

/** Creates the normaliser of ChangeRecords. */
export function driftNormaliser(settings: ChangeSettings, baseEvent: BaseEvent): Normalise {
  const { mapping, state = mapping } = settings;
  const eventClass = new EventClass(namedClass('entity_management'));
  const metadataOf = metadataMaker(settings.product);
  const changed = mapping && mappedChange(mapping, settings, baseEvent);
  const stated = state && mappedChange(state, settings, baseEvent);
  return (record, uid, context) => {
    if (!isObject(record)) return baseEvent(record, uid, context);
    const { change, entity_kind: kind } = record;
    const isKnown = typeof change === 'string' && Object.hasOwn(changeActivities, change);
    if (!isKnown || typeof kind !== 'string' || kind === '') return baseEvent(record, uid, context);
    const known = { record, change: change as Change, kind };
    const mapped =
      known.change === 'baseline' ? undefined : known.change === 'state' ? stated : changed;
    const event = mapped?.(known, uid, context);
    if (event !== undefined) return event;

    const [activity] = changeActivities[known.change];
    const { time, text } = timeOf(record, settings);
    const metadata = metadataOf(uid, context, {
      id: undefined,
      time: text,
      code: codeOf(known),
    });
    const own = eventClass.start(activity, undefined, severityOf(known), metadata);
    if (time !== undefined) own.time = time;
    addEntities(own, known);
    own.message = messageOf(known);
    own.unmapped = unplacedFields(record, placedOfChange);
    if (text !== record.observed_at) (own.unmapped as Draft).observed_at = record.observed_at;
    if (record.company_id === context.company) delete (own.unmapped as Draft).company_id;
    return own;
  };
}

/** A change with a known change type and entity kind. */
interface KnownChange {
  readonly record: JsonObject;
  readonly change: Change;
  readonly kind: string;
}

function codeOf({ kind, change }: KnownChange): string {
  return `${kind}.${change}`;
}

function severityOf({ kind, change }: KnownChange): number {
  return busyKinds.has(kind) ? informational : changeActivities[change][2];
}

/**
 * Converts changes to events of the mapped class. The mapping's paths are in the entity, present or
 * last known, or in the change itself. Undefined for a change that lacks a required attribute of
 * the class.
 */
function mappedChange(
  mapping: Mapping,
  { time, parseTime, product }: ChangeSettings,
  baseEvent: BaseEvent,
): (known: KnownChange, uid: Uid, context: PageContext) => OcsfEvent | undefined {
  const placed = Object.entries(mapping.fields).filter(([attribute]) => !isVerdict(attribute));
  const fields = placed.map(([attribute, from]) => {
    const within = (member: string) => [from].flat().map((path) => `${member}.${path}`);
    return [attribute, [...within('after'), ...within('before'), ...[from].flat()]] as const;
  });
  const times = [...time.map((path) => `after.${path}`), 'observed_at'];
  const normalise = logNormaliser({
    mapping: { class: mapping.class, fields: Object.fromEntries(fields) },
    asked: {
      configured: times.map((path, at) => ({
        path,
        slot: slots.time,
        accepts: 'time',
        rank: at + 1,
      })),
      parseTime,
    },
    product,
    baseEvent,
  });
  const schemaClass = classOf(mapping.class) ?? namedClass('base_event');
  const eventClass = new EventClass(schemaClass);
  const activities = Object.entries(schemaClass.activities);
  const isMapped = (attribute: string) => fields.some(([path]) => path.startsWith(attribute));
  return (known, uid, context) => {
    const event: Open<OcsfEvent> = { ...normalise(known.record, uid, context) };
    if (event.class_uid !== schemaClass.uid) return undefined;
    const [, caption] = changeActivities[known.change];
    const activity = activities.find((one) => one[1] === caption);
    if (activity && !isMapped('activity_')) {
      eventClass.setActivity(event, Number(activity[0]), undefined);
    }
    if (!isMapped('severity')) {
      event.severity_id = severityOf(known);
      event.severity = severityCaptions[event.severity_id] ?? '';
    }
    event.metadata = { event_code: codeOf(known), ...event.metadata };
    event.message ??= messageOf(known);
    return event;
  };
}

/** An action in a changed rule is its configuration; no traffic was allowed or denied. */
function isVerdict(attribute: string): boolean {
  return /^(action|disposition)(_id)?$/.test(attribute);
}

/** When an entity changed: its own time if the config names its path, else the observation time. */
function timeOf(
  record: JsonObject,
  { time: paths, parseTime }: ChangeSettings,
): { readonly time: number | undefined; readonly text: string | undefined } {
  const own = paths.map((path) =>
    path
      .split('.')
      .reduce<Json | undefined>((at, key) => (isObject(at) ? at[key] : undefined), record.after),
  );
  const found = [...own, observedOf(record)].find((value) => !Number.isNaN(parseTime(value)));
  if (found === undefined) return { time: undefined, text: undefined };
  return { time: parseTime(found), text: String(found) };
}

function addEntities(event: Open<OcsfEvent>, { record, change, kind }: KnownChange): void {
  const { entity_id: id, entity_version: version, before, after } = record;
  const name = nameOf(record);
  const entity: Draft = {};
  if (typeof id === 'string' && id !== '') entity.uid = id;
  if (name !== undefined) entity.name = name;
  if (entity.uid === undefined && entity.name === undefined) entity.name = kind;
  const [typeId, type] = (Object.hasOwn(entityTypes, kind) && entityTypes[kind]) || [99, kind];
  entity.type_id = typeId;
  entity.type = type;
  if (version !== undefined && version !== null) entity.version = String(version);
  const first = before ?? after;
  event.entity = isMissing(first) ? entity : { ...entity, data: first };
  // The new state of a created or changed entity is always here.
  const isNew = change === 'created' || !isMissing(before);
  if (isNew && !isMissing(after)) event.entity_result = { ...entity, data: after };
}

function isMissing(value: Json | undefined): value is null | undefined {
  return value === undefined || value === null;
}

/** The entity's display name. */
function nameOf({ entity_name: name, before, after }: JsonObject): string | undefined {
  const entity = after ?? before;
  const names = nameMembers.map((member) => (isObject(entity) ? entity[member] : undefined));
  return [name, ...names].find((one) => typeof one === 'string' && one !== '') as
    | string
    | undefined;
}

function messageOf({ record, change, kind }: KnownChange): string {
  const named = nameOf(record) ?? record.entity_id;
  const called = typeof named === 'string' ? `${kind} ${JSON.stringify(named)}` : kind;
  const what = called + standsIn(record);
  if (change === 'baseline')
    return `${what}: ${String(record.count ?? 'some')} present at the first reading`;
  if (change === 'state') return `${what} present at the first reading`;
  const changed = record.changed;
  const paths = Array.isArray(changed) ? changed.filter((path) => typeof path === 'string') : [];
  return paths.length === 0
    ? `${what} ${change}`
    : `${what} ${change}: ${paths.slice(0, 20).join(', ')}`;
}

/** Location of a rule: its list, its index and its policy. */
function standsIn({ list, place, parent_id: policy }: JsonObject): string {
  if (typeof list !== 'string' || typeof policy !== 'string') return '';
  const at = typeof place === 'number' ? `place ${place} of ` : '';
  return ` (${at}${list} in policy ${JSON.stringify(policy)})`;
}

// The two records that sluice makes itself, as OCSF: a change of configuration becomes Entity
// Management, a condition of a source becomes Application Lifecycle of sluice. Their fields are
// known, so they are read by name; they come back from the disk, so whatever is not as it should be
// falls back to a Base Event.

import type { ChangeRecord, Condition } from '../contracts/change.ts';
import type { OcsfEvent, PageContext, ParsedRecord, Uid } from '../contracts/event.ts';
import { isObject, type Json, type JsonObject } from '../contracts/json.ts';
import type { BaseEvent } from './base.ts';
import { EventClass, metadataMaker, type Open, type Product } from './envelope.ts';
import { type Draft, put } from './reading.ts';
import { namedClass } from './schema.ts';
import { parseTime } from './time.ts';

type Normalise = (record: ParsedRecord, uid: Uid, context: PageContext) => OcsfEvent;
type Change = ChangeRecord['change'];

/**
 * A change of a firewall's configuration is worth a look; being told what there is at the start is
 * not.
 */
const changeActivities: Readonly<Record<Change, readonly [activity: number, severity: number]>> = {
  created: [1, 3],
  updated: [3, 3],
  deleted: [4, 3],
  state: [2, 1],
  baseline: [2, 1],
};

/** How much an operator should mind; a proven loss or forgery most. */
const conditionSeverities: Readonly<Record<Condition, number>> = {
  'source.checkpoint_reset': 3,
  'source.gap_suspected': 3,
  'source.gap': 4,
  'source.scope_lost': 4,
  'source.paging_suspected': 4,
  'source.silent': 3,
  'source.heard': 1,
  integrity_violation: 5,
  schema_drift: 2,
};

/** What a change record's event holds elsewhere; the other fields go to `unmapped`. */
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
const placedOfCondition: ReadonlySet<string> = new Set([
  'condition',
  'observed_at',
  'message',
  'source',
]);

/** Makes the normaliser of ChangeRecords. */
export function driftNormaliser(product: Product | undefined, baseEvent: BaseEvent): Normalise {
  const eventClass = new EventClass(namedClass('entity_management'));
  const metadataOf = metadataMaker(product);
  return (record, uid, context) => {
    if (!isObject(record)) return baseEvent(record, uid, context);
    const change = record.change;
    const kind = record.entity_kind;
    const known = typeof change === 'string' && Object.hasOwn(changeActivities, change);
    if (!known || typeof kind !== 'string' || kind === '') return baseEvent(record, uid, context);
    const [activity, severity] = changeActivities[change as Change];

    const observed = observedOf(record);
    const metadata = metadataOf(uid, context, {
      id: undefined,
      time: observed,
      code: `${kind}.${change}`,
    });
    const event = eventClass.start(activity, undefined, severity, metadata);
    if (observed !== undefined) event.time = parseTime(observed);
    addEntities(event, record, kind);
    event.message = changeMessage(record, change as Change, kind);
    event.unmapped = restOf(record, placedOfChange);
    if (record.company_id === context.company) delete (event.unmapped as Draft).company_id;
    return event;
  };
}

function addEntities(event: Open<OcsfEvent>, record: JsonObject, kind: string): void {
  const { entity_id: id, entity_name: name, entity_version: version, before, after } = record;
  const entity: Draft = {};
  if (typeof id === 'string' && id !== '') entity.uid = id;
  if (typeof name === 'string' && name !== '') entity.name = name;
  if (entity.uid === undefined && entity.name === undefined) entity.name = kind;
  const [typeId, type] =
    kind === 'policy' ? [5, 'Policy'] : kind === 'Other' ? [0, 'Unknown'] : [99, kind];
  entity.type_id = typeId;
  entity.type = type;
  if (version !== undefined && version !== null) entity.version = String(version);
  const first = before ?? after;
  event.entity = isMissing(first) ? entity : { ...entity, data: first };
  if (!isMissing(before) && !isMissing(after)) event.entity_result = { ...entity, data: after };
}

function isMissing(value: Json | undefined): value is null | undefined {
  return value === undefined || value === null;
}

function changeMessage(record: JsonObject, change: Change, kind: string): string {
  const named = record.entity_name ?? record.entity_id;
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

/** Where a rule stands: its list and place, and its policy. */
function standsIn({ list, place, parent_id: policy }: JsonObject): string {
  if (typeof list !== 'string' || typeof policy !== 'string') return '';
  const at = typeof place === 'number' ? `place ${place} of ` : '';
  return ` (${at}${list} in policy ${JSON.stringify(policy)})`;
}

/** Makes the normaliser of ConditionRecords. */
export function conditionNormaliser(baseEvent: BaseEvent): Normalise {
  const metadataOf = metadataMaker({ name: 'sluice' });
  const eventClass = new EventClass(namedClass('application_lifecycle'));
  return (record, uid, context) => {
    const condition = isObject(record) ? record.condition : undefined;
    if (!isObject(record) || typeof condition !== 'string' || condition === '') {
      return ownLog(baseEvent(record, uid, context));
    }
    const severity = Object.hasOwn(conditionSeverities, condition)
      ? conditionSeverities[condition as Condition]
      : 1;
    const observed = observedOf(record);
    const metadata = metadataOf(uid, context, { id: undefined, time: observed, code: condition });
    metadata.log_name = 'sluice';
    const from = record.source;
    metadata.log_source = typeof from === 'string' ? from : context.source;
    const event = eventClass.start(99, condition, severity, metadata);
    if (observed !== undefined) event.time = parseTime(observed);
    event.app = { name: 'sluice' };
    const message = record.message;
    event.message = typeof message === 'string' ? message : condition;
    event.unmapped = restOf(record, placedOfCondition);
    return event;
  };
}

function ownLog(event: OcsfEvent): OcsfEvent {
  return { ...event, metadata: { ...event.metadata, log_name: 'sluice' } };
}

/** The time of the record where it can be read. */
function observedOf({ observed_at: observed }: JsonObject): string | undefined {
  return typeof observed === 'string' && !Number.isNaN(parseTime(observed)) ? observed : undefined;
}

/** Text fields are placed as they are; one of another type was not, and is kept. */
function restOf(record: JsonObject, placed: ReadonlySet<string>): Draft {
  const rest: Draft = {};
  for (const key in record) {
    const value = record[key];
    if (value === undefined || (placed.has(key) && isPlaced(key, value))) continue;
    put(rest, key, value);
  }
  return rest;
}

function isPlaced(key: string, value: Json): boolean {
  if (key === 'before' || key === 'after') return value !== null;
  if (key === 'observed_at') return !Number.isNaN(parseTime(value));
  return typeof value === 'string' || (key === 'entity_version' && Number.isSafeInteger(value));
}

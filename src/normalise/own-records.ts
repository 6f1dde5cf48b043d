// Records that sluice creates itself: their fields are known and read by name. They come back from
// the disk, so a malformed one becomes a Base Event, and unknown fields are kept. This file has the
// conditions of sources, as Application Lifecycle of sluice; changes.ts has the others.

import {
  type Condition,
  isObject,
  type Json,
  type JsonObject,
  type OcsfEvent,
  type PageContext,
  type ParsedRecord,
  type Uid,
} from '../contracts/index.ts';
import type { BaseEvent } from './base.ts';
import { EventClass, metadataMaker, type Open } from './envelope.ts';
import { type Draft, put } from './reading.ts';
import { namedClass } from './schema.ts';
import { parseTime } from './time.ts';

type Normalise = (record: ParsedRecord, uid: Uid, context: PageContext) => OcsfEvent;

/** Severity of a condition; a proven loss or forgery is the highest. */
const conditionSeverities: Readonly<Record<Condition, number>> = {
  'source.checkpoint_reset': 3,
  'source.gap_suspected': 3,
  'source.gap': 4,
  'source.scope_lost': 4,
  'source.parent_lost': 2,
  'source.parents_full': 4,
  'source.paging_suspected': 4,
  'source.invalid_utf8': 2,
  'source.volatile_fields': 2,
  'source.silent': 3,
  'source.heard': 1,
  'source.volume_low': 3,
  'source.volume_back': 1,
  'source.cut_over': 2,
  'source.succession_held': 4,
  'source.succession_released': 1,
  'upstream.ends': 3,
  'change.unexplained': 4,
  'change.unseen': 3,
  'drift.unmatchable': 3,
  'archive.checkpoint': 1,
  'sink.test': 1,
  'sink.gap': 4,
  'sink.events_released': 4,
  'archive.compared': 1,
  'archive.differs': 4,
  integrity_violation: 5,
  schema_drift: 2,
};

const placedOfCondition: ReadonlySet<string> = new Set([
  'condition',
  'observed_at',
  'message',
  'source',
]);

/** Creates the normaliser of ConditionRecords. */
export function conditionNormaliser(baseEvent: BaseEvent): Normalise {
  const metadataOf = metadataMaker({ name: 'sluice' });
  const eventClass = new EventClass(namedClass('application_lifecycle'));
  const finding = new EventClass(namedClass('detection_finding'));
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
    const { details } = record;
    const facts = isObject(details) ? details : {};
    const isFinding = condition.startsWith('change.');
    // An end that concerns no source any more.
    const isPast = condition === 'upstream.ends' && facts.moved === true;
    const event = isFinding
      ? finding.start(1, undefined, facts.may_cancel === true ? 2 : severity, metadata)
      : eventClass.start(99, condition, isPast ? 1 : severity, metadata);
    if (observed !== undefined) event.time = parseTime(observed);
    const message = record.message;
    event.message = typeof message === 'string' ? message : condition;
    if (isFinding) addFinding(event, facts, { uid, condition });
    else event.app = { name: 'sluice' };
    event.unmapped = unplacedFields(record, placedOfCondition);
    return event;
  };
}

const titles: Readonly<Record<string, string>> = {
  'change.unexplained': 'a change that no audit event explains',
  'change.unseen': 'an audit event of a change that no reading shows',
};

/** The findings of the comparison between changes and the audit trail. */
function addFinding(
  event: Open<OcsfEvent>,
  { entity_id: id, entity_name: name, entity_kind: kind, change_uid, event_uid }: JsonObject,
  { uid, condition }: { readonly uid: Uid; readonly condition: string },
): void {
  const about = change_uid ?? event_uid;
  event.status_id = 1;
  event.status = 'New';
  event.finding_info = {
    ...{ uid, title: titles[condition] ?? condition, types: [condition] },
    ...(typeof about === 'string' && { related_events: [{ uid: about }] }),
  };
  const resource: Draft = {};
  if (typeof id === 'string' && id !== '') resource.uid = id;
  if (typeof name === 'string' && name !== '') resource.name = name;
  if (typeof kind === 'string' && kind !== '') resource.type = kind;
  if (resource.uid !== undefined || resource.name !== undefined) event.resources = [resource];
}

function ownLog(event: OcsfEvent): OcsfEvent {
  return { ...event, metadata: { ...event.metadata, log_name: 'sluice' } };
}

/** The observation time in a record, if valid. */
export function observedOf({ observed_at: observed }: JsonObject): string | undefined {
  return typeof observed === 'string' && !Number.isNaN(parseTime(observed)) ? observed : undefined;
}

/**
 * The fields of a record that are not `placed` in its event. Text fields are placed verbatim; a
 * field of another type was not placed and is kept.
 */
export function unplacedFields(record: JsonObject, placed: ReadonlySet<string>): Draft {
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

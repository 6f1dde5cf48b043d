// Log records as OCSF events of the class that their mapping names. The mapping sets its attributes;
// time, id, severity, result and message are also found under the common names; everything else is
// in `unmapped`. A record that lacks a required attribute of the class becomes a Base Event with
// the whole record in `unmapped`.

import type { Mapping } from '../contracts/config.ts';
import {
  isObject,
  type JsonObject,
  type OcsfEvent,
  type OcsfMetadata,
  type PageContext,
  type ParsedRecord,
  type Uid,
} from '../contracts/index.ts';
import type { BaseEvent } from './base.ts';
import type { ConfiguredPath, SourcePaths } from './branch.ts';
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
import { findingStatusReader, other, statusReader } from './levels.ts';
import { type MappingTarget, type ResolvedMapping, resolveMapping } from './mapping.ts';
import { actorFrom, peopleReader, peopleSlots } from './people.ts';
import {
  type Branching,
  compileFill,
  completion,
  enumChoice,
  type Placing,
  verdictPartOf,
} from './placing.ts';
import { type Draft, Reading, slotsReadBy } from './reading.ts';
import type { Attribute, SchemaClass } from './schema.ts';
import { type Accepts, type Passing, type Slot, slotCount, slots } from './slots.ts';
import { useUpdateTime } from './update-time.ts';
import { sameWord } from './values.ts';
import { verdictOfWord } from './verdicts.ts';
import { logVocabulary, timelineVocabulary } from './vocabulary.ts';

/** Settings of a log source's normaliser. */
export interface LogSourceSettings {
  readonly mapping: Mapping;
  /** The config's paths for time and id. */
  readonly asked: SourcePaths;
  readonly product: Product | undefined;
  /** The name of the records' parent. Default: none. */
  readonly parent?: string | undefined;
  /** For records without a class. */
  readonly baseEvent: BaseEvent;
}

/** Attributes that are also found by common names: a mapping of them takes precedence. */
const common: Readonly<Record<string, readonly [slot: Slot, accepts: Accepts]>> = {
  time: [slots.time, 'time'],
  message: [slots.message, 'text'],
  severity: [slots.severity, 'severity'],
  severity_id: [slots.severity, 'severity_id'],
  status: [slots.status, 'outcome'],
  status_id: [slots.status, 'outcome'],
  status_code: [slots.statusCode, 'text'],
  status_detail: [slots.statusDetail, 'text'],
  'metadata.original_event_uid': [slots.id, 'text'],
  'metadata.tenant_uid': [slots.tenant, 'text'],
};

/** The severity of a flow or request is not known: Informational; a finding's is Unknown. */
const informational = 1;

/** Creates the normaliser of one source's mapped logs. */
export function logNormaliser(settings: LogSourceSettings): BaseEvent {
  const { baseEvent, product } = settings;
  const resolved = resolveMapping(settings.mapping);
  if (resolved === undefined || resolved.schemaClass.uid === 0) return baseEvent;
  const { schemaClass } = resolved;
  const plan = planOf(resolved);
  const reading = readingOf(plan, settings, schemaClass);
  const eventClass = new EventClass(schemaClass);
  const metadataOf = metadataMaker(product);
  const fills = compileFill(plan.body, 0);
  const fillMetadata = compileFill(plan.metadata, 1);
  const complete = completion(schemaClass, '');
  const chooseActivity = plan.activity.length === 0 ? undefined : enumChoice(plan.activity, 0);
  const severity = isFinding(schemaClass) ? 0 : informational;
  const statusCaptions = captionsOfStatus(schemaClass);
  const addUsual = usualFiller(schemaClass, settings);
  const addOtherVerdict = verdictFiller(plan.body, schemaClass);
  const addActor = findsPeople(settings, schemaClass) ? actorFiller() : undefined;

  const normalise = (record: ParsedRecord, uid: Uid, context: PageContext): OcsfEvent => {
    if (!isObject(record)) return baseEvent(record, uid, context);
    reading.read(record);
    if (context.isUpdate === true) useUpdateTime(reading, record);
    const metadata = metadataOf(uid, context, factsOf(reading, undefined));
    const event = eventClass.start(0, undefined, severity, metadata);
    const placing: Placing = { reading, uid: metadata.original_event_uid ?? uid };
    const body = event as Draft;
    for (const fill of fills) fill(body, placing, -1);
    addOtherVerdict(body, reading);
    addActor?.(body, reading);
    addUsual(body, placing, context);
    if (!complete(body, placing)) return baseEvent(record, uid, context);

    const chosen = chooseActivity?.(reading, -1);
    const activity = chosen?.id ?? usualActivity(schemaClass, body, context);
    eventClass.setActivity(event, activity, chosen?.caption);
    finish(event, metadata, reading, statusCaptions);
    for (const fill of fillMetadata) fill(metadata as Draft, placing, -1);
    if (plan.profiles.length > 0) metadata.profiles = plan.profiles;
    event.unmapped = reading.rest;
    return event;
  };
  return Object.assign(normalise, { attention: slotsReadBy(reading, passedOnBy(plan), baseEvent) });
}

/**
 * The inspected property of each copied value: for a mapped one, whether it converts to its
 * attribute's type. Enums, choices and all other slots decide the form of the event.
 */
function passedOnBy({ body, metadata }: Plan): ReadonlyMap<Slot, Passing> {
  const passedOn = new Map<Slot, Passing>([
    [slots.id, 'nothing'],
    [slots.time, 'nothing'],
    [slots.statusCode, 'nothing'],
    [slots.statusDetail, 'nothing'],
    [slots.message, 'nothing'],
  ]);
  for (const { target, slot } of [...body, ...metadata]) {
    const { type = 'enum', captionOf } = target.way.at(-1) ?? {};
    if (type !== 'enum' && !captionOf) passedOn.set(slot, { to: type });
  }
  return passedOn;
}

function finish(
  event: Open<OcsfEvent>,
  metadata: Open<OcsfMetadata>,
  reading: Reading,
  statusCaptions: Readonly<Record<number, string>>,
): void {
  if (!Number.isNaN(reading.time)) event.time = reading.time;
  stampTenant(metadata, reading);
  setSeverity(event, reading);
  setStatus(event, reading, statusCaptions);
  const message = reading.text(slots.message);
  if (message !== undefined) event.message = message;
}

/** A mapping's targets, grouped by the code that fills them. */
interface Plan {
  readonly common: readonly ConfiguredPath[];
  readonly body: readonly Branching[];
  readonly metadata: readonly Branching[];
  readonly activity: readonly Branching[];
  readonly profiles: readonly string[];
}

function planOf({ targets }: ResolvedMapping): Plan {
  const requested: ConfiguredPath[] = [];
  const body: Branching[] = [];
  const metadata: Branching[] = [];
  const activity: Branching[] = [];
  const profiles = new Set<string>();
  targets.forEach((target, index) => {
    const found = Object.hasOwn(common, target.path) ? common[target.path] : undefined;
    if (found !== undefined) {
      const [slot, accepts] = found;
      requested.push(...requestedOf(target, slot, accepts));
      return;
    }
    const branching = { target, slot: slotCount + index };
    requested.push(...requestedOf(target, branching.slot, 'json'));
    const root = target.way[0];
    if (root?.name.startsWith('activity_')) activity.push(branching);
    else if (root?.name === 'metadata') metadata.push(branching);
    else body.push(branching);
    for (const { profile } of target.way) if (profile !== null) profiles.add(profile);
  });
  return { common: requested, body, metadata, activity, profiles: [...profiles] };
}

/** A mapping's paths precede the config's others, which start at rank 1. */
function requestedOf(
  { from }: MappingTarget,
  slot: Slot,
  accepts: Accepts,
): readonly ConfiguredPath[] {
  return from.map((path, index) => ({ path, slot, accepts, rank: index + 1 - from.length }));
}

function readingOf(plan: Plan, settings: LogSourceSettings, schemaClass: SchemaClass): Reading {
  const { configured, parseTime } = settings.asked;
  const mapped =
    plan.body.length + plan.metadata.length + plan.activity.length + plan.common.length;
  return new Reading({
    vocabulary: findsPeople(settings, schemaClass) ? timelineVocabulary() : logVocabulary(),
    configured: [...plan.common, ...configured],
    parseTime,
    slotCount: slotCount + mapped,
    readStatus: isFinding(schemaClass)
      ? findingStatusReader(captionsOfStatus(schemaClass))
      : statusReader(),
  });
}

function isFinding({ uid }: SchemaClass): boolean {
  return Math.floor(uid / 1000) === 2;
}

function captionsOfStatus({ attributes }: SchemaClass): Readonly<Record<number, string>> {
  const status: Attribute | undefined = attributes.get('status_id');
  return Object.fromEntries(
    [...(status?.captions ?? [])].map(([id, caption]) => [Number(id), caption]),
  );
}

/** Records of a parent describe people's actions; in other logs only a mapping knows. */
function findsPeople({ parent }: LogSourceSettings, { attributes }: SchemaClass): boolean {
  return parent !== undefined && attributes.get('actor')?.profile === null;
}

/** Finds the actor as in audit records, if the mapping has not set it. */
function actorFiller(): (body: Draft, reading: Reading) => void {
  const readPeople = peopleReader();
  return (body, reading) => {
    if (body.actor !== undefined) {
      for (const slot of peopleSlots) reading.refuse(slot);
      return;
    }
    const actor = actorFrom(readPeople(reading), undefined);
    if (actor !== undefined) body.actor = actor as JsonObject;
  };
}

/**
 * OCSF has two attributes for a verdict. If a mapping names one of them and the record's word is
 * known, the other is derived from the word.
 */
function verdictFiller(
  branches: readonly Branching[],
  { attributes }: SchemaClass,
): (body: Draft, reading: Reading) => void {
  const mapped = branches.filter(({ target }) => verdictPartOf(target.way[0]) !== undefined);
  const parts = new Set(mapped.map(({ target }) => verdictPartOf(target.way[0])));
  if (parts.size !== 1) return () => undefined;
  const other = parts.has('action') ? 'disposition' : 'action';
  const captions = attributes.get(`${other}_id`)?.captions;
  return (body, { values }) => {
    for (const { slot } of mapped) {
      const word = values[slot];
      const id = typeof word === 'string' ? verdictOfWord(word)?.[other] : undefined;
      if (id === undefined) continue;
      body[`${other}_id`] = id;
      body[other] = captions?.get(String(id));
      return;
    }
  };
}

/** Defaults for required attributes of a class that are true for any record. */
function usualFiller(
  { uid: classUid }: SchemaClass,
  { product, parent: type }: Pick<LogSourceSettings, 'product' | 'parent'>,
): (body: Draft, placing: Placing, context: PageContext) => void {
  switch (classUid) {
    case 3002:
      return (body, _, context) => {
        if (body.service === undefined && body.dst_endpoint === undefined) {
          body.service = { name: product?.name ?? context.source };
        }
      };
    case 3004:
      return (body, _, { parent: uid }) => {
        if (type === undefined || uid === undefined) return;
        body.entity = { type, uid, ...(isObject(body.entity) ? body.entity : {}) };
      };
    case 2004:
      return (body, { uid }, { parent }) => {
        body.finding_info ??= { uid: parent ?? uid };
      };
    case 2005:
      return (body, { uid }) => {
        body.finding_info_list ??= [{ uid }];
      };
  }
  return () => undefined;
}

/** The most likely activity of a record without one. */
function usualActivity(
  { uid, usual, activities }: SchemaClass,
  body: Draft,
  { isUpdate }: PageContext,
): number {
  const idOf = (word: string) => {
    const found = Object.entries(activities).find(([, caption]) => sameWord(caption, word));
    return found && Number(found[0]);
  };
  if (isUpdate === true) return idOf('Update') ?? usual;
  if (uid === 4003) return body.rcode_id === undefined && body.answers === undefined ? usual : 2;
  if (uid !== 4002) return usual;
  const request = body.http_request;
  const method = isObject(request) ? request.http_method : undefined;
  return typeof method === 'string' ? (idOf(method) ?? other) : usual;
}

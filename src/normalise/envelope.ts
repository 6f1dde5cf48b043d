// The attributes of every OCSF event, whatever its class: class and activity with their captions,
// severity, time and metadata. Built as one literal in one order, so that all events of a class
// share their hidden class.

import type {
  Json,
  JsonObject,
  OcsfEvent,
  OcsfMetadata,
  PageContext,
  Uid,
} from '../contracts/index.ts';
import { other, severityCaptions, statusCaptions } from './levels.ts';
import type { Reading } from './reading.ts';
import { slots } from './slots.ts';
import { sameWord } from './values.ts';

/** An event, or one of its parts, under construction. */
export type Open<T> = { -readonly [K in keyof T]: T[K] };

/** The OCSF release that events conform to. */
const ocsfVersion = '1.8.0';

/** `metadata.product`. */
export interface Product {
  readonly name: string;
  readonly vendor_name?: string;
}

/** The names of a class in events. */
export interface ClassNames {
  readonly uid: number;
  readonly caption: string;
  /** Captions by `activity_id`. */
  readonly activities: Readonly<Record<number, string>>;
}

const categoryCaptions: Readonly<Record<number, string>> = {
  0: 'Uncategorized',
  2: 'Findings',
  3: 'Identity & Access Management',
  4: 'Network Activity',
  5: 'Discovery',
  6: 'Application Activity',
};

/** States that `time` is the read time, because the record's own was unreadable. */
const timeSource: readonly Json[] = [{ name: 'time_source', value: 'fetched_at' }];

/** Placeholder in `unmapped` until the rest of the record is known. */
const nothing: JsonObject = {};

/** A record's own facts: its id, its time as text, and the event code. */
export interface RecordFacts {
  readonly id: string | undefined;
  readonly time: string | undefined;
  readonly code: string | undefined;
}

/** Creates the `metadata` of one event. */
export type MakeMetadata = (
  uid: Uid,
  context: PageContext,
  facts: RecordFacts,
) => Open<OcsfMetadata>;

/** The facts in the common slots. */
export function factsOf(reading: Reading, code: string | undefined): RecordFacts {
  return { id: reading.text(slots.id), time: reading.text(slots.time), code };
}

/** Creates events of one class; captions are looked up once per activity. */
export class EventClass {
  readonly #names: ClassNames;
  readonly #category: number;
  readonly #categoryName: string;
  readonly #typeNames: string[] = [];

  constructor(names: ClassNames) {
    this.#names = names;
    this.#category = Math.floor(names.uid / 1000);
    this.#categoryName = categoryCaptions[this.#category] ?? '';
    for (const [id, caption] of Object.entries(names.activities)) {
      this.#typeNames[Number(id)] = `${names.caption}: ${caption}`;
    }
  }

  /**
   * An event with all attributes that every class requires. `word` is the source's own word for an
   * activity that the class lacks; without a word (or if it equals the caption) the activity is
   * Unknown. Severity and status are Unknown, and the time is the read time, until they are set.
   */
  start(
    activity: number,
    word: string | undefined,
    severity: number,
    metadata: OcsfMetadata,
  ): Open<OcsfEvent> {
    const { uid, caption } = this.#names;
    const id = this.#known(activity, word);
    return {
      class_uid: uid,
      class_name: caption,
      category_uid: this.#category,
      category_name: this.#categoryName,
      activity_id: id,
      activity_name: this.#activityName(id, word),
      type_uid: uid * 100 + id,
      type_name: this.#typeNames[id] ?? '',
      time: metadata.logged_time ?? 0,
      severity_id: severity,
      severity: severityCaptions[severity] ?? 'Unknown',
      status_id: 0,
      status: 'Unknown',
      metadata,
      unmapped: nothing,
    };
  }

  /** Sets the activity and the attributes derived from it. */
  setActivity(event: Open<OcsfEvent>, activity: number, word: string | undefined): void {
    const id = this.#known(activity, word);
    event.activity_id = id;
    event.activity_name = this.#activityName(id, word);
    event.type_uid = this.#names.uid * 100 + id;
    event.type_name = this.#typeNames[id] ?? '';
  }

  /** OCSF requires the source's own word for Other. */
  #known(activity: number, word: string | undefined): number {
    if (activity === other) return word === undefined || word === 'Other' ? 0 : other;
    return this.#names.activities[activity] === undefined ? 0 : activity;
  }

  #activityName(id: number, word: string | undefined): string {
    return (id === other ? word : this.#names.activities[id]) ?? 'Unknown';
  }
}

/** Creates `metadata` of a source's events; `product` falls back to the source's name. */
export function metadataMaker(product: Product | undefined): MakeMetadata {
  let fallback = product ?? { name: '' };
  return (uid, context, { id, time, code }) => {
    const { source, company, parent, fetchedAt } = context;
    if (product === undefined && fallback.name !== source) fallback = { name: source };
    // Nearly all events have all of these: a literal is allocated once, members added later are
    // not.
    const metadata: Open<OcsfMetadata> =
      id !== undefined && time !== undefined && code !== undefined
        ? {
            version: ocsfVersion,
            product: fallback,
            uid,
            log_name: source,
            logged_time: fetchedAt,
            original_event_uid: id,
            original_time: time,
            event_code: code,
          }
        : {
            version: ocsfVersion,
            product: fallback,
            uid,
            log_name: source,
            logged_time: fetchedAt,
          };
    if (metadata.original_time === undefined) {
      if (id !== undefined) metadata.original_event_uid = id;
      if (time !== undefined) metadata.original_time = time;
      else metadata.tags = timeSource;
      if (code !== undefined) metadata.event_code = code;
    }
    if (company !== undefined) metadata.tenant_uid = company;
    if (parent !== undefined) metadata.correlation_uid = parent;
    return metadata;
  };
}

/**
 * Sets the tenant that the record names, if the stream has none. A company that differs from the
 * stream's stays visible in `unmapped`.
 */
export function stampTenant(metadata: Open<OcsfMetadata>, reading: Reading): void {
  const tenant = reading.text(slots.tenant);
  if (tenant === undefined) return;
  if (metadata.tenant_uid === undefined) metadata.tenant_uid = tenant;
  else if (metadata.tenant_uid !== tenant) reading.putBack(slots.tenant);
}

/** Sets the severity; a text that is not the caption stays in `unmapped`. */
export function setSeverity(event: Open<OcsfEvent>, reading: Reading): void {
  const value = reading.values[slots.severity];
  if (value === undefined) return;
  const id = reading.severity;
  const caption = id === other ? String(value) : (severityCaptions[id] ?? 'Unknown');
  if (id === other && caption === 'Other') {
    reading.putBack(slots.severity);
    return;
  }
  event.severity_id = id;
  event.severity = caption;
  if (typeof value !== 'string' || !sameWord(value, caption)) reading.putBack(slots.severity);
}

/** Sets `status_id` and `status`; the source's word becomes `status_code` if that is free. */
export function setStatus(
  event: Open<OcsfEvent>,
  reading: Reading,
  captions: Readonly<Record<number, string>> = statusCaptions,
): void {
  const code = reading.text(slots.statusCode);
  if (code !== undefined) event.status_code = code;
  const detail = reading.text(slots.statusDetail);
  if (detail !== undefined) event.status_detail = detail;
  const value = reading.values[slots.status];
  if (value === undefined) return;
  const id = reading.status;
  if (id === other) {
    if (value === 'Other') {
      reading.putBack(slots.status);
      return;
    }
    event.status_id = other;
    event.status = String(value);
    return;
  }
  const caption = captions[id] ?? 'Unknown';
  event.status_id = id;
  event.status = caption;
  if (value === caption) return;
  if (code === undefined && typeof value !== 'boolean') event.status_code = String(value);
  else reading.putBack(slots.status);
}

// The marker of an event whose record is not valid UTF-8. Its texts have U+FFFD for undecodable
// bytes; if a format writes `raw_data`, that is the record's bytes as base64.

const marker: Json = { name: 'invalid_utf8', value: 'raw_data is base64' };

/** The event with the marker among its tags. */
export function withInvalidUtf8(event: OcsfEvent): OcsfEvent {
  const { tags } = event.metadata;
  const others = Array.isArray(tags) ? tags : [];
  return { ...event, metadata: { ...event.metadata, tags: [...others, marker] } };
}

// An event is one record on its way out: the bytes as upstream sent them, an identity that never
// changes, and the OCSF form made from the record when a format first asks for it. Formats and
// sinks read events; only send/ makes them. What must stay true: the same upstream record has the
// same uid however often it is read, and nothing in an event is ever changed once made, since sinks
// share it.

import type { Json, JsonObject } from './json.ts';

/** 64 lower-case hex characters: SHA-256 over source, tenant, stream and identity. */
export type Uid = string;

/** A place in the spool: the number of events held before it since it was made. */
export type Offset = number;

/**
 * What a held page holds, which decides how its records are normalised. `answer`: what upstream
 * answered where that is no record; only sinks that take pages get it.
 */
export type RecordKind = 'audit' | 'log' | 'drift' | 'condition' | 'answer';

/** One record on its way out. */
export interface Event {
  readonly uid: Uid;
  /** Name of the source in the config. */
  readonly source: string;
  /** Name of the stream: source, company and endpoint, e.g. `web_logs/c-1`. */
  readonly stream: string;
  readonly kind: RecordKind;
  /** Source, stream and kind are this context's; it is the same object for a whole page. */
  readonly context: PageContext;
  readonly offset: Offset;
  /** The record exactly as upstream sent it, UTF-8 JSON. */
  readonly raw: Uint8Array;
  /** The normalised form; made on first use, then shared. */
  readonly ocsf: OcsfEvent;
}

/**
 * An OCSF 1.8.0 event (https://schema.ocsf.io). Required base attributes are typed, as are the
 * objects that formats read; any other attribute of a class is reached by name.
 */
export interface OcsfEvent {
  readonly activity_id: number;
  readonly activity_name?: string;
  readonly category_uid: number;
  readonly category_name?: string;
  readonly class_uid: number;
  readonly class_name?: string;
  readonly type_uid: number;
  readonly type_name?: string;
  /** Epoch milliseconds. */
  readonly time: number;
  readonly severity_id: number;
  readonly severity?: string;
  readonly status_id?: number;
  readonly status?: string;
  readonly status_code?: string;
  readonly status_detail?: string;
  readonly message?: string;
  readonly metadata: OcsfMetadata;
  readonly actor?: OcsfActor;
  readonly src_endpoint?: OcsfEndpoint;
  readonly dst_endpoint?: OcsfEndpoint;
  readonly api?: JsonObject;
  readonly entity?: JsonObject;
  readonly user?: OcsfUser;
  readonly resources?: readonly JsonObject[];
  readonly unmapped?: JsonObject;
  readonly raw_data?: string;
  readonly [attribute: string]: unknown;
}

/** OCSF `metadata`: `version` and `product` are required. */
export interface OcsfMetadata {
  readonly version: string;
  readonly product: {
    readonly name: string;
    readonly vendor_name?: string;
    readonly version?: string;
  };
  /** The event's uid. */
  readonly uid: Uid;
  /** Upstream's own id of the record, as text. */
  readonly original_event_uid?: string;
  readonly original_time?: string;
  readonly event_code?: string;
  readonly log_name?: string;
  readonly log_provider?: string;
  readonly tenant_uid?: string;
  readonly correlation_uid?: string;
  /** Epoch milliseconds at which sluice read the record. */
  readonly logged_time?: number;
  readonly profiles?: readonly string[];
  readonly is_truncated?: boolean;
  readonly untruncated_size?: number;
  readonly [attribute: string]: unknown;
}

/** OCSF `actor`: at least one member is set. */
export interface OcsfActor {
  readonly user?: OcsfUser;
  readonly app_name?: string;
  readonly app_uid?: string;
  readonly session?: JsonObject;
  readonly invoked_by?: string;
  readonly [attribute: string]: unknown;
}

/** OCSF `user`: at least one of name, uid, account is set. */
export interface OcsfUser {
  readonly name?: string;
  readonly uid?: string;
  readonly email_addr?: string;
  readonly type?: string;
  readonly type_id?: number;
  readonly [attribute: string]: unknown;
}

/** OCSF `endpoint`: at least one member is set. */
export interface OcsfEndpoint {
  readonly ip?: string;
  readonly hostname?: string;
  readonly port?: number;
  readonly mac?: string;
  readonly name?: string;
  readonly uid?: string;
  readonly [attribute: string]: unknown;
}

/** What an answer of upstream was to, and what it says besides its records. */
export interface AnswerFacts {
  /** Of HTTP. */
  readonly status: number;
  /** Path and query as they were asked for, without what names a place in a list. */
  readonly path: string;
  /**
   * The cursor, address, offset or page number that was asked with; null: none was. Cursors are
   * secrets: they are shown nowhere, and held as the checkpoint holds them.
   */
  readonly asked: string | null;
  /** The cursor or address that it leads to; null: there is no more. Left out: it does not say. */
  readonly next?: string | null;
  /** It was requested from an earlier place of the list again, for records that came late. */
  readonly isRewind?: true;
  /** How many records it lists, new or not; left out: it is no list. */
  readonly records?: number;
  /** By which upstream finds it again. */
  readonly requestId?: string;
  /** Upstream's `Date`, as it was sent. */
  readonly date?: string;
}

/** What is known of a held page's records besides their bytes; stored with the page. */
export interface PageContext {
  readonly source: string;
  readonly stream: string;
  readonly kind: RecordKind;
  /** The company the stream reads, if it reads one. */
  readonly company?: string;
  /** Whose list or object it is, e.g. a ticket's id, where the stream reads one of each. */
  readonly parent?: string;
  /** It is an object that was told before, with another content. */
  readonly isUpdate?: boolean;
  /** Epoch milliseconds at which the page was read. */
  readonly fetchedAt: number;
  /** Where every answer of upstream is held: the one that the page's body is. */
  readonly answer?: AnswerFacts;
  /** A sink tells it, and is named as its source: all sinks get it that do not take pages. */
  readonly isOfSink?: true;
  /**
   * What the headers of a delivery say; the page holds one record of it. `number`: which one, from 1
   * on, where the delivery is an array of records.
   */
  readonly delivery?: {
    readonly id: string | null;
    readonly event: string | null;
    readonly number?: number;
  };
}

/** A parsed record: an object in every known case, yet upstream may send anything. */
export type ParsedRecord = Json;

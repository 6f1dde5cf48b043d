// An event is one record on its way out: the bytes as upstream sent them, an identity that never
// changes, and the OCSF form, made on a format's first use. Formats and sinks read events; only
// send/ makes them. Invariants: the same upstream record has the same uid each time it is read; an
// event is immutable, because sinks share it.

import type { Json, JsonObject } from './json.ts';

/** 64 lower-case hex characters: SHA-256 over source, tenant, stream and identity. */
export type Uid = string;

/** A position in the spool: the number of events stored before it since the spool was created. */
export type Offset = number;

/**
 * The kind of a stored page, which decides how its records are normalised. `answer`: an upstream
 * response without a record; only sinks that take pages receive it.
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
  /** Holds source, stream and kind; one object shared by all events of a page. */
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

/** Facts about an upstream response other than its records. */
export interface AnswerFacts {
  /** HTTP status. */
  readonly status: number;
  /** Path and query as requested, without the parameters that give a position in a list. */
  readonly path: string;
  /**
   * The requested cursor, address, offset or page number; null: none. Cursors are secrets: never
   * shown, and stored only as the checkpoint stores them.
   */
  readonly asked: string | null;
  /**
   * The cursor or address of the next page; null: the last page. Absent: the response does not say.
   */
  readonly next?: string | null;
  /** The request repeats an earlier position of the list, to find late records. */
  readonly isRewind?: true;
  /** Number of listed records, new or not; absent: not a list. */
  readonly records?: number;
  /** Upstream's request id, for its support. */
  readonly requestId?: string;
  /** The response's `Date` header, verbatim. */
  readonly date?: string;
}

/** Facts about a stored page's records in addition to their bytes; stored with the page. */
export interface PageContext {
  readonly source: string;
  readonly stream: string;
  readonly kind: RecordKind;
  /** The company that the stream reads, if any. */
  readonly company?: string;
  /** The parent of the list or object, e.g. a ticket's id, if the stream reads one per parent. */
  readonly parent?: string;
  /** The object was reported before, with different content. */
  readonly isUpdate?: boolean;
  /** Epoch milliseconds at which the page was read. */
  readonly fetchedAt: number;
  /** Set if every upstream response is stored: the response whose body this page is. */
  readonly answer?: AnswerFacts;
  /** A sink reports it, and is named as its source. All sinks that take events receive it. */
  readonly isOfSink?: true;
  /**
   * The headers of a webhook delivery; the page holds one record of the delivery. `number`: the
   * record's position in it, from 1, if the delivery is an array of records.
   */
  readonly delivery?: {
    readonly id: string | null;
    readonly event: string | null;
    readonly number?: number;
  };
}

/** A parsed record: an object in every known case, but upstream may send anything. */
export type ParsedRecord = Json;

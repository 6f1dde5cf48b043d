// The interface of a source, for its author. A source declares its streams, their requests, and the
// location of records in a response. The engine sends the requests: it owns order, cursors,
// repeats, waits, retries and limits.

import type { RecordKind } from './event.ts';
import type { JsonObject } from './json.ts';
import type { Secret } from './secret.ts';
import type { HostPort } from './settings.ts';
import type { Upstream, UpstreamRequest } from './upstream.ts';

/** The order in which a list endpoint returns its records. */
export type Order = 'oldest_first' | 'newest_first' | 'mixed';

/** The paging of a list endpoint, in the terms of the config. */
export interface Pagination {
  /** `shown`: by cursor or offset, as the first response shows; not a value of the config. */
  readonly style: 'cursor' | 'offset' | 'page' | 'link' | 'next_url' | 'window' | 'none' | 'shown';
  /** Query parameters. */
  readonly cursor_param: string;
  readonly limit_param: string;
  readonly offset_param: string;
  /** For style `page`. */
  readonly page_param?: string;
  readonly first_page?: number;
  /** Dotted path of the records; a response that is an array itself is accepted. */
  readonly items: string;
  /** Dotted path of the next page's cursor, or of its address. */
  readonly next: string;
  /** An address with another scheme or host is requested at the configured origin. */
  readonly rebase?: boolean;
  /** Dotted path of a flag for further pages. */
  readonly more?: string;
  /** Dotted path of the list's length; null: lengths are not used. */
  readonly total: string | null;
  /** For style `window`. */
  readonly window?: TimeWindows;
}

/** Time windows in which a list is requested, one after the other; each has its own paging. */
export interface TimeWindows {
  readonly from_param: string;
  readonly to_param: string;
  readonly time_format: 'rfc3339' | 'epoch_s' | 'epoch_ms';
  readonly within: 'cursor' | 'offset' | 'page';
  readonly stepMs: number;
  /** Only records older than this are requested. */
  readonly lagMs: number;
}

/** A list endpoint: its request, and the location of records in a response. */
export interface ListEndpoint {
  /** Source, company and endpoint, e.g. `web_logs/c-1`; the key of the checkpoint. */
  readonly name: string;
  readonly upstream: Pick<Upstream, 'get'>;
  /** The part that the requests for all pages share. */
  readonly request: UpstreamRequest;
  /** Query parameters that request an order, sent after the others; upstream may reject them. */
  readonly sorting: UpstreamRequest['query'];
  readonly pagination: Pagination;
  /** Requested records per page; null: no limit parameter is sent. */
  readonly pageLimit: number | null;
  /** Dotted path of a record's id; null: records have none. */
  readonly id: string | null;
  /**
   * Dotted paths in a record that are not part of its content; elements have their array's path.
   */
  readonly ignore?: readonly string[];
  /**
   * A 200 that reports errors beside its data. `retry`: incomplete; its records are delivered
   * before the same page is requested again. `accept`: complete. Default: `retry`.
   */
  readonly partial?: 'retry' | 'accept';
}

/** Facts that all streams have. */
interface StreamFacts {
  readonly source: string;
  /** The requested path, as sent and as template: limits for these, and for paths below, apply. */
  readonly paths: readonly string[];
  readonly company?: string;
}

/** A list endpoint read as a stream of records. */
export interface ListStream extends ListEndpoint, StreamFacts {
  readonly kind: 'list';
  readonly records: RecordKind;
  /** True if upstream declares its records immutable: a change violates their integrity. */
  readonly immutable: boolean;
  /**
   * JSON array of base address, path and fixed query; if these differ, a checkpoint is not resumed.
   * Then the paging; if it differs, the list is read again from its start.
   */
  readonly fingerprint: string;
  /** Dotted paths of a record's time; the first valid one is used. */
  readonly time: readonly string[];
}

/** The kind of an entity and the location of its id. */
export interface EntityKind {
  readonly kind: string;
  /** Dotted paths of an entity's id; the first that has a value is used. */
  readonly ids: readonly string[];
}

/**
 * A collection that upstream returns as a whole and that changes over time: scanned repeatedly and
 * reported as changes. Requests, schedule and confirmation are the engine's.
 */
export interface CollectionStream extends StreamFacts {
  readonly kind: 'collection';
  readonly name: string;
  /** If it differs, a checkpoint is not resumed. */
  readonly fingerprint: string;
  /** The name of the stream's entities in a baseline. */
  readonly resource: string;
  readonly entity: EntityKind;
  /** The list of its entities. */
  readonly list: ListEndpoint;
  /**
   * There is no list: the response is the single entity, alone or in `data`. An entity without an
   * id is known by its company, else by `resource`.
   */
  readonly single?: boolean;
  /** False for an element of the list that does not belong to the stream. Default: all belong. */
  holds?(element: JsonObject): boolean;
  /** If the list shows only a part of each entity: the request for one entity by its id. */
  readonly detail?: EntityDetail;
}

/** The request and response for one entity. */
export interface EntityDetail {
  /** Null for an id that a path cannot contain. */
  request(id: string): UpstreamRequest | null;
  /** Entities within it: elements of one of its lists, which holds their ids in order. */
  readonly parts?: EntityKind & { isList(member: string): boolean };
}

/**
 * Records that upstream sends to a listening address of sluice (webhooks), one record per delivery.
 * Storage, response and access control are the engine's.
 */
export interface PushStream extends StreamFacts {
  readonly kind: 'push';
  readonly name: string;
  readonly records: RecordKind;
  /** If it differs, a checkpoint is not resumed. */
  readonly fingerprint: string;
  readonly listen: ListenAddress;
  readonly rules: DeliveryRules;
  readonly registration: Registration;
}

/** The address and events to register at upstream; a null address: not configured. */
export interface Registration {
  readonly url: string | null;
  readonly events: readonly string[];
}

/** The listening address; several streams may share it under their own paths. */
export interface ListenAddress extends HostPort {
  readonly path: string;
  /** Default: plain HTTP. */
  readonly tls?: ServerTls | undefined;
}

/** TLS of a listening server; changed files are read again. */
export interface ServerTls {
  readonly cert_file: string;
  readonly key_file: string;
  /** Authorities for client certificates, which become required. */
  readonly ca_file?: string | undefined;
  readonly min_version?: 'TLSv1.2' | 'TLSv1.3' | undefined;
}

/** The rules by which a delivery is authenticated. Header names are in lower case. */
export interface DeliveryRules {
  /** A signature by any of them is valid. */
  readonly secrets: readonly Secret[];
  readonly secretEncoding: BufferEncoding;
  /** `sha256=` and the HMAC in hex, over the body, or over time, a dot and the body. */
  readonly signatureHeader: string;
  readonly signsTime: boolean;
  readonly deliveryHeader: string;
  readonly eventHeader: string;
  /** Header of the sending time; null: none, so the age is not checked. */
  readonly timestampHeader: string | null;
  readonly maxAgeMs: number;
  readonly bodyBytesMax: number;
}

/**
 * Small lists or single objects, one per parent: the timelines of tickets, investigations by id.
 * The selection and order of parents is the engine's.
 */
export interface ParentsStream extends StreamFacts {
  readonly kind: 'parents';
  readonly name: string;
  readonly records: RecordKind;
  /** If it differs, a checkpoint is not resumed. */
  readonly fingerprint: string;
  /**
   * The stream of one parent; its name begins with this stream's. Null: a path cannot contain the
   * id.
   */
  listOf(id: string): ListStream | null;
  /** Default: a list. Otherwise one object, reported at each change until it is final. */
  readonly object?: { isFinal(object: JsonObject): boolean };
}

/** Any stream. */
export type Stream = ListStream | CollectionStream | PushStream | ParentsStream;

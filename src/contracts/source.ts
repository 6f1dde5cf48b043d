// What a source is to sluice, for the person who writes one. A source says which streams it has,
// what is asked for, and where in an answer the records stand. The engine asks: it owns order,
// cursors, repeats, waits, retries and limits.

import type { RecordKind } from './event.ts';
import type { JsonObject } from './json.ts';
import type { Secret } from './secret.ts';
import type { HostPort } from './settings.ts';
import type { Upstream, UpstreamRequest } from './upstream.ts';

/** In which order a list endpoint gives its records. */
export type Order = 'oldest_first' | 'newest_first' | 'mixed';

/** How a list endpoint is paged, in the words of the config. */
export interface Pagination {
  /** `shown`: by cursor or offset, as the first answer shows; no config says so. */
  readonly style: 'cursor' | 'offset' | 'page' | 'link' | 'next_url' | 'window' | 'none' | 'shown';
  /** Query parameters. */
  readonly cursor_param: string;
  readonly limit_param: string;
  readonly offset_param: string;
  /** Of style `page`. */
  readonly page_param?: string;
  readonly first_page?: number;
  /** Dotted path of the records; an answer that is itself an array is read as such. */
  readonly items: string;
  /** Dotted path of the next page's cursor, or of its address. */
  readonly next: string;
  /** An address of another scheme or host is requested at the origin that is configured. */
  readonly rebase?: boolean;
  /** Dotted path of a flag that says whether there is more. */
  readonly more?: string;
  /** Dotted path of the list's length; null: nothing is concluded from lengths. */
  readonly total: string | null;
  /** Of style `window`. */
  readonly window?: TimeWindows;
}

/** Windows of time that a list is asked for in, one after the other; each is paged itself. */
export interface TimeWindows {
  readonly from_param: string;
  readonly to_param: string;
  readonly time_format: 'rfc3339' | 'epoch_s' | 'epoch_ms';
  readonly within: 'cursor' | 'offset' | 'page';
  readonly stepMs: number;
  /** Nothing is asked for that happened less than this ago. */
  readonly lagMs: number;
}

/** A list endpoint: what is asked for, and where in an answer its records stand. */
export interface ListEndpoint {
  /** Source, company and endpoint, e.g. `web_logs/c-1`; names the checkpoint. */
  readonly name: string;
  readonly upstream: Pick<Upstream, 'get'>;
  /** What the requests for all pages have in common. */
  readonly request: UpstreamRequest;
  /** Parameters that ask for an order, sent behind the others; upstream may refuse them. */
  readonly sorting: UpstreamRequest['query'];
  readonly pagination: Pagination;
  /** Records a page to ask for; null: upstream is not told. */
  readonly pageLimit: number | null;
  /** Dotted path of a record's id; null: records have none. */
  readonly id: string | null;
  /** Dotted paths in a record that are not its content; elements have their array's path. */
  readonly ignore?: readonly string[];
  /**
   * What a 200 is that reports errors beside its data. `retry`: a part, whose records are delivered
   * before the same page is requested again; `accept`: whole. Default: `retry`.
   */
  readonly partial?: 'retry' | 'accept';
}

/** What all streams have. */
interface StreamFacts {
  readonly source: string;
  /** The path it asks, as sent and as template: limits of these, and of paths below, hold. */
  readonly paths: readonly string[];
  readonly company?: string;
}

/** A list endpoint read as a stream of records. */
export interface ListStream extends ListEndpoint, StreamFacts {
  readonly kind: 'list';
  readonly records: RecordKind;
  /** True where upstream calls its records immutable: a change violates their integrity. */
  readonly immutable: boolean;
  /**
   * JSON array of base address, path and fixed query, with others of which a checkpoint is not
   * resumed; then the paging, with another of which the list is read again from its start.
   */
  readonly fingerprint: string;
  /** Dotted paths of a record's time; the first that parses wins. */
  readonly time: readonly string[];
}

/** What entities of a kind are known by. */
export interface EntityKind {
  readonly kind: string;
  /** Dotted paths at which an entity's id may stand; the first that holds one counts. */
  readonly ids: readonly string[];
}

/**
 * A collection that is served whole and changes: read again and again, and told as its changes.
 * What is asked, how often and when it may be believed is the engine's.
 */
export interface CollectionStream extends StreamFacts {
  readonly kind: 'collection';
  readonly name: string;
  /** With another one a checkpoint is not resumed. */
  readonly fingerprint: string;
  /** What the stream's entities are called in a baseline. */
  readonly resource: string;
  readonly entity: EntityKind;
  /** The list of its entities. */
  readonly list: ListEndpoint;
  /**
   * There is no list: the answer is the one entity itself, alone or in `data`. One without an id is
   * known by its company, else by `resource`.
   */
  readonly single?: boolean;
  /** False for an element of the list that is none of the stream's; left out: all are. */
  holds?(element: JsonObject): boolean;
  /** Where the list shows no more than a part: each entity is asked for by its id. */
  readonly detail?: EntityDetail;
}

/** What the answer for one entity is. */
export interface EntityDetail {
  /** Null for an id that no path can hold. */
  request(id: string): UpstreamRequest | null;
  /** Entities within it, elements of one of its lists, which holds their ids in their places. */
  readonly parts?: EntityKind & { isList(member: string): boolean };
}

/**
 * What upstream sends by itself to an address of ours, each delivery a record. When one is held,
 * what is answered and who is let in is the engine's.
 */
export interface PushStream extends StreamFacts {
  readonly kind: 'push';
  readonly name: string;
  readonly records: RecordKind;
  /** With another one a checkpoint is not resumed. */
  readonly fingerprint: string;
  readonly listen: ListenPlace;
  readonly rules: DeliveryRules;
  readonly registration: Registration;
}

/** What upstream is asked to send, and to which address; null: the config does not say. */
export interface Registration {
  readonly url: string | null;
  readonly events: readonly string[];
}

/** Where deliveries come in: several streams may share an address under paths of their own. */
export interface ListenPlace extends HostPort {
  readonly path: string;
  /** Left out: plain HTTP. */
  readonly tls?: ServerTls | undefined;
}

/** TLS of a server of ours; the files are read again when they change. */
export interface ServerTls {
  readonly cert_file: string;
  readonly key_file: string;
  /** Authorities of which a client has to bring a certificate. */
  readonly ca_file?: string | undefined;
  readonly min_version?: 'TLSv1.2' | 'TLSv1.3' | undefined;
}

/** What shows that a delivery is upstream's. Names of headers are in lower case. */
export interface DeliveryRules {
  /** Any of them may have signed. */
  readonly secrets: readonly Secret[];
  readonly secretEncoding: BufferEncoding;
  /** `sha256=` and the HMAC in hex, over the body, or over the time, a dot and the body. */
  readonly signatureHeader: string;
  readonly signsTime: boolean;
  readonly deliveryHeader: string;
  readonly eventHeader: string;
  /** When it was sent; null: nothing tells, so that no age is judged. */
  readonly timestampHeader: string | null;
  readonly maxAgeMs: number;
  readonly bodyBytesMax: number;
}

/**
 * Small lists or single objects, one of each parent: the timelines of tickets, investigations by
 * their ids. Which parents there are, and in which order they are asked, is the engine's.
 */
export interface ParentsStream extends StreamFacts {
  readonly kind: 'parents';
  readonly name: string;
  readonly records: RecordKind;
  /** With another one a checkpoint is not resumed. */
  readonly fingerprint: string;
  /** What is read of a parent, its name begins with the stream's; null: no path can hold the id. */
  listOf(id: string): ListStream | null;
  /** Left out: a list. Else one object, told when it changes, until it changes no more. */
  readonly object?: { isFinal(object: JsonObject): boolean };
}

/** Any stream. */
export type Stream = ListStream | CollectionStream | PushStream | ParentsStream;

// What a source is to sluice, for the person who writes one. A source answers `fetchPage` once and remembers nothing:
// the engine owns order, cursors, repeats, waits, retries and limits. It says which streams it has, how one page is
// asked for, and where in the answer the records stand.

import type { Answer } from './answer.ts';
import type { ExportError } from './errors.ts';
import type { ParsedRecord, RecordKind } from './event.ts';

/** Where in a list a page starts. A cursor is upstream's own text and is handed back byte for byte; null: the first page. */
export type Place =
  | { readonly by: 'cursor'; readonly cursor: string | null }
  | { readonly by: 'offset'; readonly offset: number };

/** One page asked for. */
export interface PageQuery {
  readonly place: Place;
  /** Records a page; null: the parameter is left out. */
  readonly limit: number | null;
  /** Without the sorting that the source asks for, since upstream refuses it. */
  readonly unsorted?: boolean;
}

/** The records of a page, parsed when asked for; an array is one as well. */
export interface Records {
  readonly length: number;
  /** As arrays have it: negative from the end, undefined beyond either. */
  at(index: number): ParsedRecord | undefined;
}

/** What shows that a list goes on behind an answer, otherwise than its paging as configured says. */
export interface MoreSign {
  /** The header, or the path of the member. */
  readonly sign: string;
  /** How the endpoint is most likely paged, in the words of the config; null: that cannot be told. */
  readonly likely: ({ readonly style: string } & { readonly [key: string]: string }) | null;
}

/** One whole, well-formed answer. */
export interface Page {
  /** The body as upstream sent it. */
  readonly body: Uint8Array;
  /** Dotted path of the records within the body. */
  readonly items: string;
  readonly records: Records;
  /** The cursor of the next page; null at the end; undefined where the answer has no such key. */
  readonly next: string | null | undefined;
  /** What upstream says the list's length is, where it says so. */
  readonly total: number | null;
  /** What shows that there is more behind it; null or left out: nothing does. */
  readonly more?: MoreSign | null;
}

/** The answer to one request for a page. */
export type PageAnswer = Answer<{ readonly page: Page }>;

/** In which order a list endpoint gives its records. */
export type Order = 'oldest_first' | 'newest_first' | 'mixed';

/** How a list endpoint is paged. */
export type PagingStyle = 'cursor' | 'offset' | 'none';

/** A list endpoint read as a stream of records. */
export interface ListStream {
  readonly kind: 'list';
  /** Source, company and endpoint, e.g. `web_logs/c-1`; names the checkpoint. */
  readonly name: string;
  readonly source: string;
  /** The path that it asks, as sent and as its template: limits of these, and of paths below, are its limits. */
  readonly paths: readonly string[];
  readonly company?: string;
  readonly records: RecordKind;
  /** True where upstream calls its records immutable, so that a changed one is an integrity violation. */
  readonly immutable: boolean;
  readonly paging: PagingStyle;
  /**
   * JSON array of base address, path and fixed query, with others of which a checkpoint is not resumed; then the paging, with
   * another of which the list is read again from its start.
   */
  readonly fingerprint: string;
  /** Dotted path of a record's id; null: records have none. */
  readonly id: string | null;
  /** Dotted paths of a record's time; the first that parses wins. */
  readonly time: readonly string[];
  /** Dotted paths within a record that are no part of its content; an array's elements have the array's path. */
  readonly ignore?: readonly string[];
  readonly pageLimit: number | null;
  /** True where pages are asked for in an order, which upstream may refuse. */
  readonly sorted?: boolean;
  fetchPage(query: PageQuery, signal: AbortSignal): Promise<PageAnswer>;
}

/** One entity of a configuration, as read. */
export interface Entity {
  /** Unique within its stream: kind and id, and the policy for a rule. */
  readonly key: string;
  readonly kind: string;
  readonly id: string;
  readonly name?: string;
  readonly parentId?: string;
  /** The list of its parent's that it stands in, e.g. `nat_rules`, and its place there from 1; a place is no content. */
  readonly list?: string;
  readonly place?: number;
  /** The entity as upstream sent it, UTF-8 JSON. */
  readonly text: string;
}

/**
 * One reading of a configuration. `complete` only if every request of it was answered as it should be; what is missing
 * from an incomplete one says nothing.
 */
export interface Reading {
  readonly complete: boolean;
  readonly entities: readonly Entity[];
  /** Why it is not complete. */
  readonly cause?: ExportError;
}

/** A configuration that is read whole, again and again, and told as its changes. */
export interface SnapshotStream {
  readonly kind: 'snapshot';
  readonly name: string;
  readonly source: string;
  /** As a ListStream has it. */
  readonly paths: readonly string[];
  readonly company: string;
  readonly fingerprint: string;
  /** What the stream's entities are called in a baseline. */
  readonly resource: string;
  readEverything(signal: AbortSignal): Promise<Answer<Reading>>;
  /** By-id read of one entity where upstream has one: `gone` only for a plain 404. */
  stillThere?(
    entity: { key: string; id: string },
    signal: AbortSignal,
  ): Promise<'there' | 'gone' | 'unknown'>;
}

/** Any stream. */
export type Stream = ListStream | SnapshotStream;

// What a source is to sluice, for the person who writes one. A source says which streams it has, what is asked for, and
// where in an answer the records stand. The engine asks: it owns order, cursors, repeats, waits, retries and limits.

import type { Answer } from './answer.ts';
import type { ExportError } from './errors.ts';
import type { RecordKind } from './event.ts';
import type { Upstream, UpstreamRequest } from './upstream.ts';

/** In which order a list endpoint gives its records. */
export type Order = 'oldest_first' | 'newest_first' | 'mixed';

/** How a list endpoint is paged, in the words of the config. */
export interface Pagination {
  readonly style: 'cursor' | 'offset' | 'none';
  /** Query parameters. */
  readonly cursor_param: string;
  readonly limit_param: string;
  readonly offset_param: string;
  /** Dotted path of the records; an answer that is itself an array is read as such. */
  readonly items: string;
  /** Dotted path of the next page's cursor. */
  readonly next: string;
  /** Dotted path of the list's length; null: nothing is concluded from lengths. */
  readonly total: string | null;
}

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
  readonly upstream: Pick<Upstream, 'get'>;
  /** What the requests for all pages have in common. */
  readonly request: UpstreamRequest;
  /** Parameters that ask for an order, sent behind the others; upstream may refuse them. */
  readonly sorting: UpstreamRequest['query'];
  readonly pagination: Pagination;
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
  /** Records a page to ask for; null: upstream is not told. */
  readonly pageLimit: number | null;
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

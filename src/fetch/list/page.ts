// A page of a list: where it stands, how it is asked for, and what its answer holds.

import type { Answer } from '../../contracts/answer.ts';
import type { Pagination } from '../../contracts/source.ts';
import type { RecordList } from '../../tools/record-list.ts';

/** Where a page starts. A cursor is upstream's own, handed back as it is; null: the first. */
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

/** What shows that a list goes on behind an answer, though its paging does not say so. */
export interface MoreSign {
  /** The header, or the path of the member. */
  readonly sign: string;
  /** How the endpoint is most likely paged, in the config's words; null: not known. */
  readonly likely: ({ readonly style: string } & { readonly [key: string]: string }) | null;
}

/** One whole, well-formed answer. */
export interface Page {
  /** The body as upstream sent it. */
  readonly body: Uint8Array;
  readonly records: RecordList;
  /** The cursor of the next page; null at the end; undefined where the answer has no such key. */
  readonly next: string | null | undefined;
  /** What upstream says the list's length is, where it says so. */
  readonly total: number | null;
  /** It says at which row it begins, as lists do that are paged by offset. */
  readonly isCounted: boolean;
  /** What shows that there is more behind it; null: nothing does. */
  readonly more: MoreSign | null;
}

/** The answer to one request for a page. */
export type PageAnswer = Answer<{ readonly page: Page }>;

/** Where a list of this style begins. */
export function firstPlace({ style }: Pick<Pagination, 'style'>): Place {
  return style === 'offset' ? { by: 'offset', offset: 0 } : { by: 'cursor', cursor: null };
}

/** True for where a list begins. */
export function isFirst(place: Place): boolean {
  return place.by === 'cursor' ? place.cursor === null : place.offset === 0;
}

/** True for the same place. */
export function samePlace(a: Place | null, b: Place | null): boolean {
  if (a === null || b === null) return a === b;
  if (a.by === 'cursor') return b.by === 'cursor' && a.cursor === b.cursor;
  return b.by === 'offset' && a.offset === b.offset;
}

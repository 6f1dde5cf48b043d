// A page of a list: where it stands, how it is asked for, and what its answer holds.

import type { Answer, Failure } from '../../contracts/answer.ts';
import type { ExportError } from '../../contracts/errors.ts';
import type { Pagination, TimeWindows } from '../../contracts/source.ts';
import type { RecordList } from '../../tools/record-list.ts';

/**
 * Where in a list a page starts. A cursor is upstream's own text, or the address of the page, and is
 * handed back byte for byte; null: the first page. An offset counts rows, or pages where they are
 * asked for by number. In a list that is asked for by windows of time it is the place within one.
 */
export type ListPosition = (
  | { readonly by: 'cursor'; readonly cursor: string | null }
  | { readonly by: 'offset'; readonly offset: number }
) & { readonly window?: TimeWindow };

/** From a time on and before another, epoch milliseconds; null: that is not decided yet. */
export interface TimeWindow {
  readonly from: number;
  readonly to: number | null;
}

/** One page asked for. */
export interface PageQuery {
  readonly place: ListPosition;
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
  /**
   * The cursor of the next page; null at the end, which a flag may tell in any style; undefined where
   * the answer has no such key.
   */
  readonly next: string | null | undefined;
  /** What upstream says the list's length is, where it says so. */
  readonly total: number | null;
  /** It says at which row it begins, as lists do that are paged by offset. */
  readonly isCounted: boolean;
  /** What shows that there is more behind it; null: nothing does. */
  readonly more: MoreSign | null;
  /** The response reports that records are missing from it; null: it does not. */
  readonly partial: ExportError | null;
}

/** The answer to one request for a page. */
export type PageAnswer = Answer<{ readonly page: Page }>;

/** A walk that ended at a page with missing records: its records are stored, its place is not passed. */
export interface PartialPage extends Failure {
  readonly isPartial: true;
}

export function partialPage(cause: ExportError): PartialPage {
  return { outcome: 'retry', isPartial: true, cause };
}

/** True for that failure. */
export function isPartialPage(failure: Failure): failure is PartialPage {
  return 'isPartial' in failure;
}

/** How one window of a list is paged; all of it where there are none. */
export function withinWindow(pagination: Pagination): Pagination {
  const { style, window } = pagination;
  return style === 'window' && window ? { ...pagination, style: window.within } : pagination;
}

/** True where a cursor is the address of its page. */
export function namesAddress({ style }: Pick<Pagination, 'style'>): boolean {
  return style === 'link' || style === 'next_url';
}

/** What a place is called: a parameter of that name asks for it, but for an address. */
export function nameOfPlace(pagination: Pagination): 'cursor' | 'offset' | 'page' | 'address' {
  const { style } = withinWindow(pagination);
  if (namesAddress(pagination)) return 'address';
  return style === 'offset' || style === 'page' ? style : 'cursor';
}

/** Where a list begins; `since`: the time that its windows begin at. */
export function firstPlace(pagination: Pagination, since: number | null = null): ListPosition {
  const { style } = withinWindow(pagination);
  const isCounted = style === 'offset' || style === 'page';
  const place: ListPosition = isCounted
    ? { by: 'offset', offset: 0 }
    : { by: 'cursor', cursor: null };
  const from = wholeSecond(since ?? 0);
  return { ...place, ...(pagination.style === 'window' && { window: { from, to: null } }) };
}

/** Where a list begins, or the window of it that `place` is in. */
export function startOf(pagination: Pagination, { window }: ListPosition): ListPosition {
  const first = firstPlace(withinWindow(pagination));
  return window === undefined ? first : { ...first, window };
}

/** A place whose window has an end: as far as it is over now, and a second at least. */
export function closed(
  place: ListPosition,
  windows: TimeWindows | undefined,
  now: number,
): ListPosition {
  if (windows === undefined || place.window?.to !== null) return place;
  const { from } = place.window;
  const over = Math.min(from + windows.stepMs, wholeSecond(now - windows.lagMs));
  return { ...place, window: { from, to: Math.max(from + 1_000, over) } };
}

/** Bounds of windows are whole seconds, which each format can say. */
export function wholeSecond(time: number): number {
  return Math.floor(time / 1_000) * 1_000;
}

/** True for where a list, or a window of it, begins. */
export function isFirst(place: ListPosition): boolean {
  return place.by === 'cursor' ? place.cursor === null : place.offset === 0;
}

/** True for places of one window, and where there are none. */
export function sameWindow(a: ListPosition, b: ListPosition): boolean {
  return a.window?.from === b.window?.from;
}

/** True for the same place. */
export function samePlace(a: ListPosition | null, b: ListPosition | null): boolean {
  if (a === null || b === null) return a === b;
  if (!sameWindow(a, b)) return false;
  if (a.by === 'cursor') return b.by === 'cursor' && a.cursor === b.cursor;
  return b.by === 'offset' && a.offset === b.offset;
}

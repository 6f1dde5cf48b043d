// A page of a list: its position, its request and the content of its response.

import type { Answer, ExportError, Failure, Pagination, TimeWindows } from '../contracts/index.ts';
import type { RecordList } from '../tools/index.ts';

/**
 * The position in a list at which a page starts. A cursor is upstream's own text or the page's address, sent back byte
 * for byte; null: the first page. An offset counts rows, or pages for paging by number. With windows of time it is the
 * position within one window.
 */
export type ListPosition = (
  | { readonly by: 'cursor'; readonly cursor: string | null }
  | { readonly by: 'offset'; readonly offset: number }
) & { readonly window?: TimeWindow };

/** From a time (inclusive) to another (exclusive), epoch milliseconds; null: not decided yet. */
export interface TimeWindow {
  readonly from: number;
  readonly to: number | null;
}

/** The request for one page. */
export interface PageQuery {
  readonly position: ListPosition;
  /** Records per page; null: the parameter is omitted. */
  readonly limit: number | null;
  /** Omit the source's sorting, because upstream rejects it. */
  readonly unsorted?: boolean;
}

/** A sign that a list continues after a response although its paging does not say so. */
export interface MoreSign {
  /** The header, or the path of the member. */
  readonly sign: string;
  /** The likely paging of the endpoint, in the config's keys; null: unknown. */
  readonly likely: ({ readonly style: string } & { readonly [key: string]: string }) | null;
}

/** One complete, well-formed response. */
export interface Page {
  /** The body as upstream sent it. */
  readonly body: Uint8Array;
  readonly records: RecordList;
  /**
   * The cursor of the next page; null: the end, which a flag may mark in any style; undefined: the response has no such
   * key.
   */
  readonly next: string | null | undefined;
  /** The length of the list as upstream reports it; null: it does not. */
  readonly total: number | null;
  /** The response states its first row, as lists with offset paging do. */
  readonly isCounted: boolean;
  /** The sign of more rows after the page; null: none. */
  readonly more: MoreSign | null;
  /** The response reports missing records; null: it does not. */
  readonly partial: ExportError | null;
}

/** The result of one request for a page. */
export type PageAnswer = Answer<{ readonly page: Page }>;

/** A walk that ended at a page with missing records: its records are stored, and the position is not passed. */
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

/** The paging within one window of a list; without windows, the paging of the list. */
export function withinWindow(pagination: Pagination): Pagination {
  const { style, window } = pagination;
  return style === 'window' && window ? { ...pagination, style: window.within } : pagination;
}

/** True if a cursor is the address of its page. */
export function namesAddress({ style }: Pick<Pagination, 'style'>): boolean {
  return style === 'link' || style === 'next_url';
}

/** The name of a position in messages: the parameter's name, or `address`. */
export function nameOfPosition(pagination: Pagination): 'cursor' | 'offset' | 'page' | 'address' {
  const { style } = withinWindow(pagination);
  if (namesAddress(pagination)) return 'address';
  return style === 'offset' || style === 'page' ? style : 'cursor';
}

/** The first position of a list. `since`: start of its first window, epoch milliseconds. */
export function firstPosition(pagination: Pagination, since: number | null = null): ListPosition {
  const { style } = withinWindow(pagination);
  const isCounted = style === 'offset' || style === 'page';
  const position: ListPosition = isCounted
    ? { by: 'offset', offset: 0 }
    : { by: 'cursor', cursor: null };
  const from = wholeSecond(since ?? 0);
  return { ...position, ...(pagination.style === 'window' && { window: { from, to: null } }) };
}

/** The first position of a list, or of the window that `position` is in. */
export function startOf(pagination: Pagination, { window }: ListPosition): ListPosition {
  const first = firstPosition(withinWindow(pagination));
  return window === undefined ? first : { ...first, window };
}

/** A position whose window has an end: as far as the window is over now, at least one second long. */
export function closed(
  position: ListPosition,
  windows: TimeWindows | undefined,
  now: number,
): ListPosition {
  if (windows === undefined || position.window?.to !== null) return position;
  const { from } = position.window;
  const over = Math.min(from + windows.stepMs, wholeSecond(now - windows.lagMs));
  return { ...position, window: { from, to: Math.max(from + 1_000, over) } };
}

/** Window bounds are whole seconds, which every time format can express. */
export function wholeSecond(time: number): number {
  return Math.floor(time / 1_000) * 1_000;
}

/** True for the first position of a list or window. */
export function isFirst(position: ListPosition): boolean {
  return position.by === 'cursor' ? position.cursor === null : position.offset === 0;
}

/** True for positions of one window, or if there are no windows. */
export function sameWindow(a: ListPosition, b: ListPosition): boolean {
  return a.window?.from === b.window?.from;
}

/** True for equal positions. */
export function samePosition(a: ListPosition | null, b: ListPosition | null): boolean {
  if (a === null || b === null) return a === b;
  if (!sameWindow(a, b)) return false;
  if (a.by === 'cursor') return b.by === 'cursor' && a.cursor === b.cursor;
  return b.by === 'offset' && a.offset === b.offset;
}

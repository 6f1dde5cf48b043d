// A page of a list: its position, its request, the content of its response, and the interface that leads a walk from
// page to page.

import type { Answer, ExportError, Failure, Pagination, TimeWindows } from '../contracts/index.ts';
import type { RecordList } from '../tools/index.ts';
import type { Identified } from './identity.ts';

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

/** A page that a walk has read. */
export interface FetchedPage {
  readonly page: Page;
  /** Why the row after the page's last one is hidden; null: it is not. */
  readonly hidden: ExportError | null;
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

/** The offset of a position; 0 for a cursor. */
export function offsetOf(position: ListPosition): number {
  return position.by === 'offset' ? position.offset : 0;
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

// A pager lives for one walk; pagers.ts implements each style of paging.

/** The requests that a pager can make. */
export interface PagerDeps {
  /** The page at a position, of which `overlap` rows were read before. */
  ask(position: ListPosition, overlap: number): Promise<Answer<FetchedPage>>;
  identify(page: Page): Identified;
  /** True for a page that may be as long as its limit. */
  isFull(identified: Identified): boolean;
}

/** Leads a walk from page to page. */
export interface Pager {
  /** Rows of the previous page that are requested again. */
  readonly overlap: number;
  /** Rows were inserted before rows that were read. */
  readonly inserted: boolean;
  /** The position to request, to continue at `position`. */
  ask(position: ListPosition): ListPosition;
  /** Requests the page at `position` if that needs more than one request. */
  fetch?(position: ListPosition, deps: PagerDeps): Promise<Answer<FetchedPage>>;
  /**
   * Number of leading records of the response that were on the previous page; null: none of them is there, so rows have
   * moved.
   */
  accept(identified: Identified): number | null;
  /** The next position, or null at the end. Called once per accepted page. */
  next(position: ListPosition, page: Page, identified: Identified): ListPosition | null;
  /** As `next`, if the row after the page's last one is hidden. */
  past(position: ListPosition, page: Page, identified: Identified): ListPosition;
  /** The position at which another walk can resume after the last accepted page. */
  resume(position: ListPosition, next: ListPosition | null): Resume;
  /** The next position after a part of the list that ends at `position`, although upstream names a next page there. */
  leave?(position: ListPosition): ListPosition | null;
}

/** Requests the page to continue at `position`. */
export function fetchWith(
  pager: Pager,
  position: ListPosition,
  deps: PagerDeps,
): Promise<Answer<FetchedPage>> {
  return pager.fetch?.(position, deps) ?? deps.ask(pager.ask(position), pager.overlap);
}

/** A position, and the keys of the rows before it that must reappear; base64. */
export interface Resume {
  readonly resume: ListPosition;
  readonly overlap: string | null;
}

/** Rows of a page that are searched for on the next one. */
export const overlapMax = 10;

// The interface that leads a walk from page to page; pagers.ts implements each style of paging. A pager lives for one
// walk.

import type { Answer } from '../contracts/index.ts';
import type { Identified } from './identity.ts';
import type { ListPosition, Page } from './page.ts';
import type { FetchedPage } from './page-asker.ts';

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

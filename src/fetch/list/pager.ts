// What leads a walk from page to page of a list; pagers.ts has one for each style of paging. A pager
// lives as long as one walk.

import type { Answer } from '../../contracts/answer.ts';
import type { Identified } from './identity.ts';
import type { ListPosition, Page } from './page.ts';
import type { FetchedPage } from './page-asker.ts';

/** What a pager asks with. */
export interface PagerDeps {
  /** The page at a place, of which so many rows were read before. */
  ask(place: ListPosition, overlap: number): Promise<Answer<FetchedPage>>;
  identify(page: Page): Identified;
  /** True for a page that may hold all that was asked for. */
  isFull(identified: Identified): boolean;
}

/** Leads a walk from page to page. */
export interface Pager {
  /** Rows of the page before that are asked for again. */
  readonly overlap: number;
  /** Rows have come in before those that were read already. */
  readonly inserted: boolean;
  /** The place to ask for, to go on at `place`. */
  ask(place: ListPosition): ListPosition;
  /** Asks for the page to go on at `place`, where that takes more than asking for one. */
  fetch?(place: ListPosition, deps: PagerDeps): Promise<Answer<FetchedPage>>;
  /** How many leading records of the answer were on the page before; null: none is there. */
  accept(identified: Identified): number | null;
  /** Where the walk goes on, or null at the end. Called once per accepted page. */
  next(place: ListPosition, page: Page, identified: Identified): ListPosition | null;
  /** As `next`, where the row behind the page's last one is not shown. */
  past(place: ListPosition, page: Page, identified: Identified): ListPosition;
  /** Where another walk can go on after the last accepted page. */
  resume(place: ListPosition, next: ListPosition | null): Resume;
  /** Where it goes on behind a part of the list that ends at `place`, though it was led on there. */
  leave?(place: ListPosition): ListPosition | null;
}

/** Asks for the page to go on at `place`. */
export function fetchWith(
  pager: Pager,
  place: ListPosition,
  deps: PagerDeps,
): Promise<Answer<FetchedPage>> {
  return pager.fetch?.(place, deps) ?? deps.ask(pager.ask(place), pager.overlap);
}

/** A place, and the keys of the rows before it that must reappear; base64. */
export interface Resume {
  readonly resume: ListPosition;
  readonly overlap: string | null;
}

/** Rows of a page that are looked for on the next one. */
export const overlapMax = 10;

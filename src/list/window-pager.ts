// Paging by windows of time, one after the other up to now; each window is paged and read to its end. Invariants: a
// window begins where the previous one ended, and only after that one was read to its end; a window that is not over
// yet is not requested.

import type { Answer, Pagination, TimeWindows } from '../contracts/index.ts';
import type { Identified } from './identity.ts';
import {
  type FetchedPage,
  fetchWith,
  firstPosition,
  type ListPosition,
  type Page,
  type Pager,
  type PagerDeps,
  type Resume,
  type TimeWindow,
  wholeSecond,
} from './page.ts';
import { noRows } from './page-asker.ts';

/** Bounds are whole seconds. */
const shortestMs = 1_000;

/** A window with an end. */
type Closed = TimeWindow & { readonly to: number };

/** The parameters of a list with windows. */
export interface Windows extends Pick<TimeWindows, 'stepMs' | 'lagMs'> {
  /** The paging within each window. */
  readonly within: Pagination;
  /** The pager of a window. */
  pagerFor(from: Resume): Pager;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** Leads from window to window. */
export class WindowPager implements Pager {
  readonly #windows: Windows;
  /** Nothing from this time on is requested, although time passes while the list is read. */
  readonly #upTo: number;
  #pager: Pager;
  #inserted = false;

  constructor(windows: Windows, from: Resume) {
    this.#windows = windows;
    this.#upTo = wholeSecond(windows.now - windows.lagMs);
    this.#pager = windows.pagerFor(from);
  }

  get overlap(): number {
    return this.#pager.overlap;
  }

  get inserted(): boolean {
    return this.#inserted || this.#pager.inserted;
  }

  ask(position: ListPosition): ListPosition {
    return { ...this.#pager.ask(position), ...within(this.#windowOf(position)) };
  }

  /** Nothing is requested if no window is over. */
  async fetch(position: ListPosition, deps: PagerDeps): Promise<Answer<FetchedPage>> {
    const window = this.#windowOf(position);
    if (window === null) return { outcome: 'ok', page: noRows(), hidden: null };
    const ask: PagerDeps['ask'] = (inner, overlap) => deps.ask({ ...inner, window }, overlap);
    return await fetchWith(this.#pager, position, { ...deps, ask });
  }

  accept(identified: Identified): number | null {
    return this.#pager.accept(identified);
  }

  next(position: ListPosition, page: Page, identified: Identified): ListPosition | null {
    const window = this.#windowOf(position);
    if (window === null) return null;
    const next = this.#pager.next(position, page, identified);
    return next === null ? this.leave(position) : { ...next, window };
  }

  leave(position: ListPosition): ListPosition | null {
    const window = this.#windowOf(position);
    if (window === null) return null;
    const first = this.#startOf({ from: window.to, to: null });
    const upcoming = this.#windowOf(first);
    if (upcoming === null) return null;
    this.#inserted ||= this.#pager.inserted;
    this.#pager = this.#windows.pagerFor({ resume: first, overlap: null });
    return { ...first, window: upcoming };
  }

  past(position: ListPosition, page: Page, identified: Identified): ListPosition {
    return { ...this.#pager.past(position, page, identified), ...within(this.#windowOf(position)) };
  }

  resume(position: ListPosition, next: ListPosition | null): Resume {
    const window = this.#windowOf(position);
    if (window === null) return { resume: position, overlap: null };
    if (next === null)
      return { resume: this.#startOf({ from: window.to, to: null }), overlap: null };
    if (next.window?.from !== window.from) return { resume: next, overlap: null };
    const { resume, overlap } = this.#pager.resume(position, next);
    return { resume: { ...resume, window }, overlap };
  }

  #startOf(window: TimeWindow): ListPosition {
    return { ...firstPosition(this.#windows.within), window };
  }

  /** The window of a position; null: it is not over yet. */
  #windowOf({ window }: ListPosition): Closed | null {
    const from = window?.from ?? 0;
    if (window !== undefined && window.to !== null) return { from, to: window.to };
    const to = Math.min(from + this.#windows.stepMs, this.#upTo);
    return to - from < shortestMs ? null : { from, to };
  }
}

function within(window: TimeWindow | null): { readonly window?: TimeWindow } {
  return window === null ? {} : { window };
}

// How one page of a list leads to the next, for each style of paging. A pager lives for one walk.
//
// - cursor: the response names the next page; null, absent or the same cursor again is the end for now
// - link, next_url: as cursor; the address is the cursor
// - offset: rows are counted, and the last rows of the previous page are requested again. If they do not reappear, rows
//   have moved and the walk must restart. The end is an empty page, never a short page nor a reported total
// - page: pages are counted (page-pager.ts)
// - window: the list is requested by windows of time, each of them paged (window-pager.ts)
// - none: one page holds everything
// - shown: the style that the first response shows

import { invariant, type Pagination } from '../contracts/index.ts';
import { type Identified, keysOf, overlapEnd } from './identity.ts';
import {
  isFirst,
  type ListPosition,
  offsetOf,
  overlapMax,
  type Page,
  type Pager,
  type Resume,
  withinWindow,
} from './page.ts';
import { PagePager } from './page-pager.ts';
import { keyBytes } from './repeats.ts';
import { WindowPager } from './window-pager.ts';

/**
 * A pager for one walk. `from`: its first position with the checkpoint's overlap; `now`: the walk's start, epoch
 * milliseconds.
 */
export function pagerFor(pagination: Pagination, from: Resume, now: number): Pager {
  switch (pagination.style) {
    case 'cursor':
    case 'link':
    case 'next_url':
      return byCursor(({ next }) => next ?? null);
    case 'offset':
      return new OffsetPager(from);
    case 'page':
      return new PagePager(from, pagination.more !== undefined);
    case 'window': {
      const { window } = pagination;
      invariant(window !== undefined, 'windows are declared with their style');
      const within = withinWindow(pagination);
      const inner = (start: Resume) => pagerFor(within, start, now);
      return new WindowPager({ ...window, within, pagerFor: inner, now }, from);
    }
    case 'none':
      return byCursor(() => null);
    case 'shown':
      return new ShownPager(from);
  }
}

function byCursor(nextOf: (page: Page) => string | null): Pager {
  const next = (position: ListPosition, page: Page): ListPosition | null => {
    const cursor = nextOf(page);
    if (cursor === null) return null;
    return position.by === 'cursor' && position.cursor === cursor ? null : { by: 'cursor', cursor };
  };
  return {
    overlap: 0,
    inserted: false,
    ask: (position) => position,
    accept: () => 0,
    next,
    past: (position, page) => next(position, page) ?? position,
    resume: (position, ahead) => ({ resume: ahead ?? position, overlap: null }),
  };
}

class OffsetPager implements Pager {
  inserted = false;
  /** The end of the rows read, and the keys that the page from there must begin with. */
  #read: Resume;
  /** Keys of the last rows read in sequence. */
  #tail: Buffer;
  /** Number of these rows that the next request repeats. */
  #rows: number;
  /** Why the next request repeats no rows: to see if any row is left, or because a row is hidden. */
  #blindly: 'end' | 'hidden' | null = null;
  /** Leading records of the accepted page that were read before. */
  #known = 0;

  constructor(from: Resume) {
    this.#read = from;
    this.#tail = Buffer.from(from.overlap ?? '', 'base64');
    this.#rows = this.#tail.length / keyBytes;
  }

  get overlap(): number {
    return this.#rows;
  }

  ask(position: ListPosition): ListPosition {
    return { by: 'offset', offset: Math.max(0, offsetOf(position) - this.#rows) };
  }

  accept(identified: Identified): number | null {
    const end = this.#endOfKnown(identified);
    this.inserted ||= end > this.#rows;
    this.#known = Math.max(0, end);
    return end < 0 ? null : end;
  }

  #endOfKnown(identified: Identified): number {
    const { count } = identified;
    if (this.#blindly !== null) return this.#movedDown(identified);
    if (this.#rows === 0) return 0;
    const expected = this.#tail.subarray(-this.#rows * keyBytes);
    if (count > 0 && count < this.#rows) {
      // A page can be shorter than the rows that are searched for on it.
      const keys = keysOf(identified);
      if (keys.equals(expected.subarray(0, keys.length))) return count;
    }
    return overlapEnd(identified, expected);
  }

  /** Known rows may have moved down, which records without ids do not show. */
  #movedDown(identified: Identified): number {
    const { count, named } = identified;
    const keys = keysOf(identified);
    if (keys.equals(this.#tail.subarray(-keys.length))) return count;
    if (!named.includes(0)) return 0;
    const read = new Set(keysIn(this.#tail));
    return keysIn(keys).some((key) => read.has(key)) ? -1 : 0;
  }

  next(position: ListPosition, page: Page, identified: Identified): ListPosition | null {
    const asked = offsetOf(this.ask(position));
    const { count } = identified;
    const onward = count > this.#known ? this.#take(asked, identified) : null;
    if (page.next === null) return null;
    if (onward !== null) return onward;
    if (count > 0 && (this.#blindly !== null || this.#known > this.#rows)) {
      // The page has only known rows, which have moved down.
      this.#blindly = null;
      this.#rows = Math.max(1, this.#rows);
      return { by: 'offset', offset: asked + count };
    }
    if (this.#blindly !== null || this.#rows === 0) return null;
    // Nothing new, but the page may just be short: the end is an empty page.
    this.#blindly = 'end';
    this.#rows = 0;
    return position;
  }

  past(position: ListPosition, _page: Page, identified: Identified): ListPosition {
    const isNew = identified.count > this.#known;
    const before = isNew ? this.#take(offsetOf(this.ask(position)), identified) : position;
    // A hidden row cannot be searched for either.
    this.#rows = 0;
    this.#blindly = 'hidden';
    return { by: 'offset', offset: offsetOf(before) + 1 };
  }

  resume(): Resume {
    return this.#read;
  }

  #take(asked: number, identified: Identified): ListPosition {
    const { count } = identified;
    const fresh = keysOf(identified, this.#known);
    const before = this.#blindly === 'hidden' ? Buffer.alloc(0) : this.#tail;
    this.#tail = Buffer.concat([before, fresh]).subarray(-overlapMax * keyBytes);
    // Rows read without an overlap are searched for together with the row before them.
    const isAlone = this.#blindly === 'end';
    const rows = isAlone ? count - this.#known + 1 : Math.max(1, Math.floor(count / 4));
    this.#rows = Math.min(rows, this.#tail.length / keyBytes);
    this.#blindly = null;
    const resume: ListPosition = { by: 'offset', offset: asked + count };
    const overlap = this.#tail.subarray(-this.#rows * keyBytes).toString('base64');
    this.#read = { resume, overlap };
    return resume;
  }
}

/** Uses offsets if the first response reports a length or its first row. */
class ShownPager implements Pager {
  #pager: Pager = byCursor(({ next }) => next ?? null);
  #first: Buffer = Buffer.alloc(0);
  /** An offset returned the first page again: upstream ignores it, and that page is the whole list. */
  #isAll = false;

  constructor({ resume }: Resume) {
    if (resume.by === 'offset') this.#pager = new OffsetPager({ resume, overlap: null });
  }

  get overlap(): number {
    return this.#pager.overlap;
  }

  get inserted(): boolean {
    return this.#pager.inserted;
  }

  ask(position: ListPosition): ListPosition {
    return this.#pager.ask(position);
  }

  accept(identified: Identified): number | null {
    const keys = keysOf(identified);
    this.#isAll = this.#pager instanceof OffsetPager && keys.equals(this.#first);
    if (this.#first.length === 0) this.#first = keys;
    return this.#isAll ? identified.count : this.#pager.accept(identified);
  }

  next(position: ListPosition, page: Page, identified: Identified): ListPosition | null {
    if (this.#isAll) return null;
    const next = this.#pager.next(position, page, identified);
    const isCounted = isFirst(position) && (page.total !== null || page.isCounted);
    if (next !== null || !isCounted || identified.count === 0) return next;
    const resume: ListPosition = { by: 'offset', offset: 0 };
    this.#pager = new OffsetPager({ resume, overlap: null });
    return this.#pager.next(resume, page, identified);
  }

  past(position: ListPosition, page: Page, identified: Identified): ListPosition {
    return this.#pager.past(position, page, identified);
  }

  resume(position: ListPosition, next: ListPosition | null): Resume {
    return this.#pager.resume(position, next);
  }
}

function keysIn(keys: Buffer): readonly string[] {
  const starts = Array.from({ length: keys.length / keyBytes }, (_, i) => i * keyBytes);
  return starts.map((at) => keys.toString('base64', at, at + keyBytes));
}

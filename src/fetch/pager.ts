// How one page of a list leads to the next, for the three styles of paging. A pager lives as long as one walk.
//
//   cursor   the answer names the next page; null, absent or the same cursor again is the end for now
//   offset   rows are counted. The last rows of the page before are asked for again: where they do not reappear, rows
//            have moved and the walk must begin anew. The end is a page with nothing behind those rows, never a short one.
//   none     one page holds everything

import type { Page, PagingStyle, Place } from '../contracts/source.ts';
import type { Identified } from './identity.ts';
import { keyBytes, keysOf, overlapEnd } from './judge.ts';

/** Leads a walk from page to page. */
export interface Pager {
  /** The place to ask for, to go on at `place`. */
  ask(place: Place): Place;
  /** How many leading records of the answer were on the page before; null where they are not there any more. */
  accept(identified: Identified): number | null;
  /** Where the walk goes on, or null at the end. Called once per accepted page. */
  next(place: Place, page: Page, identified: Identified): Place | null;
  /** What to keep in the checkpoint to go on from the last accepted page. */
  readonly overlap: string | null;
  /** Rows have come in before those that were read already. */
  readonly inserted: boolean;
}

/** Rows of the page before that are asked for again. */
const overlapMax = 10;

/** A pager for one walk; `overlap` is what the checkpoint kept, when the walk goes on from there. */
export function pagerFor(style: PagingStyle, overlap: string | null): Pager {
  switch (style) {
    case 'cursor':
      return cursorPager;
    case 'offset':
      return offsetPager(overlap);
    case 'none':
      return onlyPage;
  }
}

/** Where a list of this style begins. */
export function firstPlace(style: PagingStyle): Place {
  return style === 'offset' ? { by: 'offset', offset: 0 } : { by: 'cursor', cursor: null };
}

const cursorPager: Pager = {
  overlap: null,
  inserted: false,
  ask: (place) => place,
  accept: () => 0,
  next(place, page) {
    const { next } = page;
    if (next === null || next === undefined) return null;
    return place.by === 'cursor' && place.cursor === next ? null : { by: 'cursor', cursor: next };
  },
};

const onlyPage: Pager = {
  overlap: null,
  inserted: false,
  ask: (place) => place,
  accept: () => 0,
  next: () => null,
};

function offsetPager(kept: string | null): Pager {
  let overlap = kept;
  let expected = kept === null ? 0 : Buffer.byteLength(kept, 'base64') / keyBytes;
  let inserted = false;
  return {
    get overlap() {
      return overlap;
    },
    get inserted() {
      return inserted;
    },
    ask(place) {
      return place.by === 'offset'
        ? { by: 'offset', offset: Math.max(0, place.offset - expected) }
        : place;
    },
    accept(identified) {
      if (overlap === null) return 0;
      const end = overlapEnd(identified, Buffer.from(overlap, 'base64'));
      inserted ||= end > expected;
      return end < 0 ? null : end;
    },
    next(place, page, identified) {
      if (place.by !== 'offset') return null;
      const count = page.records.length;
      if (count <= expected) return null;
      const reached = Math.max(0, place.offset - expected) + count;
      expected = Math.min(overlapMax, Math.max(1, Math.floor(count / 4)));
      overlap = keysOf(identified, count - expected, count);
      return { by: 'offset', offset: reached };
    },
  };
}

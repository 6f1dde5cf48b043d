// Paging by page number. A page starts at a fixed row, so moved rows cannot be found on the next page as with an
// offset. If the next page does not begin with known rows, the page before it is requested again. If that page still
// ends with the same rows, no row has moved out between the two; rows after them are read first. If a flag marks the
// last page, no later page is requested, because upstream may reject the request.

import type { Answer } from '../contracts/index.ts';
import { type Identified, keysOf, overlapEnd } from './identity.ts';
import {
  type FetchedPage,
  isFirst,
  type ListPosition,
  offsetOf,
  overlapMax,
  type Page,
  type Pager,
  type PagerDeps,
  partialPage,
  type Resume,
} from './page.ts';
import { noRows } from './page-asker.ts';
import { keyBytes } from './repeats.ts';

/** How often both pages are requested before rows count as moving too fast. */
const triesMax = 2;

/** Offsets are page numbers from 0, whatever number the first page has. */
export class PagePager implements Pager {
  readonly overlap = 0;
  inserted = false;
  #read: Resume;
  /** Keys of the last rows read in sequence. */
  #tail: Buffer;
  /** Leading records of the arrived page that were read before; null: rows have moved. */
  #known: number | null = 0;
  /** The arrived page is the one before the requested page. */
  #isBefore = false;
  /** The previous page repeats: upstream shows its last page after the end too. */
  #isAgain = false;
  /** The last read page may still be the last one by its flag. */
  #mayBeLast: boolean;
  #isLast = false;

  constructor(from: Resume, hasFlag: boolean) {
    this.#read = from;
    this.#mayBeLast = hasFlag;
    this.#tail = Buffer.from(from.overlap ?? '', 'base64');
  }

  ask(position: ListPosition): ListPosition {
    return position;
  }

  async fetch(
    position: ListPosition,
    { ask, identify, isFull }: PagerDeps,
  ): Promise<Answer<FetchedPage>> {
    const before = { by: 'offset', offset: offsetOf(position) - 1 } as const;
    this.#isBefore = false;
    this.#isAgain = false;
    if (this.#mayBeLast && !isFirst(position) && this.#tail.length > 0) {
      this.#mayBeLast = false;
      const last = whole(await ask(before, 0));
      if (last.outcome !== 'ok' || last.page.next === null) return this.#asLast(last, identify);
    }
    for (let tries = 1; ; tries += 1) {
      const asked = await ask(position, 0);
      this.#known = 0;
      if (asked.outcome !== 'ok' || isFirst(position) || this.#tail.length === 0) return asked;
      if (asked.page.partial !== null) return asked;
      const identified = identify(asked.page);
      this.#known = Math.max(0, overlapEnd(identified, this.#tail));
      // Without ids, other records may look the same.
      const isSure = this.#known > 0 && identified.named[this.#known - 1] === 1;
      if (isSure && this.#known < identified.count) return asked;
      const again = whole(await ask(before, 0));
      if (again.outcome !== 'ok') return again;
      const reread = identify(again.page);
      const end = overlapEnd(reread, this.#tail, reread.count);
      // Equal records without ids may be many records.
      const isMany = isFull(identified) && isOneTwin(identified);
      const isEqual = keysOf(identified).equals(keysOf(reread));
      if (end === identified.count && isEqual && !isMany) {
        this.#isAgain = true;
        this.#known = end;
        return asked;
      }
      if (end < 0 && this.#known > 0) return asked;
      if (end >= 0) {
        this.#isBefore = end < again.page.records.length;
        this.#known = this.#isBefore ? end : 0;
        return this.#isBefore ? again : asked;
      }
      if (tries < triesMax) continue;
      this.#known = null;
      return asked;
    }
  }

  /** The new rows of the page read last, in place of the page after it. */
  #asLast(last: Answer<FetchedPage>, identify: PagerDeps['identify']): Answer<FetchedPage> {
    if (last.outcome !== 'ok') return last;
    const reread = identify(last.page);
    const end = overlapEnd(reread, this.#tail, reread.count);
    this.#isLast = end < reread.count;
    this.#isBefore = this.#isLast;
    this.#known = end < 0 ? null : this.#isLast ? end : 0;
    return this.#isLast ? last : { ...last, page: noRows() };
  }

  accept(): number | null {
    this.inserted ||= !this.#isBefore && (this.#known ?? 0) > 0;
    return this.#known;
  }

  next(position: ListPosition, page: Page, identified: Identified): ListPosition | null {
    const { count } = identified;
    const offset = offsetOf(position) + (this.#isBefore ? 0 : 1);
    const resume: ListPosition = { by: 'offset', offset };
    if (count > (this.#known ?? 0)) {
      const fresh = keysOf(identified, this.#known ?? 0);
      this.#tail = Buffer.concat([this.#tail, fresh]).subarray(-overlapMax * keyBytes);
      this.#read = { resume, overlap: this.#tail.toString('base64') };
    }
    // A page of known rows may be one that many rows were inserted before.
    const isOver = count === 0 || (this.#isAgain && offsetOf(position) > 1);
    const isLast = page.next === null && (this.#isLast || !this.#isBefore);
    return isOver || isLast ? null : resume;
  }

  past(position: ListPosition, page: Page, identified: Identified): ListPosition {
    return this.next(position, page, identified) ?? position;
  }

  resume(): Resume {
    return this.#read;
  }
}

/** A partial page does not show whether rows have moved. */
function whole(asked: Answer<FetchedPage>): Answer<FetchedPage> {
  const partial = asked.outcome === 'ok' ? asked.page.partial : null;
  return partial === null ? asked : partialPage(partial);
}

function isOneTwin(identified: Identified): boolean {
  const keys = keysOf(identified);
  const isOne = keys.subarray(0, keyBytes).equals(keys.subarray(-keyBytes));
  return isOne && identified.named[0] !== 1;
}

// Pages asked for by number. They begin where they begin, so rows that have moved cannot be looked
// for on the next page as those of an offset are: where that does not begin with rows that were
// read, the page before it is asked for again once it has come. If its last rows still stand at its
// end, nothing has moved out from between the two. Rows behind them are read first. Where a flag
// says which page is the last, nothing is asked for behind it: upstream may refuse that.

import type { Answer } from '../../contracts/answer.ts';
import type { Identified } from './identity.ts';
import { keysOf, overlapEnd } from './keys.ts';
import { isFirst, type ListPosition, type Page, partialPage } from './page.ts';
import { type FetchedPage, noRows } from './page-asker.ts';
import { overlapMax, type Pager, type PagerDeps, type Resume } from './pager.ts';
import { keyBytes } from './repeats.ts';

/** So often are both pages asked for until rows seem to move faster than that. */
const triesMax = 2;

/** Offsets are those of pages, whatever each is numbered. */
export class PagePager implements Pager {
  readonly overlap = 0;
  inserted = false;
  #read: Resume;
  /** Keys of the last rows that were read one after the other. */
  #tail: Buffer;
  /** Of the page that has arrived: leading records that were read before; null: rows have moved. */
  #known: number | null = 0;
  /** It is the one before the page that was asked for. */
  #isBefore = false;
  /** The page before is no other: upstream shows its last page behind it as well. */
  #isAgain = false;
  /** The page that was read last may still be the last one, which its flag says. */
  #mayBeLast: boolean;
  #isLast = false;

  constructor(from: Resume, hasFlag: boolean) {
    this.#read = from;
    this.#mayBeLast = hasFlag;
    this.#tail = Buffer.from(from.overlap ?? '', 'base64');
  }

  ask(place: ListPosition): ListPosition {
    return place;
  }

  async fetch(
    place: ListPosition,
    { ask, identify, isFull }: PagerDeps,
  ): Promise<Answer<FetchedPage>> {
    const before = { by: 'offset', offset: pageOf(place) - 1 } as const;
    this.#isBefore = false;
    this.#isAgain = false;
    if (this.#mayBeLast && !isFirst(place) && this.#tail.length > 0) {
      this.#mayBeLast = false;
      const last = whole(await ask(before, 0));
      if (last.outcome !== 'ok' || last.page.next === null) return this.#asLast(last, identify);
    }
    for (let tries = 1; ; tries += 1) {
      const asked = await ask(place, 0);
      this.#known = 0;
      if (asked.outcome !== 'ok' || isFirst(place) || this.#tail.length === 0) return asked;
      if (asked.page.partial !== null) return asked;
      const identified = identify(asked.page);
      this.#known = Math.max(0, overlapEnd(identified, this.#tail));
      // Without ids they may be others that look the same.
      const isSure = this.#known > 0 && identified.named[this.#known - 1] === 1;
      if (isSure && this.#known < identified.count) return asked;
      const again = whole(await ask(before, 0));
      if (again.outcome !== 'ok') return again;
      const reread = identify(again.page);
      const end = overlapEnd(reread, this.#tail, reread.count);
      // Many of one record without an id are many records.
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

  /** What the page that was read last has got, in place of the page behind it. */
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

  next(place: ListPosition, page: Page, identified: Identified): ListPosition | null {
    const { count } = identified;
    const offset = pageOf(place) + (this.#isBefore ? 0 : 1);
    const resume: ListPosition = { by: 'offset', offset };
    if (count > (this.#known ?? 0)) {
      const fresh = keysOf(identified, this.#known ?? 0);
      this.#tail = Buffer.concat([this.#tail, fresh]).subarray(-overlapMax * keyBytes);
      this.#read = { resume, overlap: this.#tail.toString('base64') };
    }
    // A page of rows that were read may be one that many came in before.
    const isOver = count === 0 || (this.#isAgain && pageOf(place) > 1);
    const isLast = page.next === null && (this.#isLast || !this.#isBefore);
    return isOver || isLast ? null : resume;
  }

  past(place: ListPosition, page: Page, identified: Identified): ListPosition {
    return this.next(place, page, identified) ?? place;
  }

  resume(): Resume {
    return this.#read;
  }
}

/** A page with missing rows does not show whether rows have moved. */
function whole(asked: Answer<FetchedPage>): Answer<FetchedPage> {
  const partial = asked.outcome === 'ok' ? asked.page.partial : null;
  return partial === null ? asked : partialPage(partial);
}

function isOneTwin(identified: Identified): boolean {
  const keys = keysOf(identified);
  const isOne = keys.subarray(0, keyBytes).equals(keys.subarray(-keyBytes));
  return isOne && identified.named[0] !== 1;
}

function pageOf(place: ListPosition): number {
  return place.by === 'offset' ? place.offset : 0;
}

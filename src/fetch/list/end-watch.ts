// What the end of a walk says of the paging: whether the last page shows more, whether the walk has
// passed as many rows as the list has, and whether upstream heeds the places it is asked for at
// all.

import type { ListEndpoint } from '../../contracts/source.ts';
import type { Sameness } from './cursor-loop.ts';
import type { Identified } from './identity.ts';
import { keysOf } from './keys.ts';
import { isFirst, type ListPosition, type Page, withinWindow } from './page.ts';
import {
  doubtOfPage,
  doubtOfPlace,
  doubtOfTotal,
  type EndVerdicts,
  type PartRead,
  partRead,
} from './paging-doubt.ts';
import { keyBytes } from './repeats.ts';

/** Rows between the list's start and a place, and its length at first; null: unknown. */
export interface Passed {
  readonly read: number | null;
  readonly total: number | null;
}

/** Before a walk from the list's start. */
export const nonePassed: Passed = { read: 0, total: null };
export const notKnown: Passed = { read: null, total: null };

/** A page that a walk ends with. */
export interface Last {
  readonly page: Page;
  /** Where upstream leads on nevertheless. */
  readonly onward: ListPosition | null;
  readonly sameness: Sameness;
  /** It may hold all that was asked for. */
  readonly isFull: boolean;
}

/** Pages that come again at later offsets until it is not rows that move; short ones move. */
const sameMax = (rows: number) => (rows <= 3 ? 10 : 3);

/** Watches one walk. */
export class EndWatch {
  readonly #stream: ListEndpoint;
  /** What is not told by `start` is passed, yet nobody knows what the length counts then. */
  readonly #isWhole: boolean;
  #read: number | null;
  #total: number | null;
  #before = '';
  #same = 0;

  constructor(stream: ListEndpoint, isWhole: boolean, { read, total }: Passed) {
    this.#stream = stream;
    this.#isWhole = isWhole;
    this.#read = read;
    this.#total = total;
  }

  /** What was passed so far. */
  get passed(): Passed {
    return { read: this.#read, total: this.#total };
  }

  /** Takes note of a page of which so many rows were not passed before. */
  pass(place: ListPosition, { total }: Page, rows: number): void {
    // A length is that of the window.
    if (place.window !== undefined && isFirst(place)) this.#read = 0;
    if (this.#read === null) return;
    if (this.#read === 0) this.#total = total;
    this.#read += rows;
  }

  /**
   * False where the offset is not heeded, and the page is all there is. A failure where there is
   * more than this page, which comes whatever is asked for.
   */
  isHeeded(
    place: ListPosition,
    page: Page,
    { identified, isFull }: { identified: Identified; isFull: boolean },
  ): boolean | PartRead {
    const { count, named } = identified;
    if (place.by === 'cursor' || count === 0) return true;
    const keys = keysOf(identified);
    const isOne = keys.subarray(0, keyBytes).equals(keys.subarray(-keyBytes));
    const text = keys.toString('base64');
    const isTwin = isOne && named[0] !== 1;
    this.#same = text === this.#before && !isTwin ? this.#same + 1 : 0;
    this.#before = text;
    if (this.#same < sameMax(count)) return true;
    const { more, total } = page;
    // Behind its last page a list may show that page, where others came before it.
    const begun = place.offset - this.#same;
    const isLast = begun > 1 || (begun === 1 && this.#read !== null);
    if (isLast && withinWindow(this.#stream.pagination).style === 'page') return false;
    if (more === null && !isFull && (total ?? 0) <= count) return false;
    return partRead(this.#stream, doubtOfPlace(this.#stream, more?.likely ?? null));
  }

  /** That a window of time ends before all of it was read; its page is passed. */
  partOfWindow(place: ListPosition, last: Last): PartRead | null {
    if (place.window === undefined) return null;
    const { page, whole } = this.verdicts(place, { ...last, onward: null });
    const doubt = page ?? whole ?? null;
    return doubt && partRead(this.#stream, doubt);
  }

  /** What the end says; its page is passed. */
  verdicts(place: ListPosition, { page, onward, sameness, isFull }: Last): EndVerdicts {
    const { more } = page;
    const leadsOn = typeof page.next === 'string' || onward !== null;
    const isAgain = leadsOn && sameness === 'first' && isFull;
    const whole = isAgain
      ? { whole: doubtOfPlace(this.#stream, more?.likely ?? null) }
      : this.#ofTotal(place, page);
    if (leadsOn) return { page: null, ...whole };
    return { page: more && doubtOfPage(this.#stream, more), ...whole };
  }

  #ofTotal(place: ListPosition, { total, records }: Page): Pick<EndVerdicts, 'whole'> {
    const isPage = withinWindow(this.#stream.pagination).style === 'page';
    const isEmptyOffset = place.by === 'offset' && records.length === 0 && !isPage;
    const read = isEmptyOffset ? place.offset : this.#read;
    if ((!this.#isWhole && place.window === undefined) || read === null) return {};
    const least = isEmptyOffset ? total : Math.min(total ?? 0, this.#total ?? 0);
    const isMore = least !== null && least > read;
    return { whole: isMore ? doubtOfTotal(this.#stream, least, read) : null };
  }
}

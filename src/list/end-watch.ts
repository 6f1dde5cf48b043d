// The verdict on the paging at the end of a walk: does the last page show more rows, has the walk passed as many rows
// as the list has, and does upstream honour the requested positions at all.

import type { ListEndpoint } from '../contracts/index.ts';
import type { Sameness } from './cursor-loop.ts';
import { type Identified, keysOf } from './identity.ts';
import { isFirst, type ListPosition, type Page, withinWindow } from './page.ts';
import {
  doubtOfPage,
  doubtOfPosition,
  doubtOfTotal,
  type EndVerdicts,
  type PartRead,
  partRead,
} from './paging-doubt.ts';
import { keyBytes } from './repeats.ts';

/** Rows between the start of the list and a position, and the first length that upstream reported; null: unknown. */
export interface Passed {
  readonly read: number | null;
  readonly total: number | null;
}

/** Before a walk from the start of the list. */
export const nonePassed: Passed = { read: 0, total: null };
export const notKnown: Passed = { read: null, total: null };

/** The page that ends a walk. */
export interface Last {
  readonly page: Page;
  /** The next position that upstream names nevertheless. */
  readonly onward: ListPosition | null;
  readonly sameness: Sameness;
  /** The page may be as long as its limit. */
  readonly isFull: boolean;
}

/** How often a page may repeat at later offsets before the offset counts as ignored; rows of short pages may move. */
const sameMax = (rows: number) => (rows <= 3 ? 10 : 3);

/** Watches one walk. */
export class EndWatch {
  readonly #stream: ListEndpoint;
  /** False with `start`: rows before it are passed unreported, and the meaning of the length is then unknown. */
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

  /** Rows passed so far. */
  get passed(): Passed {
    return { read: this.#read, total: this.#total };
  }

  /** Adds a page with `rows` rows that were not passed before. */
  pass(position: ListPosition, { total }: Page, rows: number): void {
    // In a window, the length is that of the window.
    if (position.window !== undefined && isFirst(position)) this.#read = 0;
    if (this.#read === null) return;
    if (this.#read === 0) this.#total = total;
    this.#read += rows;
  }

  /**
   * False if upstream ignores the offset and the page is the whole list. A failure if upstream ignores the offset and
   * the list has more than this page.
   */
  isHeeded(
    position: ListPosition,
    page: Page,
    { identified, isFull }: { identified: Identified; isFull: boolean },
  ): boolean | PartRead {
    const { count, named } = identified;
    if (position.by === 'cursor' || count === 0) return true;
    const keys = keysOf(identified);
    const isOne = keys.subarray(0, keyBytes).equals(keys.subarray(-keyBytes));
    const text = keys.toString('base64');
    const isTwin = isOne && named[0] !== 1;
    this.#same = text === this.#before && !isTwin ? this.#same + 1 : 0;
    this.#before = text;
    if (this.#same < sameMax(count)) return true;
    const { more, total } = page;
    // After its last page a list may show that page again.
    const begun = position.offset - this.#same;
    const isLast = begun > 1 || (begun === 1 && this.#read !== null);
    if (isLast && withinWindow(this.#stream.pagination).style === 'page') return false;
    if (more === null && !isFull && (total ?? 0) <= count) return false;
    return partRead(this.#stream, doubtOfPosition(this.#stream, more?.likely ?? null));
  }

  /** The failure if a window of time ends before it was read completely. Call after `pass`. */
  partOfWindow(position: ListPosition, last: Last): PartRead | null {
    if (position.window === undefined) return null;
    const { page, whole } = this.verdicts(position, { ...last, onward: null });
    const doubt = page ?? whole ?? null;
    return doubt && partRead(this.#stream, doubt);
  }

  /** The verdicts at the end of a walk. Call after `pass`. */
  verdicts(position: ListPosition, { page, onward, sameness, isFull }: Last): EndVerdicts {
    const { more } = page;
    const leadsOn = typeof page.next === 'string' || onward !== null;
    const isAgain = leadsOn && sameness === 'first' && isFull;
    const whole = isAgain
      ? { whole: doubtOfPosition(this.#stream, more?.likely ?? null) }
      : this.#ofTotal(position, page);
    if (leadsOn) return { page: null, ...whole };
    return { page: more && doubtOfPage(this.#stream, more), ...whole };
  }

  #ofTotal(position: ListPosition, { total, records }: Page): Pick<EndVerdicts, 'whole'> {
    const isPage = withinWindow(this.#stream.pagination).style === 'page';
    const isEmptyOffset = position.by === 'offset' && records.length === 0 && !isPage;
    const read = isEmptyOffset ? position.offset : this.#read;
    if ((!this.#isWhole && position.window === undefined) || read === null) return {};
    const least = isEmptyOffset ? total : Math.min(total ?? 0, this.#total ?? 0);
    const isMore = least !== null && least > read;
    return { whole: isMore ? doubtOfTotal(this.#stream, least, read) : null };
  }
}

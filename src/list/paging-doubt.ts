// The check that a part of a list is never taken for the whole. If the configured paging ends and upstream shows more
// rows, the stream has an error, and the sinks receive `source.paging_suspected` once until it changes. Records that
// were read are delivered as usual. A sign on the last page is judged each time a walk ends there. The length of the
// list is judged only after a walk through the whole list, because rows come and go.

import { ExportError, type Failure, type ListEndpoint } from '../contracts/index.ts';
import type { Finding } from '../poll/index.ts';
import type { ListCheckpoint } from './checkpoint.ts';
import { type Identified, keysOf } from './identity.ts';
import {
  isFirst,
  type ListPosition,
  type MoreSign,
  nameOfPosition,
  type Page,
  withinWindow,
} from './page.ts';
import { keyBytes } from './repeats.ts';
import type { Sameness } from './walk-end.ts';

/** The reason to doubt that everything was read. */
export type Doubt = NonNullable<ListCheckpoint['told']['suspected']>;

/** The verdicts of one poll. undefined: no verdict; null: no doubt. */
export interface EndVerdicts {
  /** From the last page. */
  readonly page?: Doubt | null;
  /** From a walk through the whole list. */
  readonly whole?: Doubt | null;
}

/** The sign of a list that is longer than the rows read. */
export const totalSign = 'total';

const thenReread = 'the list is then read again from its start, without repeats';

/** The failure that ends a walk after only a part of the list. */
interface PartRead extends Failure {
  readonly doubt: Doubt;
}

function partRead(stream: ListEndpoint, doubt: Doubt): PartRead {
  return { outcome: 'retry', isDefinite: true, cause: doubtError(stream, doubt), doubt };
}

/** True for that failure. */
export function isPartRead(failure: Failure): failure is PartRead {
  return 'doubt' in failure;
}

/** The doubt raised by the last page. */
function doubtOfPage({ pagination: { style } }: ListEndpoint, { sign, likely }: MoreSign): Doubt {
  return doubt(sign, `${sign} shows more, to which paging of style ${style} does not lead`, {
    likely,
    isWhole: false,
  });
}

/** The doubt raised by the length of the list. */
function doubtOfTotal({ pagination }: ListEndpoint, total: number, read: number): Doubt {
  const { style } = pagination;
  const reported = `the list's length is ${total}, and it ends after ${read}`;
  if (style !== 'offset' && style !== 'page' && style !== 'window') {
    return doubt(totalSign, reported, { likely: { style: 'offset' }, isWhole: true });
  }
  return {
    ...doubt(totalSign, reported, { likely: null, isWhole: true }),
    next: `${style === 'window' ? 'Choose a shorter pagination.step' : 'Narrow the list with params, or read it newest first with order_by and order'}. If its length counts something else, set pagination.total to null.`,
  };
}

/** The doubt raised by a first page that repeats as the next page. */
export function doubtOfPosition({ pagination }: ListEndpoint, likely: MoreSign['likely']): Doubt {
  const name = nameOfPosition(pagination);
  const said = `upstream answers with the same page whatever the ${name}`;
  const found = doubt(`${name} not heeded`, said, { likely, isWhole: true });
  if (likely !== null || name === 'address') return found;
  return {
    ...found,
    next: `Look whether pagination.${name}_param is its name at upstream; ${thenReread}.`,
  };
}

function doubt(
  sign: string,
  said: string,
  { likely, isWhole }: { likely: MoreSign['likely']; isWhole: boolean },
): Doubt {
  const names = Object.entries(likely ?? {}).map(([name, value]) => `${name}: ${value}`);
  const setting = `pagination: { ${names.join(', ')} }`;
  const unknown = `Look in upstream's document how it is paged, and set pagination of the source; ${thenReread}.`;
  const next = `Most likely it is ${setting}: ${thenReread}.`;
  return {
    sign,
    said,
    likely: likely === null ? null : setting,
    isWhole,
    next: likely === null ? unknown : next,
  };
}

/** The doubt raised by the first page alone, which may hold fewer records than it could. */
export function doubtOfFirst(stream: ListEndpoint, { next, more, ...page }: Page): Doubt | null {
  const { style } = withinWindow(stream.pagination);
  if (style === 'offset' || style === 'page' || typeof next === 'string') return null;
  if (more !== null) return doubtOfPage(stream, more);
  const { length } = page.records;
  const total = page.total ?? 0;
  // With this style, rows are counted then.
  if (style === 'shown') return null;
  return total > length ? doubtOfTotal(stream, total, length) : null;
}

/** The doubt from now on. */
export function doubtAfter(before: Doubt | null, { page, whole }: EndVerdicts): Doubt | null {
  const found = page ?? whole ?? null;
  // The numbers may change with each poll and are not reported again.
  if (found !== null) return found.sign === before?.sign ? before : found;
  const isCleared = before?.isWhole === true ? whole === null : page === null;
  return isCleared ? null : before;
}

/** The doubt as the stream's error. */
export function doubtError(
  { name }: ListEndpoint,
  { sign, said, likely, next }: Doubt,
): ExportError {
  return new ExportError('paging_suspected', `reading ${name}: ${said}`, {
    next,
    details: { sign, ...(likely === null ? {} : { likely }) },
  });
}

/** The doubt as the condition for the sinks. */
export function doubtFinding({ name }: ListEndpoint, { sign, said, likely, next }: Doubt): Finding {
  return {
    condition: 'source.paging_suspected',
    message: `only a part of ${name} may be read: ${said}`,
    details: { sign, ...(likely === null ? {} : { likely }), next },
  };
}

// The verdict on the paging at the end of a walk: does the last page show more rows, has the walk passed as many rows
// as the list has, and does upstream honour the requested positions at all.

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

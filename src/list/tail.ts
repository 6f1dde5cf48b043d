// The end of a list whose upstream never marks it: after the last record it names new cursors forever, to empty pages
// or to the last page again. That end must be learned, because a list may also have a hundred empty pages before its
// next record, and rows may move down by a page. Invariant: no record after empty pages is lost. Once an endless end is
// learned, the next poll resumes at the newest cursor, so a gap that was taken for the end is crossed anyway, one page
// per poll.

import type { ListCheckpoint } from './checkpoint.ts';
import type { Sameness } from './cursor-loop.ts';
import { type ListPosition, type Page, samePosition } from './page.ts';

/** Empty pages with a new cursor that are followed before other streams have their turn. */
const emptyPagesMax = 100;
/** Empty pages followed in total, if each position yields the same cursor at each request. */
const gapMax = 300;
/** Empty pages in a row that any list may have, even if none was seen so far. */
const gapUsual = 10;
/** How often the last page must repeat to be the end; once may be moved rows. */
const againMax = 2;

/** Number of empty pages in a row. */
export interface EmptyRun {
  count: number;
}

/** The run of empty pages of a paused walk, for the walk that resumes there. Lost in a restart, and rebuilt. */
export class EmptyRuns {
  #at: ListPosition | null = null;
  #count = 0;

  /** The run before a position. */
  before(position: ListPosition): EmptyRun {
    return { count: samePosition(this.#at, position) ? this.#count : 0 };
  }

  /** The walk resumes at `at`; null: it does not. */
  keep(at: ListPosition | null, { count }: EmptyRun): void {
    this.#at = at;
    this.#count = count;
  }
}

/** Facts about the end of a list. */
type Known = Pick<ListCheckpoint, 'server' | 'memory'>;

/** A page's appearance. `mayGoOn`: a time-based cursor may continue within its second. */
export interface Looked {
  readonly sameness: Sameness;
  readonly mayGoOn: boolean;
}

/** Watches one walk. */
export class TailWatch {
  readonly #known: Known;
  readonly #isPoll: boolean;
  readonly #isWindow: boolean;
  readonly #run: EmptyRun;
  #again = 0;
  #gap = 0;
  #isUnsure = false;

  /** `isPoll`: the walk began at the end of the list, so its records should be new. */
  constructor(
    known: Known,
    { isPoll, isWindow, run }: { isPoll: boolean; isWindow: boolean; run: EmptyRun },
  ) {
    this.#known = known;
    // A window that was left is not resumed.
    this.#isPoll = isPoll && !isWindow;
    this.#isWindow = isWindow;
    this.#run = run;
  }

  /** The walk enters another window of the list. */
  enter(): void {
    this.#run.count = 0;
    this.#again = 0;
  }

  /** Longest run of empty pages that was followed by a record. */
  get gap(): number {
    return Math.max(this.#known.server.gap, this.#gap);
  }

  /** It is time to give other streams their turn. */
  get isPause(): boolean {
    return this.#run.count > 0 && this.#run.count % emptyPagesMax === 0;
  }

  /** Whether to request this page's position once more, to see whether its cursor is stable. */
  doubts({ records, next }: Page): boolean {
    const isMany = (this.#run.count + 1) % emptyPagesMax === 0;
    return (
      isMany &&
      records.length === 0 &&
      typeof next === 'string' &&
      this.#known.server.endless === null
    );
  }

  /** Compares the two responses of one position; `page` is the second one. */
  compare(next: Page['next'], page: Page): void {
    this.#isUnsure = page.records.length === 0 && page.next !== next;
  }

  /**
   * Whether the list ends with this page, although the page names a next one. `count`: its records; `fresh`: the new
   * ones.
   */
  isEnd(count: number, fresh: number, { sameness, mayGoOn }: Looked): boolean {
    if (count === 0) {
      this.#run.count += 1;
      return this.#run.count > this.#emptyMost;
    }
    // In a poll, the record may have arrived just now.
    if (!this.#isPoll) this.#gap = Math.max(this.#gap, this.#run.count);
    this.#run.count = 0;
    this.#again = fresh === 0 && sameness !== 'other' ? this.#again + 1 : 0;
    if (this.#again >= againMax) return true;
    return this.#known.server.endless !== null && this.#isPoll && fresh === 0 && !mayGoOn;
  }

  get #emptyMost(): number {
    const { server, memory } = this.#known;
    // A server with unstable cursors counts as endless, even if that is not stored yet.
    if (server.endless === null && !this.#isUnsure) return gapMax;
    // A poll resumes there next time; and if no record was ever seen, none is skipped.
    const isQuick = this.#isPoll || (memory.remembered.length === 0 && !this.#isWindow);
    return isQuick ? Math.min(1, this.gap) : Math.max(gapUsual, this.gap);
  }
}

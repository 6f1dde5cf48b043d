// The end of a walk at a page that names a next one: at a cursor loop, which is an error, or at the end of a list whose
// upstream never marks it. Servers have sent cursors that repeat, and new cursors to pages that repeat. Records with ids
// show the loop because they are known. Records without ids on a page that counts as unread always look new, so pages
// are compared too. Invariant: a loop ends the walk with an error before any record of its second pass is stored. Two
// cases are no loop: the previous page again, which may be the last page of the list, and pages of one second, after
// which a server with time-based cursors may have nothing more.

import { hash } from 'node:crypto';
import { ExportError, type Failure } from '../contracts/index.ts';
import type { ListCheckpoint } from './checkpoint.ts';
import { type Identified, keysOf } from './identity.ts';
import { type ListPosition, type Page, samePosition } from './page.ts';
import { isOneSecond, type TimeSpan } from './record-time.ts';
import { keyBytes } from './repeats.ts';

/**
 * How a page compares with earlier pages: `again`: it equals the end of the last one; `first`: it equals the first
 * page.
 */
export type Sameness = 'other' | 'again' | 'first';

/** The page from which a cursor is followed. */
interface Followed {
  readonly progress: boolean;
  readonly isEmpty: boolean;
}

/** Watches one walk. */
export class CursorLoopWatch {
  readonly #stream: string;
  /** Cursors followed since the last surely new record, and since the last page with records. */
  readonly #cursors = new Set<string>();
  readonly #sinceRecords = new Set<string>();
  readonly #pages = new Map<string, number>();
  /** Pages with records, without repeats of the page before. */
  #count = 0;
  /** Number of the last such page with a surely new record. */
  #newAt = 0;
  /** Event-time span of each such page. */
  readonly #spans: (TimeSpan | null)[] = [];
  /**
   * Running totals over the spans, because a long walk queries them on each page: how many are known, the earliest and
   * the latest time.
   */
  #timed = 0;
  #earliest = Number.POSITIVE_INFINITY;
  #latest = Number.NEGATIVE_INFINITY;
  /** Keys of the last page's records. */
  #last: Buffer = Buffer.alloc(0);
  readonly #isPoll: boolean;

  /** `isPoll`: the walk began where the list ended before. */
  constructor(stream: string, isPoll: boolean) {
    this.#stream = stream;
    this.#isPoll = isPoll;
  }

  /**
   * Checks a page with records before it is judged. `isFull`: the page may be as long as its limit. `loop`: the page
   * equals one from before the previous page.
   */
  look(identified: Identified, isFull: boolean): Sameness | 'loop' {
    const { count } = identified;
    if (count === 0) return 'other';
    const keys = keysOf(identified);
    const page = hash('sha256', keys);
    const before = this.#pages.get(page);
    const isBefore = before === this.#count;
    // Equal records without ids may be many records.
    const isNamed = identified.named[0] === 1;
    const isOne = !isNamed && keys.subarray(0, keyBytes).equals(keys.subarray(-keyBytes));
    if (before !== undefined && isBefore && !(isOne && isFull)) {
      return before === 1 && !this.#isPoll ? 'first' : 'again';
    }
    if (before !== undefined && !isOne) {
      return isNamed && (this.#isLastSecond(before) || this.#hasMoved(before)) ? 'again' : 'loop';
    }
    const isEndOfBefore = !isOne && keys.equals(this.#last.subarray(-keys.length));
    this.#count += 1;
    this.#pages.set(page, this.#count);
    this.#last = keys;
    return isEndOfBefore ? 'again' : 'other';
  }

  /**
   * Checks the next cursor. A cursor that this walk has followed before, without a surely new record since
   * (`progress`), is a loop. It is the end if the loop has only empty pages: after its last record a list may alternate
   * between cursors.
   */
  follow(next: ListPosition | null, { progress, isEmpty }: Followed): 'on' | 'end' | 'loop' {
    if (next?.by !== 'cursor') return 'on';
    if (progress) {
      this.#cursors.clear();
      this.#newAt = this.#count;
    }
    if (!isEmpty) this.#sinceRecords.clear();
    const cursor = next.cursor ?? '';
    if (this.#sinceRecords.has(cursor)) return 'end';
    if (this.#cursors.has(cursor)) return 'loop';
    this.#cursors.add(cursor);
    this.#sinceRecords.add(cursor);
    return 'on';
  }

  /** Stores the event-time span of the page that was checked last. */
  note(span: TimeSpan | null): void {
    const at = this.#count - 1;
    if (at < 0 || (this.#spans[at] ?? null) !== null) return;
    this.#spans[at] = span;
    if (span === null) return;
    this.#timed += 1;
    this.#earliest = Math.min(this.#earliest, span.earliest);
    this.#latest = Math.max(this.#latest, span.latest);
  }

  /** All events of the walk so far happened within one second. */
  get isOneSecond(): boolean {
    return this.#timed === this.#spans.length && this.#latest - this.#earliest < 1_000;
  }

  /** From this page on, all events are of one second, and that second is not the whole list. */
  #isLastSecond(from: number): boolean {
    return (from > 1 || this.#isPoll) && isOneSecond(this.#spans.slice(from - 1));
  }

  /** A new record arrived after this page at the end of the list and moved its rows. */
  #hasMoved(from: number): boolean {
    return this.#isPoll && this.#newAt > from;
  }

  /** The failure that ends the walk. */
  get failure(): Failure {
    const cause = new ExportError(
      'pagination_loop',
      `reading ${this.#stream}: the cursors of upstream form a loop without a new record`,
      { next: 'Report it to the vendor. The checkpoint stays at the last page before the loop.' },
    );
    return { outcome: 'retry', cause };
  }
}

// The end that upstream never marks: after the last record it names new cursors forever, to empty pages
// or to the last page again. That end must be learned, because a list may also have a hundred empty pages before its
// next record, and rows may move down by a page. Invariant: no record after empty pages is lost. Once an endless end is
// learned, the next poll resumes at the newest cursor, so a gap that was taken for the end is crossed anyway, one page
// per poll.

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

// The end of a list whose upstream never says so: behind the last record it leads on with a new
// cursor for ever, to empty pages or to the last page over again. Such an end has to be learned,
// since a list may as well have a hundred empty pages before its next record, and rows may move
// down by a page meanwhile. What must stay true: nothing that stands behind empty pages is given up
// for it. Where it was learned, the next poll goes on at the newest cursor, so that a gap which was
// taken for the end is crossed all the same, a page at each poll.

import type { ListCheckpoint } from './checkpoint.ts';
import type { Sameness } from './cursor-loop.ts';
import { type ListPosition, type Page, samePlace } from './page.ts';

/** Empty pages with a new cursor that are followed before others have their turn. */
const emptyPagesMax = 100;
/** Followed in all, where each cursor is the same whenever its place is asked. */
const gapMax = 300;
/** Empty pages in a row that any list may have, also where none were met so far. */
const gapUsual = 10;
/** Times that the last page comes again at the end: once can be rows that have moved. */
const againMax = 2;

/** Empty pages met in a row. */
export interface EmptyRun {
  count: number;
}

/** The run that a paused walk has met, for who goes on there; found anew after a restart. */
export class EmptyRuns {
  #at: ListPosition | null = null;
  #count = 0;

  /** The run before a place. */
  before(place: ListPosition): EmptyRun {
    return { count: samePlace(this.#at, place) ? this.#count : 0 };
  }

  /** A walk that met the run goes on there; null: it does not. */
  keep(at: ListPosition | null, { count }: EmptyRun): void {
    this.#at = at;
    this.#count = count;
  }
}

/** What is known of a list's end. */
type Known = Pick<ListCheckpoint, 'server' | 'memory'>;

/** How a page looks; `mayGoOn`: a cursor that is a time may lead on within its second. */
export interface Looked {
  readonly sameness: Sameness;
  readonly mayGoOn: boolean;
}

/** Watches one walk for it. */
export class TailWatch {
  readonly #known: Known;
  readonly #isPoll: boolean;
  readonly #isWindow: boolean;
  readonly #run: EmptyRun;
  #again = 0;
  #gap = 0;
  #isUnsure = false;

  /** `isPoll`: the walk began at the list's end, so that what it meets should be new. */
  constructor(
    known: Known,
    { isPoll, isWindow, run }: { isPoll: boolean; isWindow: boolean; run: EmptyRun },
  ) {
    this.#known = known;
    // A window is not gone on with once it was left.
    this.#isPoll = isPoll && !isWindow;
    this.#isWindow = isWindow;
    this.#run = run;
  }

  /** What comes now is another window of the list. */
  enter(): void {
    this.#run.count = 0;
    this.#again = 0;
  }

  /** Most empty pages in a row that a record stood behind. */
  get gap(): number {
    return Math.max(this.#known.server.gap, this.#gap);
  }

  /** It is time to let others have their turn. */
  get isPause(): boolean {
    return this.#run.count > 0 && this.#run.count % emptyPagesMax === 0;
  }

  /** Whether to ask the place of this page once more, to see whether its cursor leads on. */
  doubts({ records, next }: Page): boolean {
    const isMany = (this.#run.count + 1) % emptyPagesMax === 0;
    return (
      isMany &&
      records.length === 0 &&
      typeof next === 'string' &&
      this.#known.server.endless === null
    );
  }

  /** Takes note of what the same place answered, the second time with `page`. */
  compare(next: Page['next'], page: Page): void {
    this.#isUnsure = page.records.length === 0 && page.next !== next;
  }

  /** Whether the list ends with a page that leads on: `count` records, `fresh` of them new. */
  isEnd(count: number, fresh: number, { sameness, mayGoOn }: Looked): boolean {
    if (count === 0) {
      this.#run.count += 1;
      return this.#run.count > this.#emptyMost;
    }
    // In a poll it may have come this very moment.
    if (!this.#isPoll) this.#gap = Math.max(this.#gap, this.#run.count);
    this.#run.count = 0;
    this.#again = fresh === 0 && sameness !== 'other' ? this.#again + 1 : 0;
    if (this.#again >= againMax) return true;
    return this.#known.server.endless !== null && this.#isPoll && fresh === 0 && !mayGoOn;
  }

  get #emptyMost(): number {
    const { server, memory } = this.#known;
    // One whose cursors tell nothing is endless, also where that is not held yet.
    if (server.endless === null && !this.#isUnsure) return gapMax;
    // A poll goes on there the next time, and where nothing was ever met, nothing is passed over.
    const isQuick = this.#isPoll || (memory.remembered.length === 0 && !this.#isWindow);
    return isQuick ? Math.min(1, this.gap) : Math.max(gapUsual, this.gap);
  }
}

// Whether a walk goes in a circle: servers have led clients round and round with cursors that come
// again, and with new cursors to pages that come again. Records with ids show it by being known;
// records without ids on a page that nobody is thought to have read always look new, so pages are
// compared as well. A circle ends the walk with an error, before anything of its second round is
// held. The page before over again is no circle yet: it may be the list's last one (tail.ts); nor
// are the pages of one second, behind which a server whose cursors are times may have nothing more
// to show.

import { hash } from 'node:crypto';
import type { Failure } from '../../contracts/answer.ts';
import { ExportError } from '../../contracts/errors.ts';
import type { Identified } from './identity.ts';
import { keysOf } from './keys.ts';
import type { ListPosition } from './page.ts';
import { isOneSecond, type TimeSpan } from './record-time.ts';
import { keyBytes } from './repeats.ts';

/** What a page is to those before: `again`: the last one's end; `first`: all of the first. */
export type Sameness = 'other' | 'again' | 'first';

/** What the page was that a cursor is followed from. */
interface Followed {
  readonly progress: boolean;
  readonly isEmpty: boolean;
}

/** Watches one walk. */
export class CursorLoopWatch {
  readonly #stream: string;
  /** Cursors followed since something was surely new, and since the last page with records. */
  readonly #cursors = new Set<string>();
  readonly #sinceRecords = new Set<string>();
  readonly #pages = new Map<string, number>();
  /** Pages with records that were not the one before over again. */
  #count = 0;
  /** The last of them with something surely new. */
  #newAt = 0;
  /** When the records of each happened. */
  readonly #spans: (TimeSpan | null)[] = [];
  /** Of these, how many are known, and from when to when. A long walk asks with each page. */
  #timed = 0;
  #earliest = Number.POSITIVE_INFINITY;
  #latest = Number.NEGATIVE_INFINITY;
  /** Keys of the last one's records. */
  #last: Buffer = Buffer.alloc(0);
  readonly #isPoll: boolean;

  /** `isPoll`: the walk began where the list ended before. */
  constructor(stream: string, isPoll: boolean) {
    this.#stream = stream;
    this.#isPoll = isPoll;
  }

  /**
   * Looks at a page with records before it is judged; `isFull`: it may hold all that was asked for.
   * `circle`: it stood before the one before.
   */
  look(identified: Identified, isFull: boolean): Sameness | 'circle' {
    const { count } = identified;
    if (count === 0) return 'other';
    const keys = keysOf(identified);
    const page = hash('sha256', keys);
    const before = this.#pages.get(page);
    const isBefore = before === this.#count;
    // Many of the same record without an id are many records.
    const isNamed = identified.named[0] === 1;
    const isOne = !isNamed && keys.subarray(0, keyBytes).equals(keys.subarray(-keyBytes));
    if (before !== undefined && isBefore && !(isOne && isFull)) {
      return before === 1 && !this.#isPoll ? 'first' : 'again';
    }
    if (before !== undefined && !isOne) {
      return isNamed && (this.#isLastSecond(before) || this.#hasMoved(before)) ? 'again' : 'circle';
    }
    const isEndOfBefore = !isOne && keys.equals(this.#last.subarray(-keys.length));
    this.#count += 1;
    this.#pages.set(page, this.#count);
    this.#last = keys;
    return isEndOfBefore ? 'again' : 'other';
  }

  /**
   * A cursor that was followed before in this walk, with nothing surely new since (`progress`),
   * leads round. The end where there were only empty pages in that round: behind its last record a
   * list may lead on with cursors that take turns.
   */
  follow(next: ListPosition | null, { progress, isEmpty }: Followed): 'on' | 'end' | 'circle' {
    if (next?.by !== 'cursor') return 'on';
    if (progress) {
      this.#cursors.clear();
      this.#newAt = this.#count;
    }
    if (!isEmpty) this.#sinceRecords.clear();
    const cursor = next.cursor ?? '';
    if (this.#sinceRecords.has(cursor)) return 'end';
    if (this.#cursors.has(cursor)) return 'circle';
    this.#cursors.add(cursor);
    this.#sinceRecords.add(cursor);
    return 'on';
  }

  /** When the records happened on the page that was looked at last. */
  note(span: TimeSpan | null): void {
    const at = this.#count - 1;
    if (at < 0 || (this.#spans[at] ?? null) !== null) return;
    this.#spans[at] = span;
    if (span === null) return;
    this.#timed += 1;
    this.#earliest = Math.min(this.#earliest, span.earliest);
    this.#latest = Math.max(this.#latest, span.latest);
  }

  /** All that the walk has met happened within one second. */
  get isOneSecond(): boolean {
    return this.#timed === this.#spans.length && this.#latest - this.#earliest < 1_000;
  }

  /** From this page on all is of one second, which is not all of the list. */
  #isLastSecond(from: number): boolean {
    return (from > 1 || this.#isPoll) && isOneSecond(this.#spans.slice(from - 1));
  }

  /** Behind this page of the list's end something new has come in, which moved its rows on. */
  #hasMoved(from: number): boolean {
    return this.#isPoll && this.#newAt > from;
  }

  /** What a circle ends the walk with. */
  get failure(): Failure {
    const cause = new ExportError(
      'pagination_loop',
      `reading ${this.#stream}: the cursors of upstream form a loop without a new record`,
      { next: 'Report it to the vendor. The checkpoint stays at the last page before the loop.' },
    );
    return { outcome: 'retry', cause };
  }
}

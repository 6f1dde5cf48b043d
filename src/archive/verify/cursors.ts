// Checks whether a stream was read on from the positions that earlier responses named. If upstream's responses have
// next cursors, a request must use one of them, or start from the beginning. Any other cursor skips records that this
// log does not have: another log has them, or they were never read. Responses that never name a next cursor are not
// checked. Invariants: memory is bounded for any number of lists and cursors; a jump is a break only if the log proves
// that it contains every earlier cursor of the list.

import type { EntryOf, PageEntry } from '../entries.ts';

const listsMax = 10_000;
/** Limits of remembered cursors, of one list and of all lists. */
const listCursorsMax = 50_000;
const cursorsMax = 500_000;
/** Remembered hexadecimal digits of a cursor's hash: two of one list collide once in 10^5 archives. */
const cursorDigits = 12;

/** The meaning of a request with a cursor that no response has named. */
export type Jump = 'break' | 'gap' | null;

interface List {
  /** A response has named a next cursor. */
  leads: boolean;
  /** Every earlier cursor is remembered: the list was read from its beginning, and nothing was dropped. */
  isWhole: boolean;
  /** The next cursor of its last response. */
  next: string | null;
  readonly seen: Set<number>;
  /** A reset was reported: the next request may use any cursor. */
  isReset: boolean;
  /** Number of the newest `start` entry when its last response arrived. */
  start: number;
}

/** Follows the cursors of all lists. */
export class CursorChains {
  /** By stream and parent, the most recently used last. */
  readonly #lists = new Map<string, List>();
  /** Streams whose first entry says that they begin here: the log proves that no other log has a part of them. */
  readonly #named = new Set<string>();
  #cursors = 0;
  /** False once a list was dropped: it may return from its beginning, with earlier cursors. */
  #isWhole = true;
  #starts = 0;
  /**
   * The newest start of a writer that did not know the log, or whose state differs from the previous start's: data in
   * between may be in another log, or nowhere.
   */
  #resumed = -1;
  #spool: string | null = null;
  /** The first page of the log has the first event of its state; null: there was no page. */
  #isFromStart: boolean | null = null;

  /** A process starts to write. */
  start({ resumed_from, spool }: EntryOf<'start'>): void {
    this.#starts += 1;
    // A state moved by `cluster import` or `export` is another spool.
    const isMoved = this.#spool !== null && this.#spool !== spool;
    if (resumed_from !== undefined || isMoved) this.#resumed = this.#starts;
    this.#spool = spool;
  }

  /** The meaning of a page's cursor if no response has named it. */
  jump(entry: PageEntry): Jump {
    const { stream, parent, answer, seq, continues, place, kept, conditions = [] } = entry;
    // A log that began later than its state lacks earlier responses.
    this.#isFromStart ??= place[1] <= Math.max(kept, 1);
    if (seq === 0 && continues === 'beginning' && this.#isFromStart) this.#named.add(stream);
    const key = JSON.stringify([stream, parent]);
    const known = this.#lists.get(key);
    // After a reset, reading resumes anywhere.
    if (conditions.includes('source.checkpoint_reset') && known !== undefined) known.isReset = true;
    if (answer === undefined || answer.status >= 300) return null;
    const { asked, next = null, rewind } = answer;
    const list = known ?? this.#newList(asked);
    const isKnown = asked === null || rewind === true || list.seen.has(numberOf(asked));
    const jump = isKnown || list.isReset || !list.leads ? null : this.#jumpOf(list, stream);
    if (jump !== null) list.isWhole = false;
    if (asked !== null) list.isReset = false;
    list.next = next;
    list.leads ||= next !== null;
    list.start = this.#starts;
    for (const cursor of [asked, next]) if (cursor !== null) this.#remember(list, cursor);
    this.#lists.delete(key);
    this.#lists.set(key, list);
    this.#bound();
    return jump;
  }

  #newList(asked: string | null): List {
    const isWhole = this.#isWhole && asked === null;
    const none = { leads: false, next: null, seen: new Set<number>(), isReset: false };
    return { ...none, isWhole, start: this.#starts };
  }

  #jumpOf(list: List, stream: string): Jump {
    const isResumed = this.#resumed > list.start;
    if (list.isWhole && !isResumed && this.#named.has(stream)) return 'break';
    // If not all earlier cursors are known, this may be an earlier position, at which the list ended then.
    return list.isWhole || isResumed || list.next !== null ? 'gap' : null;
  }

  #remember(list: List, cursor: string): void {
    const { seen } = list;
    const number = numberOf(cursor);
    const had = seen.size;
    seen.delete(number);
    seen.add(number);
    if (seen.size > listCursorsMax) {
      seen.delete(seen.values().next().value ?? 0);
      list.isWhole = false;
    }
    this.#cursors += seen.size - had;
  }

  #bound(): void {
    while (this.#lists.size > listsMax || (this.#cursors > cursorsMax && this.#lists.size > 1)) {
      const [key = '', list] = this.#lists.entries().next().value ?? [];
      this.#cursors -= list?.seen.size ?? 0;
      this.#lists.delete(key);
      // It is checked from its next response on.
      this.#isWhole = false;
    }
  }
}

function numberOf(cursor: string): number {
  return Number.parseInt(cursor.slice(0, cursorDigits), 16);
}

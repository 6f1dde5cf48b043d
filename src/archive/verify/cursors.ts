// Whether a stream was read on from where the answers before led to. Where upstream's answers have next cursors, a
// request has to use one of these, or an earlier one, or start from the beginning. Any other cursor leads past records
// that this log does not have: another log has them, or they were never read. Answers that never named a next cursor
// promise nothing. What must stay true: memory is bounded, however many lists and cursors there are; a jump is a break
// only where the log proves that every earlier cursor of the list is in it.

import type { EntryOf, PageEntry } from '../entries.ts';

const listsMax = 10_000;
/** Cursors remembered of one list, and of all lists together. */
const listCursorsMax = 50_000;
const cursorsMax = 500_000;
/** So many hexadecimal digits of a cursor's hash are remembered: two of one list are alike once in 10^5 archives. */
const cursorDigits = 12;

/** What a request with a cursor that no answer has led to means. */
export type Jump = 'break' | 'gap' | null;

interface List {
  /** An answer has named a next cursor. */
  leads: boolean;
  /** Every cursor before is remembered: the list was read from its beginning, and nothing of it was forgotten. */
  isWhole: boolean;
  /** Where its last answer leads to. */
  next: string | null;
  readonly seen: Set<number>;
  /** A reset was reported: the next request may use any cursor. */
  isReset: boolean;
  /** The `start` entry that was the newest when its last answer came. */
  start: number;
}

/** Follows the cursors of all lists. */
export class CursorChains {
  /** By stream and parent, the one whose answer came last at the end. */
  readonly #lists = new Map<string, List>();
  /** Streams whose first entry says that they begin there: the log proves that no other has a part of them. */
  readonly #named = new Set<string>();
  #cursors = 0;
  /** False once a list was forgotten: it may come again, from its beginning, with earlier cursors. */
  #isWhole = true;
  #starts = 0;
  /**
   * The newest start of a writer that knew nothing of the log, or whose state is another one than the
   * state of the start before: what came between may be in another log, or in none.
   */
  #resumed = -1;
  #spool: string | null = null;
  /** The first page of the log has the first event of its state; null: there was no page. */
  #isFromStart: boolean | null = null;

  /** A process starts to write. */
  start({ resumed_from, spool }: EntryOf<'start'>): void {
    this.#starts += 1;
    // A state that `cluster import` or `export` has moved is another spool.
    const isMoved = this.#spool !== null && this.#spool !== spool;
    if (resumed_from !== undefined || isMoved) this.#resumed = this.#starts;
    this.#spool = spool;
  }

  /** Whether a page was requested with a cursor that no answer has led to. */
  jump(entry: PageEntry): Jump {
    const { stream, parent, answer, seq, continues, place, kept, conditions = [] } = entry;
    // A log that began later than its state has no part of what was read before.
    this.#isFromStart ??= place[1] <= Math.max(kept, 1);
    if (seq === 0 && continues === 'beginning' && this.#isFromStart) this.#named.add(stream);
    const key = JSON.stringify([stream, parent]);
    const known = this.#lists.get(key);
    // After a reset reading resumes wherever it can.
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
    // Of a list whose earlier cursors are not all known it may be an earlier place, where it was at its end.
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
      // It is judged from its next answer on.
      this.#isWhole = false;
    }
  }
}

function numberOf(cursor: string): number {
  return Number.parseInt(cursor.slice(0, cursorDigits), 16);
}

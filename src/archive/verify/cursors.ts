// Whether a stream was read on from where the answer before led to. Where upstream's answer has a
// next cursor, the next one has to be asked with it, with the same cursor again, with an earlier
// one, or from the start; any other leads behind records that nobody has seen. Answers that say
// nothing of what comes next promise nothing. What must stay true: memory is bounded, however many
// lists and cursors there are; a list that was forgotten is judged from its next answer on.

import type { PageEntry } from '../entries.ts';

const listsMax = 10_000;
/** Cursors remembered of a list, to know where it was gone back to. */
const cursorsMax = 1_000;

interface List {
  /** Where its last answer leads to. */
  next: string | null;
  readonly seen: Set<string>;
}

/** Follows the cursors of all lists. */
export class CursorChains {
  /** By stream and parent, the one heard of last at the end. */
  readonly #lists = new Map<string, List>();

  /** True where a page was asked for with a cursor that no answer has led to. */
  isJump({ stream, parent, answer, conditions = [] }: PageEntry): boolean {
    const key = JSON.stringify([stream, parent]);
    // After a reset reading goes on wherever it can.
    if (conditions.includes('source.checkpoint_reset')) this.#lists.delete(key);
    if (answer === undefined || answer.status >= 300) return false;
    const { asked, next = null } = answer;
    const list = this.#lists.get(key) ?? { next: null, seen: new Set() };
    const isJump = list.next !== null && asked !== null && !list.seen.has(asked);
    list.next = next;
    for (const cursor of [asked, next]) if (cursor !== null) remember(list.seen, cursor);
    this.#lists.delete(key);
    this.#lists.set(key, list);
    if (this.#lists.size > listsMax) this.#lists.delete(this.#lists.keys().next().value ?? '');
    return isJump;
  }
}

function remember(seen: Set<string>, cursor: string): void {
  seen.delete(cursor);
  seen.add(cursor);
  if (seen.size > cursorsMax) seen.delete(seen.values().next().value ?? '');
}

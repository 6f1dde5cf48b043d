// Learns the order of a list from the positions at which new records arrive. A new record between known ones may be
// late and teaches nothing. Only a new very first or very last record does, in a list with known records.

import type { ListCheckpoint } from './checkpoint.ts';
import type { Identified } from './identity.ts';
import { isFirst } from './page.ts';
import { identityWords, keyBytes } from './repeats.ts';
import type { Stage } from './stage.ts';

/** The growth that one walk shows. */
export class WalkGrowth {
  #known: boolean;
  #knownCount = 0;
  #firstIsNew = false;
  #lastIsNew = false;
  /** Key of the last record on the last page with records. */
  #last = '';
  #ended = false;
  #fresh = 0;
  #inOrder = true;

  /** `known`: the walk begins after known records. */
  constructor(known: boolean) {
    this.#known = known;
  }

  /** Adds a page of the walk. */
  note({ position, next, taken, overlap }: Stage): void {
    const { fresh } = taken.judged;
    const count = taken.page.records.length;
    const known = count - overlap - fresh.length;
    if (isFirst(position)) this.#firstIsNew ||= fresh[0] === 0;
    // Rows of the previous page say nothing about later ones. Neither does a page that ends as the previous one did: at
    // its end a list may repeat its last rows.
    const last = lastKey(taken.judged.identified);
    const isAgain = fresh.length === 0 && last === this.#last;
    if (count > overlap && !isAgain) this.#lastIsNew = fresh.at(-1) === count - 1;
    if (count > 0) this.#last = last;
    // All known records come before all new ones.
    const isBehind = fresh.length === 0 || fresh[0] === count - fresh.length;
    this.#inOrder &&= isBehind && (this.#fresh === 0 || known === 0);
    this.#fresh += fresh.length;
    this.#knownCount += known;
    this.#known ||= known > 0;
    this.#ended ||= next === null;
  }

  /** The known records come before the new ones, although the walk saw none of them. */
  confirm(): void {
    this.#known = true;
  }

  /** The list has grown at its start. */
  get atStart(): boolean {
    return this.#known && this.#firstIsNew;
  }

  /** The walk saw new records after at most `known` known ones, and no known one after them. */
  isBehind(known: number): boolean {
    return this.#fresh > 0 && this.#inOrder && this.#knownCount <= known;
  }

  /** The list has grown at its end. */
  get atEnd(): boolean {
    return this.#known && this.#ended && this.#lastIsNew;
  }
}

function lastKey({ words, count }: Identified): string {
  const at = (count - 1) * identityWords;
  return words.subarray(at, at + keyBytes / 4).join();
}

/** The order that the growth of one poll shows, given the order assumed before. */
export function orderShown(
  before: ListCheckpoint['growth']['order'],
  { atStart, atEnd }: { readonly atStart: boolean; readonly atEnd: boolean },
): ListCheckpoint['growth']['order'] {
  // The other end may be idle.
  if (before === 'mixed' || !(atStart || atEnd)) return before;
  if (atStart && atEnd) return 'mixed';
  const shown = atStart ? 'newest_first' : 'oldest_first';
  return before === 'unknown' || before === shown ? shown : 'unknown';
}

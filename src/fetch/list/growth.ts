// Where new records come into a list, which is all that teaches its order. A new record between
// known ones may have come late and teaches nothing; only a new very first or very last one does,
// in a list of which something was known before.

import type { ListCheckpoint } from './checkpoint.ts';
import type { Identified } from './identity.ts';
import { isFirst } from './page.ts';
import { identityWords, keyBytes } from './repeats.ts';
import type { Stage } from './stage.ts';

/** What one walk shows of it. */
export class WalkGrowth {
  #known: boolean;
  #knownCount = 0;
  #firstIsNew = false;
  #lastIsNew = false;
  /** Who the last record of the last page with records is. */
  #last = '';
  #ended = false;
  #fresh = 0;
  #inOrder = true;

  /** `known`: the walk begins behind records that are known. */
  constructor(known: boolean) {
    this.#known = known;
  }

  /** Notes a page of the walk. */
  note({ place, next, taken, overlap }: Stage): void {
    const { fresh } = taken.judged;
    const count = taken.page.records.length;
    const known = count - overlap - fresh.length;
    if (isFirst(place)) this.#firstIsNew ||= fresh[0] === 0;
    // Rows of the page before say nothing of what is behind it, nor does a page that ends as it did:
    // where a list leads on at its end, its last rows come again.
    const last = lastKey(taken.judged.identified);
    const isAgain = fresh.length === 0 && last === this.#last;
    if (count > overlap && !isAgain) this.#lastIsNew = fresh.at(-1) === count - 1;
    if (count > 0) this.#last = last;
    // All that was known stands before all that is new.
    const isBehind = fresh.length === 0 || fresh[0] === count - fresh.length;
    this.#inOrder &&= isBehind && (this.#fresh === 0 || known === 0);
    this.#fresh += fresh.length;
    this.#knownCount += known;
    this.#known ||= known > 0;
    this.#ended ||= next === null;
  }

  /** What was known stands before what has come in, though none of it was met. */
  confirm(): void {
    this.#known = true;
  }

  /** The list has grown at its start. */
  get atStart(): boolean {
    return this.#known && this.#firstIsNew;
  }

  /** New records were met, behind few that were known, and none of these behind them. */
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

/** The order that growth of one poll shows, beside what was taken for it before. */
export function orderShown(
  before: ListCheckpoint['growth']['order'],
  { atStart, atEnd }: { readonly atStart: boolean; readonly atEnd: boolean },
): ListCheckpoint['growth']['order'] {
  // One end at a time may well be idle.
  if (before === 'mixed' || !(atStart || atEnd)) return before;
  if (atStart && atEnd) return 'mixed';
  const shown = atStart ? 'newest_first' : 'oldest_first';
  return before === 'unknown' || before === shown ? shown : 'unknown';
}

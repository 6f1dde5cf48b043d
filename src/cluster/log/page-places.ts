// Where each page stands in the log that is held, so that those which every sink has can be deleted
// from it. What must stay true: no page is deleted that a sink may still want.

import type { Offset } from '../../contracts/index.ts';
import { pageTable } from '../../hold/index.ts';
import { parsedKey } from './rows.ts';

/** Places of pages, oldest first. */
export class PagePlaces {
  #places: { readonly first: Offset; readonly offset: bigint }[] = [];

  /** A transaction has put its first page there. */
  begins(offset: bigint): void {
    // The topic was made anew: places in the one before are those of other pages in this one.
    if (offset < (this.#places.at(-1)?.offset ?? 0n)) this.#places = [];
  }

  /** A record stands there; what is no page is left alone. */
  note(key: Buffer | null, offset: bigint): void {
    const [table, first] = parsedKey(key);
    if (table !== pageTable || typeof first !== 'number') return;
    if (this.#places.at(-1)?.first !== first) this.#places.push({ first, offset });
  }

  /** Before which place all may go once no sink wants events before this one; null: nothing has to. */
  forgetBefore(event: Offset): bigint | null {
    // Of a page whose commit had no answer nobody knows the place: the one before it is safe.
    const kept = this.#places.findLastIndex(({ first }) => first <= event);
    if (kept <= 0) return null;
    this.#places = this.#places.slice(kept);
    return this.#places[0]?.offset ?? null;
  }
}

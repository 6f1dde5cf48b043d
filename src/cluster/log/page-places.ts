// The log offset of each held page, so that pages that every sink has can be deleted from the log. Invariant: no page is
// deleted that a sink may still need.

import type { Offset } from '../../contracts/index.ts';
import { pageTable } from '../../hold/index.ts';
import { parsedKey } from './rows.ts';

/** Log offsets of pages, oldest first. */
export class PagePlaces {
  #places: { readonly first: Offset; readonly offset: bigint }[] = [];

  /** A transaction has written its first page at this offset. */
  begins(offset: bigint): void {
    // The topic was recreated: offsets of the earlier one belong to other pages now.
    if (offset < (this.#places.at(-1)?.offset ?? 0n)) this.#places = [];
  }

  /** A record has this offset; other records than pages are ignored. */
  note(key: Buffer | null, offset: bigint): void {
    const [table, first] = parsedKey(key);
    if (table !== pageTable || typeof first !== 'number') return;
    if (this.#places.at(-1)?.first !== first) this.#places.push({ first, offset });
  }

  /** The log offset before which all can be deleted once no sink needs events before `offset`; null: nothing can. */
  forgetBefore(event: Offset): bigint | null {
    // The offset of a page without an acknowledged commit is not known: the offset of the page before is safe.
    const kept = this.#places.findLastIndex(({ first }) => first <= event);
    if (kept <= 0) return null;
    this.#places = this.#places.slice(kept);
    return this.#places[0]?.offset ?? null;
  }
}

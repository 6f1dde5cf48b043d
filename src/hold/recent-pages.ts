// A cache of pages that were lately appended or read, by offset, with a bound on the bytes of their
// bodies that follows their size. Readers at the same position get the same page object, so
// computed values (parsed records, events, encoded lines) are shared. The cache is a holder of the
// memory of its pages. Invariant: a cached page is on disk already, so an eviction costs only a read.

import type { HeldPage, Offset } from '../contracts/index.ts';
import { heldBytes } from './held-page.ts';

/** Number of the largest pages that are cached if the bound allows. */
const pagesMin = 4;

/** A small cache of pages, oldest offset first. */
export class RecentPages {
  readonly #bounds: { readonly least: number; readonly most: number };
  #pages: HeldPage[] = [];
  #bytes = 0;
  /** Size of the largest cached page. */
  #largest = 0;
  /** Pages read back that are older than the newest ones, by their first offset, in read order. */
  readonly #cold = new Map<Offset, HeldPage>();
  #coldBytes = 0;

  /** `least`: the bound for small pages; `most`: the limit up to which it follows larger ones. */
  constructor(least: number, most: number = least) {
    this.#bounds = { least, most };
  }

  /** The bound on the cached bytes; the newest page is always cached. */
  get bytesMax(): number {
    return Math.max(this.#bounds.least, Math.min(pagesMin * this.#largest, this.#bounds.most));
  }

  /** The bound on older pages; reading more at a time would evict them before use. */
  get coldBytesMax(): number {
    return this.bytesMax / 2;
  }

  /** Bytes of cached bodies without the older pages that were read back. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Offset of the oldest cached page; null if empty. */
  get oldest(): Offset | null {
    return this.#pages[0]?.first ?? null;
  }

  /** Evicts the pages that end at or before an offset. */
  forgetBefore(offset: Offset): void {
    let drop = 0;
    for (const page of this.#pages) {
      if (page.first + page.count > offset) break;
      this.#bytes -= heldBytes(page);
      drop += 1;
    }
    this.#forget(drop);
  }

  #forget(count: number): void {
    if (count === 0) return;
    for (const { memory } of this.#pages.slice(0, count)) memory?.release();
    this.#pages = this.#pages.slice(count);
    this.#largest = this.#pages.reduce((most, { body }) => Math.max(most, body.length), 0);
  }

  /** Caches the newest page and evicts the oldest ones beyond the bound. */
  add(page: HeldPage): void {
    const last = this.#pages.at(-1);
    // Appends resolve in commit order, so this happens only to a page that was read back meanwhile.
    if (last !== undefined && page.first <= last.first) return;
    this.#pages.push(page);
    this.#bytes += heldBytes(page);
    this.#largest = Math.max(this.#largest, page.body.length);
    let drop = 0;
    while (this.#bytes > this.bytesMax && drop < this.#pages.length - 1) {
      const oldest = this.#pages[drop];
      this.#bytes -= oldest === undefined ? 0 : heldBytes(oldest);
      drop += 1;
    }
    this.#forget(drop);
  }

  /**
   * Returns a page read back from disk, or its cached object. Older pages are cached apart, because
   * a sink with a long backlog would otherwise evict pages that the other sinks are about to read.
   */
  addCold(page: HeldPage): HeldPage {
    const known = this.#find(page.first) ?? this.#cold.get(page.first);
    if (known !== undefined) return known;
    this.#cold.set(page.first, page);
    this.#coldBytes += heldBytes(page);
    for (const [first, oldest] of this.#cold) {
      if (this.#coldBytes <= this.coldBytesMax || this.#cold.size === 1) break;
      this.#cold.delete(first);
      this.#coldBytes -= heldBytes(oldest);
      oldest.memory?.release();
    }
    return page;
  }

  /** Consecutive pages from the one with `from`, about `bytesMax`; empty: not cached. */
  from(from: Offset, bytesMax: number): readonly HeldPage[] {
    const found: HeldPage[] = [];
    let bytes = 0;
    let page = this.#holding(from);
    while (page !== undefined && bytes < bytesMax) {
      found.push(page);
      bytes += heldBytes(page);
      const next: Offset = page.first + page.count;
      page = this.#find(next) ?? this.#cold.get(next);
    }
    return found;
  }

  #holding(offset: Offset): HeldPage | undefined {
    const holds = ({ first, count }: HeldPage) => first <= offset && offset < first + count;
    const recent = this.#pages[this.#indexOf(offset)];
    if (recent !== undefined && holds(recent)) return recent;
    return this.#cold.get(offset) ?? this.#cold.values().find(holds);
  }

  #find(first: Offset): HeldPage | undefined {
    const page = this.#pages[this.#indexOf(first)];
    return page?.first === first ? page : undefined;
  }

  /** Index of the last page that starts at or before `offset`; 0 if none does. */
  #indexOf(offset: Offset): number {
    let low = 0;
    let high = this.#pages.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#pages[middle]?.first ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

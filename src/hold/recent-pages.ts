// Pages lately appended or read, by offset, within a bound on their bodies' bytes. Readers that stand at the same
// place get the same page object, so what is computed from it (parsed records, events, encoded lines) is shared.
// What must stay true: a page in here is on disk already, and forgetting one costs only a read.

import type { Offset } from '../contracts/event.ts';
import type { HeldPage } from '../contracts/spool.ts';

/** A small memory of pages, oldest offset first. */
export class RecentPages {
  readonly #bytesMax: number;
  #pages: HeldPage[] = [];
  #bytes = 0;
  /** Pages read back from behind the newest ones, by their first offset, in order of reading. */
  readonly #cold = new Map<Offset, HeldPage>();
  #coldBytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes of pages from behind that are remembered; more than this at a time is read in vain. */
  get coldBytesMax(): number {
    return this.#bytesMax / 2;
  }

  /** Bytes of the bodies remembered, those read back from behind left out. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Where the remembered pages begin; null while there are none. */
  get oldest(): Offset | null {
    return this.#pages[0]?.first ?? null;
  }

  /** Forgets the pages that end at or before an offset. */
  forgetBefore(offset: Offset): void {
    let drop = 0;
    for (const page of this.#pages) {
      if (page.first + page.count > offset) break;
      this.#bytes -= page.body.length;
      drop += 1;
    }
    if (drop > 0) this.#pages = this.#pages.slice(drop);
  }

  /** Remembers the newest page, forgetting the oldest ones beyond the bound. */
  add(page: HeldPage): void {
    const last = this.#pages.at(-1);
    // Appends resolve in commit order, so this only happens to a page that was read back meanwhile.
    if (last !== undefined && page.first <= last.first) return;
    this.#pages.push(page);
    this.#bytes += page.body.length;
    let drop = 0;
    while (this.#bytes > this.#bytesMax && drop < this.#pages.length - 1) {
      this.#bytes -= this.#pages[drop]?.body.length ?? 0;
      drop += 1;
    }
    if (drop > 0) this.#pages = this.#pages.slice(drop);
  }

  /**
   * A page read back from disk: the remembered one where there is one. Pages from behind are kept apart, since a sink
   * with a long backlog would else push out what the others are about to read.
   */
  addCold(page: HeldPage): HeldPage {
    const known = this.#find(page.first) ?? this.#cold.get(page.first);
    if (known !== undefined) return known;
    this.#cold.set(page.first, page);
    this.#coldBytes += page.body.length;
    for (const [first, oldest] of this.#cold) {
      if (this.#coldBytes <= this.coldBytesMax || this.#cold.size === 1) break;
      this.#cold.delete(first);
      this.#coldBytes -= oldest.body.length;
    }
    return page;
  }

  /** Pages in a row from the one that holds `from`, up to about `bytesMax`; empty where it is not remembered. */
  from(from: Offset, bytesMax: number): readonly HeldPage[] {
    const found: HeldPage[] = [];
    let bytes = 0;
    let page = this.#holding(from);
    while (page !== undefined && bytes < bytesMax) {
      found.push(page);
      bytes += page.body.length;
      const next = page.first + page.count;
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

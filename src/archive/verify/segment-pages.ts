// Checks that each segment's entry is followed by the stated number of page entries. Invariant: a lost or damaged entry
// may have been any entry, so it causes no break here.

import type { Entry } from '../entries.ts';
import type { Break } from './findings.ts';

/** Follows segments and pages in the order of the log. */
export class SegmentPages {
  readonly #found: (one: Break) => unknown;
  #open: { readonly index: number; readonly object: string; readonly pages: number } | null = null;
  /** Pages of the segment that must still follow. */
  #left = 0;
  #isLost = false;

  constructor(found: (one: Break) => unknown) {
    this.#found = found;
  }

  /** An unreadable entry. */
  lose(): void {
    this.#left = Math.max(0, this.#left - 1);
    this.#isLost = true;
  }

  /** The next entry. */
  take(index: number, entry: Entry): void {
    if (entry.t !== 'page') {
      this.end();
      if (entry.t !== 'segment') return;
      this.#open = { index, object: entry.object, pages: entry.pages };
      this.#left = entry.pages;
      this.#isLost = false;
      return;
    }
    const { stream, seq, body } = entry;
    if (this.#left > 0 && body.segment === this.#open?.object) this.#left -= 1;
    else if (!this.#isLost) {
      const what = 'no entry before says that its segment has this page';
      this.#found({ index, stream, seq, object: body.segment, what });
    }
  }

  /** No page of the segment follows any more. */
  end(): void {
    const [open, left] = [this.#open, this.#left];
    this.#open = null;
    this.#left = 0;
    if (open === null || left === 0 || this.#isLost) return;
    const { index, object, pages } = open;
    const what = `its entry says that it has ${pages} pages, and ${pages - left} follow`;
    this.#found({ index, stream: null, seq: null, object, what });
  }
}

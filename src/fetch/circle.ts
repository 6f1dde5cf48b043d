// Whether a walk goes in a circle: servers have led clients round and round with cursors that come again, and with new
// cursors to pages that come again. Records with ids show it by being known; records without ids on a page that nobody
// is thought to have read always look new, so pages are compared as well. A circle ends the walk with an error, before
// anything of its second round is held.

import { hash } from 'node:crypto';
import { ExportError } from '../contracts/errors.ts';
import type { Place } from '../contracts/source.ts';
import type { Identified } from './identity.ts';
import { keysOf, type Reading } from './judge.ts';
import type { Taken } from './list-reader.ts';
import { NoPage } from './outcome.ts';

/** Watches one walk. */
export class CircleWatch {
  readonly #stream: string;
  readonly #cursors = new Set<string>();
  readonly #pages = new Map<string, number>();
  /** Pages with records. */
  #count = 0;
  /** Of them in a row that were the one before over again. */
  #still = 0;

  constructor(stream: string) {
    this.#stream = stream;
  }

  /**
   * Looks at a page and where it leads. True where the page is the one before over again, a single known record under ever
   * new cursors: that is the end of the list for now. Throws NoPage for a circle.
   */
  isStill({ judged }: Taken, next: Place | null, reading: Reading): boolean {
    const { identified, fresh } = judged;
    const isEmpty = identified.count === 0;
    if (!isEmpty) this.#count += 1;
    const before = isEmpty ? undefined : this.#seenBefore(identified);
    const isNamed = identified.named[0] === 1;
    if (before === this.#count - 1 && fresh.length === 0) {
      this.#still += 1;
      if (next === null) return true;
      // Once can be rows that have moved down by a page meanwhile.
      if (isNamed && (identified.count === 1 || this.#still === 1)) return this.#still > 1;
    } else if (!isEmpty) this.#still = 0;
    // Many of the same record without an id are many records.
    if (before !== undefined) {
      const isOne =
        keysOf(identified, 0, 1) === keysOf(identified, identified.count - 1, identified.count);
      if (isNamed || !isOne) throw this.#circle();
    }
    this.#follow(
      next,
      fresh.some((i) => reading === 'known' || identified.named[i] === 1),
    );
    return false;
  }

  /** The number of the page in this walk that held the same records, if one did. */
  #seenBefore(identified: Identified): number | undefined {
    const page = hash('sha256', keysOf(identified, 0, identified.count));
    const before = this.#pages.get(page);
    this.#pages.set(page, this.#count);
    return before;
  }

  /** A cursor that was followed before in this walk, with nothing surely new since, leads round. */
  #follow(next: Place | null, progress: boolean): void {
    if (next?.by !== 'cursor') return;
    if (progress) this.#cursors.clear();
    const cursor = next.cursor ?? '';
    if (this.#cursors.has(cursor)) throw this.#circle();
    this.#cursors.add(cursor);
  }

  #circle(): NoPage {
    const cause = new ExportError(
      'pagination_loop',
      `reading ${this.#stream}: upstream's cursors lead in a circle with no new record in it`,
      { next: 'Report it to upstream; the checkpoint stays at the last page before the circle.' },
    );
    return new NoPage({ outcome: 'retry', cause });
  }
}

// Counts pages whose events are in no lake cut: the entry of a cut has the spool numbers of its events, and each page
// the numbers of its own. The lake is made from pages, so these events are not lost, but a reader of the lake alone
// does not see them. Invariants: memory is bounded; an archive without a lake reports nothing.

import type { EntryOf, PageEntry } from '../entries.ts';
import { stemOfCut } from '../lake-cuts.ts';
import { eventsWithin } from '../lake-entries.ts';

/** A page whose events are in no cut so far. */
interface Uncut {
  readonly index: number;
  /** Of the spool: its id, and the epoch. */
  readonly spool: string;
  readonly page: Pick<PageEntry, 'kept' | 'place'>;
  events: number;
}

/** Above this number of pages without a cut, counting stops: 100 bytes each. */
const pagesMax = 1_000_000;

/** Pages and events, with the entries of the first and the last page. */
interface Count {
  pages: number;
  events: number;
  first: number;
  last: number;
}

/** Counts these pages, entry by entry. */
export class UncutPages {
  #spool = '';
  #pages: Uncut[] = [];
  /** Pages that no later cut can contain: cuts follow the order of pages. */
  #settled: Count | null = null;
  #isOverflown = false;
  /** The index of the last page with events in a cut; null: there is no cut. */
  #lastCut: number | null = null;

  /** From here on, numbers belong to this spool. */
  start({ spool }: Pick<EntryOf<'start'>, 'spool'>): void {
    this.#spool = spool;
  }

  /** A page with events. `isCounted`: false for a page that was not requested. */
  page(index: number, { kept, place }: PageEntry, isCounted: boolean): void {
    if (kept === 0 || !isCounted) return;
    if (this.#pages.length >= pagesMax) this.#isOverflown = true;
    else this.#pages.push({ index, spool: this.#spool, page: { kept, place }, events: kept });
  }

  /** A cut of the lake. If it names no pages, its numbers identify them. */
  cut({ object, numbers, entries }: EntryOf<'lake_cut'>): void {
    const epoch = Number(stemOfCut(object).split('-', 1)[0]);
    for (const one of this.#pages) {
      const isOf =
        entries === null
          ? one.spool === this.#spool && one.page.place[0] === epoch
          : one.index >= entries[0] && one.index <= entries[1];
      const { from, to } = eventsWithin(one.page, numbers);
      if (!isOf || to <= from) continue;
      one.events -= to - from;
      this.#lastCut = Math.max(this.#lastCut ?? -1, one.index);
    }
    this.#lastCut ??= -1;
    const [first = 0] = entries ?? [];
    const settled = this.#pages.filter(({ index, events }) => index < first && events > 0);
    this.#settled = counted(settled, this.#settled);
    this.#pages = this.#pages.filter(({ index, events }) => index >= first && events > 0);
  }

  /** The remarks for a reader of the lake. */
  remarks(): readonly string[] {
    const lastCut = this.#lastCut;
    if (lastCut === null) return [];
    if (this.#isOverflown) {
      return [`more than ${pagesMax} pages are in no cut of the lake; they are not counted`];
    }
    const before = this.#pages.filter(({ index }) => index <= lastCut);
    const left = counted(before, this.#settled);
    const newer = counted(this.#pages.filter(({ index }) => index > lastCut));
    return [
      ...(left === null
        ? []
        : [
            `${text(left)} are in no cut of the lake: it began later, or a cut of them is missing or was not entered; the pages have them`,
          ]),
      ...(newer === null
        ? []
        : [`${text(newer)} are newer than the newest cut of the lake; the pages have them`]),
    ];
  }
}

/** Adds pages to a count. */
function counted(pages: readonly Uncut[], to: Count | null = null): Count | null {
  let count = to;
  for (const { index, events } of pages) {
    count ??= { pages: 0, events: 0, first: index, last: index };
    count.pages += 1;
    count.events += events;
    count.last = index;
  }
  return count;
}

function text({ pages, events, first, last }: Count): string {
  return `${events} events of ${pages} pages (entries ${first} to ${last})`;
}

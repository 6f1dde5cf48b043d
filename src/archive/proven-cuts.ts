// The cuts of a lake from the log's proven entries, for a writer that deletes or rewrites some. Others can change a
// cut's file: it may name foreign objects or other times. Invariants: objects and times come from proven entries only;
// if the pages of a cut are unknown, its time span covers every possible page.

import { readTimes } from './clocks.ts';
import type { EntryOf } from './entries.ts';
import { cutsPrefix } from './lake-cuts.ts';
import { eventsWithin } from './lake-entries.ts';
import { loggedEntries } from './logged.ts';
import type { ProvenReader } from './proven-reader.ts';

/** A cut under a signed checkpoint, with its objects. */
export interface ProvenCut {
  readonly entry: EntryOf<'lake_cut'>;
  readonly objects: readonly EntryOf<'lake'>[];
}

/** Reading times of a cut's pages, epoch milliseconds. */
export interface CutSpan {
  readonly first: number;
  readonly last: number;
}

/** The cuts of one log. */
export class ProvenCuts {
  /** Index of the cut's entry by name: a year may have 35,000 cuts. */
  readonly #indexes = new Map<string, number>();
  #scanned = 0;
  #lastPage: number | null = null;

  /** The cut with this name; null: no entry names it. Throws a SyntaxError if an entry is not proven. */
  async named(name: string, reader: ProvenReader): Promise<ProvenCut | null> {
    await this.#scan(reader);
    const index = this.#indexes.get(name);
    return index === undefined ? null : await cutAt(index, reader);
  }

  /** All cuts, in the order of the log. */
  async *all(reader: ProvenReader): AsyncGenerator<ProvenCut> {
    await this.#scan(reader);
    for (const index of this.#indexes.values()) yield await cutAt(index, reader);
  }

  /** The index of the last page with events in the lake; null: no cut is entered, or none with known pages. */
  async lastPage(reader: ProvenReader): Promise<number | null> {
    await this.#scan(reader);
    return this.#lastPage;
  }

  async #scan(reader: ProvenReader): Promise<void> {
    const { size } = reader.head;
    for await (const { index, entry } of loggedEntries(reader, size, this.#scanned)) {
      this.#scanned = index + 1;
      if (entry.t !== 'lake_cut') continue;
      this.#indexes.set(entry.object, index);
      this.#lastPage = entry.entries?.[1] ?? this.#lastPage;
    }
  }
}

/** The cut at this entry index, with its objects. Throws a SyntaxError if there is none. */
export async function cutAt(index: number, reader: ProvenReader): Promise<ProvenCut> {
  let cut: EntryOf<'lake_cut'> | null = null;
  const objects: EntryOf<'lake'>[] = [];
  for await (const { entry } of loggedEntries(reader, reader.head.size, index)) {
    if (cut === null && entry.t === 'lake_cut') cut = entry;
    else if (entry.t === 'lake') objects.push(entry);
    if (cut === null || objects.length >= cut.objects) break;
  }
  if (cut === null) throw new SyntaxError(`entry ${index} is no cut of the lake`);
  return { entry: cut, objects };
}

/** The earliest and latest reading time of a cut's pages, by `timesOf` a page. */
export async function readSpanOf(
  { entry }: ProvenCut,
  reader: ProvenReader,
  timesOf: typeof readTimes = readTimes,
): Promise<CutSpan> {
  const day = dayOfCut(entry.object);
  if (entry.events === 0) return { first: day, last: day };
  // Its events were sent again: their pages are older than the day on which the cut was written.
  if (entry.entries === null) return { first: Number.NEGATIVE_INFINITY, last: day + dayMs - 1 };
  const [from, to] = entry.entries;
  let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for await (const { entry: page } of loggedEntries(reader, to + 1, from)) {
    if (page.t !== 'page') continue;
    const own = eventsWithin(page, entry.numbers);
    if (own.to <= own.from) continue;
    const times = timesOf(page);
    [first, last] = [Math.min(first, ...times), Math.max(last, ...times)];
  }
  return { first, last };
}

const dayMs = 86_400_000;

/** The start of the day in a cut's name, epoch milliseconds. */
export function dayOfCut(name: string): number {
  const day = name.slice(cutsPrefix.length, cutsPrefix.length + 'YYYY/MM/DD'.length);
  return Date.parse(day.replaceAll('/', '-'));
}

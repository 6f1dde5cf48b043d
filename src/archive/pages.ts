// Pages of an archive as a spool would hold them, for whoever makes events of them again. They are
// read without proof, but for each body's hash. A damaged archive is a SyntaxError.

import type { Offset } from '../contracts/event.ts';
import type { HeldPage } from '../contracts/spool.ts';
import { contextOf, type PageEntry } from './entries.ts';
import { isPruned, loggedEntries } from './logged.ts';
import type { ArchiveReader } from './reader.ts';
import { pageRange, readPage } from './segments.ts';
import { tileWidth } from './tiles.ts';

/** How far something has come: an epoch of a spool, and the number of the next event. */
export type PlaceInSpool = readonly [epoch: number, next: Offset];

/**
 * The index from which on a log of this size has every page behind a place: pages stand in the order
 * of their places, so it is looked for from the end.
 */
export async function indexBehind(
  reader: ArchiveReader,
  size: number,
  [epoch, next]: PlaceInSpool,
): Promise<number> {
  let from = Math.floor(Math.max(0, size - 1) / tileWidth) * tileWidth;
  for (; from > 0; from -= tileWidth) {
    for await (const { entry } of loggedEntries(reader, Math.min(size, from + tileWidth), from)) {
      if (entry.t !== 'page') continue;
      const [at, until] = entry.place;
      if (at < epoch || (at === epoch && until <= next)) return from;
    }
  }
  return from;
}

/** The page of an entry, its events numbered from `first` on; null where its body was let go. */
export async function archivedPage(
  reader: ArchiveReader,
  entry: PageEntry,
  first: Offset,
): Promise<HeldPage | null> {
  const { segment } = entry.body;
  const range = await reader.named('segment', segment, pageRange(entry));
  if (range === null) {
    if (await isPruned(reader, segment)) return null;
    throw new SyntaxError(`${segment} is missing`);
  }
  const { body, uids, kept } = readPage(entry, range);
  return {
    context: contextOf(entry),
    body,
    items: entry.items,
    kept,
    uids,
    first,
    count: entry.kept,
  };
}

// Pages of an archive in the form of a spool, for callers that create events from them again. A body and its uids are
// proven by the page's entry; whether the entry is proven depends on the reader. A damaged archive is a SyntaxError
// that names the page.

import { type HeldPage, type Offset, uidBytes } from '../contracts/index.ts';
import { contextOf, type PageEntry } from './entries.ts';
import { type ErasedRecords, erasuresIn, readVersion, versionsOf } from './erasures.ts';
import { isPruned, loggedEntries } from './logged.ts';
import type { ArchiveReader } from './reader.ts';
import { type ArchivedPage, pageRange, readPage } from './segments.ts';
import { tileWidth } from './tiles.ts';

/** A position in a spool: its epoch, and the number of the next event. */
export type PlaceInSpool = readonly [epoch: number, next: Offset];

/**
 * The first index from which all pages of a log of this size are after a position. Pages are in the order of their
 * positions, so the search starts at the end.
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

/** The page of an entry, its events numbered from `first` on; null: its body was deleted. */
export async function archivedPage(
  reader: ArchiveReader,
  entry: PageEntry,
  first: Offset,
): Promise<HeldPage | null> {
  const { segment } = entry.body;
  const range = await reader.named('segment', segment, pageRange(entry));
  if (range === null) {
    if (await isPruned(reader, segment)) return null;
    throw new SyntaxError(`${segment} is missing; page ${entry.seq} of ${entry.stream} is in it`);
  }
  const page = await namingPage(entry, () => existingPage(reader, entry, range));
  const { uids } = page;
  return {
    ...{ context: contextOf(entry), items: entry.items, body: page.body, kept: page.kept },
    ...{ uids, first, count: uids.length / uidBytes },
  };
}

/** The result of `read`; a SyntaxError from it names the page. */
async function namingPage<T>({ stream, seq, body }: PageEntry, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const what = `page ${seq} of ${stream} in ${body.segment}: ${error.message}`;
    throw new SyntaxError(what, { cause: error });
  }
}

/** The page as archived, or without the records erased later. */
async function existingPage(
  reader: ArchiveReader,
  entry: PageEntry,
  range: Uint8Array,
): Promise<ArchivedPage> {
  try {
    return readPage(entry, range);
  } catch (error) {
    const versions = versionsOf(entry, await erasuresIn(reader));
    if (!(error instanceof SyntaxError) || versions.length === 1) throw error;
    return await readVersion(reader, versions, ({ entry, erased }, range) =>
      without(readPage(entry, range), erased),
    );
  }
}

function without({ body, uids, kept }: ArchivedPage, erased: ErasedRecords): ArchivedPage {
  const places = kept ?? Uint32Array.from({ length: uids.length / uidBytes }, (_, i) => i);
  const left = [...places.keys()].filter((i) => !erased.has(places[i] ?? -1));
  return {
    body,
    kept: Uint32Array.from(left, (i) => places[i] ?? 0),
    uids: Buffer.concat(left.map((i) => uids.subarray(i * uidBytes, (i + 1) * uidBytes))),
  };
}

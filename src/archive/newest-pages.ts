// The newest pages of an archive's streams, read backwards, for a comparison with upstream's present data. The archive
// enters the result. Invariant: pages are those of the tree that the state signed last, whatever the store contains.

import type { HeldPage, Json } from '../contracts/index.ts';
import type { ObjectStore } from '../objects/index.ts';
import { parseMark, type SigningMark } from './heads.ts';
import { loggedEntries } from './logged.ts';
import { archivedPage } from './pages.ts';
import { ProvenReader } from './proven-reader.ts';
import { tileWidth } from './tiles.ts';

/** Limit of entries searched, because every entry costs time. */
const entriesMax = 200_000;

/** An archive as the state signed it last. `mark`: the sink's stored mark. Null: the state has signed nothing yet. */
export function signedReader(store: ObjectStore, mark: Json | null): ProvenReader | null {
  const known: SigningMark | null = mark === null ? null : parseMark(mark);
  if (known === null) return null;
  return new ProvenReader(store, { size: known.size, root: Buffer.from(known.root, 'hex') });
}

/**
 * Pages with records, the newest bundle of entries first. Throws a SyntaxError if the archive differs from the signed
 * tree.
 */
export async function* newestPages(
  reader: ProvenReader,
  isRequested: (stream: string) => boolean,
): AsyncGenerator<HeldPage> {
  const { size } = reader.head;
  const first = Math.max(0, size - entriesMax);
  for (let end = size; end > first; ) {
    const from = Math.floor((end - 1) / tileWidth) * tileWidth;
    for await (const { entry } of loggedEntries(reader, end, from)) {
      if (entry.t !== 'page' || entry.kept === 0 || !isRequested(entry.stream)) continue;
      const page = await archivedPage(reader, entry, 0);
      if (page !== null) yield page;
    }
    end = from;
  }
}

// The newest pages of an archive's streams, read backwards, as many as are asked for: for a comparison with what upstream
// serves now. The archive enters its result, so what must stay true: pages are those of the tree that the state has
// signed last, whatever stands in the store.

import type { Json } from '../contracts/json.ts';
import type { HeldPage } from '../contracts/spool.ts';
import type { ObjectStore } from '../objects/store.ts';
import { parseMark, type SigningMark } from './heads.ts';
import { loggedEntries } from './logged.ts';
import { archivedPage } from './pages.ts';
import { ProvenReader } from './proven-reader.ts';
import { tileWidth } from './tiles.ts';

/** So far back is looked: an entry costs some time, whatever it is of. */
const entriesMax = 200_000;

/** An archive as the state has signed it last; `mark`: what its sink remembers. Null: it has signed nothing yet. */
export function signedReader(store: ObjectStore, mark: Json | null): ProvenReader | null {
  const known: SigningMark | null = mark === null ? null : parseMark(mark);
  if (known === null) return null;
  return new ProvenReader(store, { size: known.size, root: Buffer.from(known.root, 'hex') });
}

/** Pages with records, the newest bundle of entries first. An archive that is not what was signed is a SyntaxError. */
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

// The newest pages of an archive's streams, read backwards and without proof, as many as are asked
// for: for whoever compares them with what upstream serves now.

import type { HeldPage } from '../contracts/spool.ts';
import { loggedEntries, newestCheckpoint } from './logged.ts';
import { archivedPage } from './pages.ts';
import type { ArchiveReader } from './reader.ts';
import { tileWidth } from './tiles.ts';

/** So far back is looked: an entry costs some time, whatever it is of. */
const entriesMax = 200_000;

/** Pages with records, the newest bundle of entries first. A damaged archive is a SyntaxError. */
export async function* newestPages(
  reader: ArchiveReader,
  isWanted: (stream: string) => boolean,
): AsyncGenerator<HeldPage> {
  const { size } = await newestCheckpoint(reader);
  const first = Math.max(0, size - entriesMax);
  for (let end = size; end > first; ) {
    const from = Math.floor((end - 1) / tileWidth) * tileWidth;
    for await (const { entry } of loggedEntries(reader, end, from)) {
      if (entry.t !== 'page' || entry.kept === 0 || !isWanted(entry.stream)) continue;
      const page = await archivedPage(reader, entry, 0);
      if (page !== null) yield page;
    }
    end = from;
  }
}

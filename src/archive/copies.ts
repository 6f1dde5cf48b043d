// Finds the pages of an archive that have a record, byte for byte: upstream shows the same one again
// and again, and every answer is held whole, so one that is to be erased may stand in many pages.

import { uidBytes } from '../contracts/spool.ts';
import type { PageEntry } from './entries.ts';
import { placesOf } from './erasing.ts';
import type { ErasureRequest } from './erasure-request.ts';
import { erasuresIn, readVersion, versionsOf } from './erasures.ts';
import { isPruned, loggedEntries, sizeOf } from './logged.ts';
import type { ArchiveReader } from './reader.ts';
import { type ArchivedPage, readPage } from './segments.ts';

/** A page that has it: its entry, where its body is now, and the uids of the events made of it there. */
export type Copy = ErasureRequest['pages'][number] & {
  readonly entry: PageEntry;
  readonly uids: readonly string[];
};

/** The pages that have a record. Throws a SyntaxError where the archive is damaged. */
export async function copiesOf(
  reader: ArchiveReader,
  record: { readonly bytes: Uint8Array; readonly sha256: string },
): Promise<readonly Copy[]> {
  const size = await sizeOf(reader);
  const erasures = await erasuresIn(reader);
  const found: Copy[] = [];
  for await (const { index, entry } of loggedEntries(reader, size)) {
    if (entry.t !== 'page' || entry.records === 0) continue;
    if (await isPruned(reader, entry.body.segment)) continue;
    const copy = await readVersion(reader, versionsOf(entry, erasures), (version, range) => {
      const page = readPage(version.entry, range);
      // Most pages show at once that they have it not.
      const places = page.body.includes(record.bytes) ? placesIn(page.body, entry, record) : [];
      if (places.length === 0) return null;
      return { index, body: version.entry.body, entry, uids: uidsAt(places, page) };
    });
    if (copy !== null) found.push(copy);
  }
  return found;
}

function placesIn(body: Buffer, { items }: PageEntry, { sha256 }: { readonly sha256: string }) {
  try {
    return placesOf(body, items, sha256);
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}

/** The uids of those records that became events. */
function uidsAt(places: readonly number[], { kept, uids }: ArchivedPage): readonly string[] {
  return places
    .map((place) => kept?.indexOf(place) ?? place)
    .filter((i) => i >= 0)
    .map((i) => Buffer.from(uids).toString('hex', i * uidBytes, (i + 1) * uidBytes));
}

// Finds the pages of an archive that have a record, byte for byte: upstream shows the same one again
// and again, and every answer is held whole, so one that is to be erased may stand in many pages.

import type { PageEntry } from './entries.ts';
import { type ErasureRequest, placesOf } from './erasing.ts';
import { erasuresIn, readVersion, versionsOf } from './erasures.ts';
import { isPruned, loggedEntries, newestCheckpoint } from './logged.ts';
import type { ArchiveReader } from './reader.ts';
import { readPage } from './segments.ts';

/** A page that has it: its entry, and where its body is now. */
export type Copy = ErasureRequest['pages'][number] & { readonly entry: PageEntry };

/** The pages that have a record. Throws a SyntaxError where the archive is damaged. */
export async function copiesOf(
  reader: ArchiveReader,
  record: { readonly bytes: Uint8Array; readonly sha256: string },
): Promise<readonly Copy[]> {
  const { size } = await newestCheckpoint(reader);
  const erasures = await erasuresIn(reader);
  const found: Copy[] = [];
  for await (const { index, entry } of loggedEntries(reader, size)) {
    if (entry.t !== 'page' || entry.records === 0) continue;
    if (await isPruned(reader, entry.body.segment)) continue;
    const copy = await readVersion(reader, versionsOf(entry, erasures), (version, range) => {
      const { body } = readPage(version.entry, range);
      // Most pages show at once that they have it not.
      const has = body.includes(record.bytes) && isRecordOf(body, entry, record.sha256);
      return has ? { index, body: version.entry.body, entry } : null;
    });
    if (copy !== null) found.push(copy);
  }
  return found;
}

function isRecordOf(body: Buffer, { items }: PageEntry, sha256: string): boolean {
  try {
    return placesOf(body, items, sha256).length > 0;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

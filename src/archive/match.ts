// Finds a record in an archive by its exact bytes, for an auditor who has the record and not its uid. What must stay
// true: a record matches by the SHA-256 of its bytes only, and a page that may have it and cannot be read is an error
// and not a "no".

import { hash } from 'node:crypto';
import { placesOf } from './copies.ts';
import { erasuresIn, type PageVersion, readVersion, versionsOf } from './erasures.ts';
import { isPruned, loggedEntries, sizeOf } from './logged.ts';
import type { RecordPosition } from './prove.ts';
import type { ArchiveReader } from './reader.ts';
import { type ArchivedPage, readPage } from './segments.ts';

/**
 * The first page with this record, also where it was erased since; null where no page has it, pruned pages aside. Throws
 * a SyntaxError, also where a page that may have it cannot be read.
 */
export async function findMatch(
  reader: ArchiveReader,
  record: Uint8Array,
): Promise<RecordPosition | null> {
  const sha256 = hash('sha256', record, 'hex');
  const erasures = await erasuresIn(reader);
  let unread: string | null = null;
  for await (const { index, bytes, entry } of loggedEntries(reader, await sizeOf(reader))) {
    if (entry.t !== 'page' || entry.kept === 0 || entry.body.bytes < record.length) continue;
    const page = await pageOf(reader, versionsOf(entry, erasures));
    if (page === null) {
      if (!(await isPruned(reader, entry.body.segment))) unread ??= entry.body.segment;
      continue;
    }
    const place = placeIn(page, { bytes: record, sha256 });
    if (place !== null) return { index, bytes, page, place };
  }
  if (unread === null) return null;
  throw new SyntaxError(`no page that is whole has it, and ${unread} is missing or damaged`);
}

type Page = RecordPosition['page'];

/** Null where the page is not there, or not as its entry has it. */
async function pageOf(
  reader: ArchiveReader,
  versions: readonly PageVersion[],
): Promise<Page | null> {
  try {
    return await readVersion(reader, versions, (version, range) => ({
      ...version,
      ...readPage(version.entry, range),
    }));
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** The place of the record among the page's kept ones; null: it is not one of them. */
function placeIn(
  { body, kept, erased, entry }: Page & ArchivedPage,
  { bytes, sha256 }: { readonly bytes: Uint8Array; readonly sha256: string },
): number | null {
  const gone = [...erased].filter(([, one]) => one === sha256).map(([place]) => place);
  // Most pages show at once that they do not have it.
  const there = body.includes(bytes) ? placesOf(body, entry.items, sha256) : [];
  for (const place of [...there, ...gone]) {
    const i = kept === null ? place : kept.indexOf(place);
    if (i >= 0) return i;
  }
  return null;
}

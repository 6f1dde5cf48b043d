// Finds a record in an archive by its exact bytes, for an auditor who has the record but not its uid. Invariants: a
// record matches only by the SHA-256 of its bytes; a page that may contain it and cannot be read is an error, not a
// "no".

import { hash } from 'node:crypto';
import { placesOf } from './copies.ts';
import { erasuresIn, type PageVersion, readVersion, versionsOf } from './erasures.ts';
import { isPruned, loggedEntries, sizeOf } from './logged.ts';
import type { RecordPosition } from './prove.ts';
import type { ArchiveReader } from './reader.ts';
import { type ArchivedPage, readPage } from './segments.ts';

/**
 * The first page with this record, even if it was erased later; null if no page has it, except pruned pages. Throws a
 * SyntaxError, also if a page that may have it cannot be read.
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

/** Null: the page does not exist, or does not match its entry. */
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

/** The index of the record among the page's kept ones; null: it is not one of them. */
function placeIn(
  { body, kept, erased, entry }: Page & ArchivedPage,
  { bytes, sha256 }: { readonly bytes: Uint8Array; readonly sha256: string },
): number | null {
  const gone = [...erased].filter(([, one]) => one === sha256).map(([place]) => place);
  // A cheap test excludes most pages.
  const there = body.includes(bytes) ? placesOf(body, entry.items, sha256) : [];
  for (const place of [...there, ...gone]) {
    const i = kept === null ? place : kept.indexOf(place);
    if (i >= 0) return i;
  }
  return null;
}

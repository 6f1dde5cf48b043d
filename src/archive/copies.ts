// Finds the pages of an archive that contain a record, byte for byte. Upstream shows the same record repeatedly, and
// every response is stored completely, so a record to erase may be in many pages.

import { hash } from 'node:crypto';
import { uidBytes } from '../contracts/index.ts';
import { cutRecords } from '../tools/index.ts';
import type { PageEntry } from './entries.ts';
import { erasuresIn, readVersion, versionsOf } from './erasures.ts';
import { entriesOf, isPruned, loggedEntries, sizeOf } from './logged.ts';
import { findRecord } from './prove.ts';
import type { ArchiveReader } from './reader.ts';
import { keptRecords } from './records.ts';
import { type ArchivedPage, readPage } from './segments.ts';

/** A page with the record: its entry, the present location of its body, and the uids of its events. */
export interface Copy {
  readonly index: number;
  readonly entry: PageEntry;
  readonly body: PageEntry['body'];
  readonly uids: readonly string[];
}

/** A record; its bytes are null if it is erased. */
export interface ArchivedRecord {
  /** Index of the entry of a page with its uid. */
  readonly index: number;
  /** When that page was read, RFC 3339. */
  readonly at: string;
  readonly bytes: Uint8Array | null;
  /** In hex. */
  readonly sha256: string;
}

/** Pages read in a time span, its end excluded; epoch milliseconds. */
export interface SearchSpan {
  readonly from: number;
  readonly to: number;
}

/** All pages. */
export const everySpan: SearchSpan = {
  from: Number.NEGATIVE_INFINITY,
  to: Number.POSITIVE_INFINITY,
};

/** The record of an event; null: no record has this uid. Throws a SyntaxError if the archive is damaged. */
export async function recordOf(
  reader: ArchiveReader,
  uid: string,
  span: SearchSpan = everySpan,
): Promise<ArchivedRecord | null> {
  const found = await findRecord(reader, uid, span);
  if (found === null) return null;
  const { page, place, index } = found;
  const at = page.entry.fetched_at;
  const erased = page.erased.get(page.kept?.[place] ?? place);
  if (erased !== undefined) return { index, at, bytes: null, sha256: erased };
  const bytes = keptRecords({ ...page, items: page.entry.items })[place];
  if (bytes === undefined) throw new SyntaxError('the page has fewer records than uids');
  return { index, at, bytes, sha256: hash('sha256', bytes, 'hex') };
}

/**
 * The pages that contain a record; `bytes`: null if they are not known, as after an erasure. Throws a SyntaxError if
 * the archive is damaged.
 */
export async function copiesOf(
  reader: ArchiveReader,
  record: Pick<ArchivedRecord, 'bytes' | 'sha256'>,
  { from, to }: SearchSpan = everySpan,
): Promise<readonly Copy[]> {
  const size = await sizeOf(reader);
  const erasures = await erasuresIn(reader);
  const found: Copy[] = [];
  for await (const { index, entry } of loggedEntries(reader, size)) {
    if (entry.t !== 'page' || entry.records === 0) continue;
    const paths = await pathsOf(reader, entry);
    const readAt = Date.parse(entry.fetched_at);
    if (readAt < from || readAt >= to) continue;
    if (await isPruned(reader, entry.body.segment)) continue;
    const copy = await readVersion(reader, versionsOf(entry, erasures), (version, range) => {
      const page = readPage(version.entry, range);
      // A cheap test excludes most pages.
      const isPossible = record.bytes === null || page.body.includes(record.bytes);
      const places = isPossible ? placesIn(page.body, paths, record) : [];
      if (places.length === 0) return null;
      return { index, body: version.entry.body, entry, uids: uidsAt(places, page) };
    });
    if (copy !== null) found.push(copy);
  }
  return found;
}

/** Indices of the body's records with this hash. */
export function placesOf(body: Uint8Array, items: string, record: string): readonly number[] {
  const { starts, ends, length } = cutRecords(body, items);
  return Array.from({ length }, (_, i) => i).filter(
    (i) => hash('sha256', body.subarray(starts[i], ends[i]), 'hex') === record,
  );
}

function placesIn(body: Buffer, paths: readonly string[], { sha256 }: { readonly sha256: string }) {
  try {
    return placesOf(body, pathIn(body, paths), sha256);
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}

const knownPaths = new WeakMap<ArchiveReader, Promise<ReadonlyMap<string, ReadonlySet<string>>>>();

/**
 * The possible paths of a page's records. The entry of a response without new records names none, so they are those of
 * the stream's other responses.
 */
export async function pathsOf(
  reader: ArchiveReader,
  { kind, items, stream }: Pick<PageEntry, 'kind' | 'items' | 'stream'>,
): Promise<readonly string[]> {
  if (kind !== 'answer') return [items];
  const known = knownPaths.getOrInsertComputed(reader, () => pathsIn(reader));
  return [...((await known).get(stream) ?? [])];
}

async function pathsIn(reader: ArchiveReader) {
  const paths = new Map<string, Set<string>>();
  for await (const { entry } of entriesOf(reader, ['page'])) {
    if (entry.kind === 'answer' || entry.answer === undefined) continue;
    paths.set(entry.stream, (paths.get(entry.stream) ?? new Set()).add(entry.items));
  }
  return paths;
}

/** The path of these that leads to records in the body; the first if none does. Throws a SyntaxError if it is not JSON. */
export function pathIn(body: Uint8Array, paths: readonly string[]): string {
  return paths.find((path) => cutRecords(body, path).length > 0) ?? paths[0] ?? '';
}

/** The uids of those records that became events. */
function uidsAt(places: readonly number[], { kept, uids }: ArchivedPage): readonly string[] {
  return places
    .map((place) => kept?.indexOf(place) ?? place)
    .filter((i) => i >= 0)
    .map((i) => Buffer.from(uids).toString('hex', i * uidBytes, (i + 1) * uidBytes));
}

// Reads the erasures of pages and lake objects: `erased` entries name the records and the page's new location,
// `lake_erased` entries the object's new content. The entry is under a signed checkpoint before the segment is
// rewritten, so a segment may match any of its entries, or its first one. Invariants: a page is returned only in a
// version whose body matches the entry's hash; erased records are distinguished from existing ones.

import type { EntryOf, ErasedEntry, PageEntry } from './entries.ts';
import { parseEntry } from './entries.ts';
import { sizeOf } from './logged.ts';
import type { ArchiveReader } from './reader.ts';
import { pageRange } from './segments.ts';
import { tilesBetween } from './tiles.ts';
import { splitBundle } from './verify/split-bundle.ts';

/** Entries of erasures, in the order of the log. */
export interface Erasures {
  /** By segment. */
  readonly pages: ReadonlyMap<string, readonly ErasedEntry[]>;
  /** By object. */
  readonly lake: ReadonlyMap<string, readonly EntryOf<'lake_erased'>[]>;
}

/** The records erased from a page: their hashes by index among the body's records. */
export type ErasedRecords = ReadonlyMap<number, string>;

/** A page as one of its entries describes it. */
export interface PageVersion {
  /** The page's entry, with the body location of this version. */
  readonly entry: PageEntry;
  readonly erased: ErasedRecords;
}

const versionsMax = 4;
const known = new WeakMap<ArchiveReader, Promise<Erasures>>();

/** The erasures of an archive, cached per reader. */
export async function erasuresIn(reader: ArchiveReader): Promise<Erasures> {
  const found = known.getOrInsertComputed(reader, () =>
    sizeOf(reader).then((size) => findErasures(reader, size)),
  );
  return await found;
}

const openings = ['{"t":"erased",', '{"t":"lake_erased",'].map((text) => Buffer.from(text));

/** The erasures in the log's first `size` entries; damaged entries are skipped. */
export async function findErasures(reader: ArchiveReader, size: number): Promise<Erasures> {
  const pages = new Map<string, ErasedEntry[]>();
  const lake = new Map<string, EntryOf<'lake_erased'>[]>();
  for (const { index, width } of tilesBetween('entries', 0, size)) {
    const bundle = await reader.bundle(index, width);
    if (bundle === null) continue;
    for (const { bytes } of splitBundle(bundle.bytes, []).slice(0, width)) {
      const entry = parsed(bytes);
      if (entry?.t === 'erased') add(pages, entry.page.segment, entry);
      else if (entry?.t === 'lake_erased') add(lake, entry.object, entry);
    }
  }
  return { pages, lake };
}

function add<T>(all: Map<string, T[]>, name: string, entry: T): void {
  const own = all.get(name) ?? [];
  own.push(entry);
  all.set(name, own);
}

/** Null for entries of other kinds, and damaged ones. */
function parsed(bytes: Buffer) {
  if (!openings.some((one) => bytes.subarray(0, one.length).equals(one))) return null;
  try {
    return parseEntry(bytes);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/**
 * The uids of the rows erased from a lake object that has this hash now, over all entries from its own entry to this
 * hash; null: no chain of entries leads there. The hash of zero bytes belongs to an object without remaining rows.
 */
export function erasedRows(
  { object, sha256 }: EntryOf<'lake'>,
  now: string,
  { lake }: Erasures,
): readonly string[] | null {
  const uids: string[] = [];
  let at = now;
  for (const entry of (lake.get(object) ?? []).toReversed()) {
    if (entry.sha256 !== at) continue;
    uids.push(...entry.uids);
    at = entry.from;
  }
  return at === sha256 ? uids : null;
}

/**
 * The possible versions of a page in its segment, newest first, the archived one last. An entered erasure may not have
 * been carried out, so a few versions are tried; the limit protects against a malformed archive.
 */
export function versionsOf(entry: PageEntry, erasures: Erasures): readonly PageVersion[] {
  const { segment, at } = entry.body;
  const own = (erasures.pages.get(segment) ?? []).filter(({ page }) => page.at === at);
  const versions: PageVersion[] = [{ entry, erased: new Map() }];
  const erased = new Map<number, string>();
  for (const [i, { body, records }] of own.entries()) {
    for (const { place, sha256 } of records) erased.set(place, sha256);
    if (i < own.length - versionsMax) continue;
    const version = { entry: { ...entry, body: { ...body, segment } }, erased: new Map(erased) };
    versions.unshift(version);
  }
  return versions;
}

/** The result of `read` for the newest version in the segment. Throws the error of `read` for the archived version. */
export async function readVersion<T>(
  reader: ArchiveReader,
  versions: readonly PageVersion[],
  read: (version: PageVersion, range: Uint8Array) => T,
): Promise<T> {
  for (const [i, version] of versions.entries()) {
    const { entry } = version;
    const range = await reader.named('segment', entry.body.segment, pageRange(entry));
    try {
      return read(version, range ?? new Uint8Array(0));
    } catch (error) {
      if (!(error instanceof SyntaxError) || i === versions.length - 1) throw error;
    }
  }
  throw new SyntaxError('there is no such page');
}

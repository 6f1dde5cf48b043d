// What was erased from pages and from the lake, read back: entries say which records, and where the
// page stands since (entries.ts, `erased`), and of an object of the lake how it is since (`lake_erased`). Such an entry is under a signed checkpoint before the segment is written
// anew, so a segment may be as any of them has it, or as it was at first. What must stay true: a page
// is given only as one of these, its body's hash that of the entry; and erased records are told from
// those that are there.

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

/** The records that are erased from a page: their hashes by their place among the body's records. */
export type ErasedRecords = ReadonlyMap<number, string>;

/** A page as one of its entries has it. */
export interface PageVersion {
  /** That of the page, its body where this version has it. */
  readonly entry: PageEntry;
  readonly erased: ErasedRecords;
}

const versionsMax = 4;
const known = new WeakMap<ArchiveReader, Promise<Erasures>>();

/** Those of an archive as it is read, found once. */
export async function erasuresIn(reader: ArchiveReader): Promise<Erasures> {
  const found = known.get(reader) ?? sizeOf(reader).then((size) => findErasures(reader, size));
  known.set(reader, found);
  return await found;
}

const openings = ['{"t":"erased",', '{"t":"lake_erased",'].map((text) => Buffer.from(text));

/** All of the log's first `size` entries; damaged ones are passed over. */
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
 * The uids of the rows that were erased from an object of the lake which has this hash now, all by
 * all entries that led there from what its own entry has; null: none do. That of no bytes at all is
 * of an object that had nothing left.
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
 * How a page may stand in its segment, the newest first and as it was archived last. One that was
 * entered may not be carried out; so a few are tried, and no more of an archive that says nonsense.
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

/**
 * What `read` makes of the newest version that is in the segment. Throws what it throws of the page
 * as it was archived.
 */
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

// Marks the uids of an archive's events in a table, for a comparison with a receiver's uids. Uids come from the frames
// after the bodies (segments.ts). Invariants: each entry leads to the root of a checkpoint that the caller trusts, and
// each frame has the hash of its entry, so a changed store is a SyntaxError and never a difference; events whose uids
// are deleted (pruned) are counted, never skipped silently.

import { uidBytes } from '../contracts/index.ts';
import type { PageEntry } from './entries.ts';
import { type Erasures, erasuresIn } from './erasures.ts';
import { isPruned, loggedEntries } from './logged.ts';
import type { ProvenReader } from './proven-reader.ts';
import { type KeptRecords, keptUids } from './segments.ts';
import type { UidTable } from './uid-table.ts';

/** Flags of a uid: where it was found. */
export const listedFlag = 1;
export const archived = 2;
/** Its record is erased from the archive. */
export const erased = 4;

/** The compared events. */
export interface ReconcileWishes {
  /** Events read in this span, its end excluded; epoch milliseconds; infinite: no bound. */
  readonly from: number;
  readonly to: number;
  /** Default: all streams. */
  readonly stream?: string;
}

/** The archive's part of the result. */
export interface ArchivedUids {
  /** Events of pruned pages, whose uids are no longer known. */
  readonly pruned: number;
  /** The streams of the archive, including those not compared. */
  readonly streams: ReadonlySet<string>;
}

/** Limit of concurrent page reads. */
const atOnce = 32;

/** Marks the uids. Throws a SyntaxError if the archive is damaged, and TooManyUids. */
export async function markArchived(
  reader: ProvenReader,
  { from, to, stream }: ReconcileWishes,
  table: UidTable,
): Promise<ArchivedUids> {
  const erasures = await erasuresIn(reader);
  const streams = new Set<string>();
  let pruned = 0;
  let batch: PageEntry[] = [];
  const flush = async () => {
    const pages = await Promise.all(batch.map((entry) => uidsBehind(reader, entry)));
    for (const [i, entry] of batch.entries()) {
      const page = pages[i] ?? null;
      if (page === null) pruned += entry.kept;
      else mark(table, page, erasedPlaces(entry, erasures));
    }
    batch = [];
  };
  for await (const { entry } of loggedEntries(reader, reader.head.size)) {
    if (entry.t !== 'page') continue;
    streams.add(entry.stream);
    const at = Date.parse(entry.fetched_at);
    const isCompared = at >= from && at < to && (stream ?? entry.stream) === entry.stream;
    if (!isCompared || entry.kept === 0) continue;
    batch.push(entry);
    if (batch.length >= atOnce) await flush();
  }
  await flush();
  return { pruned, streams };
}

/** Null: the page is pruned, and its uids are deleted. */
async function uidsBehind(reader: ProvenReader, entry: PageEntry): Promise<KeptRecords | null> {
  try {
    return await keptUids(reader, entry);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const { segment } = entry.body;
    if (await isPruned(reader, segment)) return null;
    const what = `${segment}: page ${entry.seq} of ${entry.stream}: ${error.message}`;
    throw new SyntaxError(what, { cause: error });
  }
}

function mark(table: UidTable, { uids, kept }: KeptRecords, gone: ReadonlySet<number>): void {
  for (let i = 0; i * uidBytes < uids.length; i += 1) {
    const isErased = gone.size > 0 && gone.has(kept?.[i] ?? i);
    table.mark(uids, i * uidBytes, isErased ? archived | erased : archived);
  }
}

/** Indices of the page's erased records among those of the body. */
function erasedPlaces(
  { body: { segment, at } }: PageEntry,
  { pages }: Erasures,
): ReadonlySet<number> {
  const places = new Set<number>();
  for (const { page, records } of pages.get(segment) ?? []) {
    if (page.at === at) for (const { place } of records) places.add(place);
  }
  return places;
}

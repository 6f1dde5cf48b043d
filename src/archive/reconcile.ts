// Marks the uids of an archive's events in a table, for a comparison with the uids that a receiver has. Uids come from
// the frames behind the bodies (segments.ts). What must stay true: each entry leads to the root of a checkpoint that
// the caller trusts, and each frame has the hash that its entry names, so a store that was changed is a SyntaxError and
// never a difference; events whose uids are gone (pruned) are counted and never passed over in silence.

import { uidBytes } from '../contracts/spool.ts';
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

/** Which events are compared. */
export interface ReconcileWishes {
  /** Those that were read from then on and before then, epoch milliseconds; infinite: no bound. */
  readonly from: number;
  readonly to: number;
  /** Left out: those of all streams. */
  readonly stream?: string;
}

/** What an archive has of them. */
export interface ArchivedUids {
  /** Events of pages that are pruned: their uids are not known any more. */
  readonly pruned: number;
  /** The streams of the archive, also those that are not compared. */
  readonly streams: ReadonlySet<string>;
}

/** Pages that are read at the same time. */
const atOnce = 32;

/** Marks them. Throws a SyntaxError where the archive is damaged, and TooManyUids. */
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

/** Null where the page is pruned and its uids are gone. */
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

/** Places of the page's erased records among those of the body. */
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

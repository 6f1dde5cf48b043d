// The entries of the log: each a line of JSON of at most 65,535 bytes, its field `t` says what it
// tells. An entry's bytes are the truth; nobody writes them again from what was parsed. An entry
// about a stream names the stream's entry before it by its leaf hash, so that each stream is a
// chain of its own within the tree, and one that is left out shows. What must stay true: a cursor
// stands here as a keyed hash only, since it is a credential of a kind.

import { z } from 'zod';
import { invariant } from '../contracts/errors.ts';
import type { PageContext } from '../contracts/event.ts';
import type { Json } from '../contracts/json.ts';
import { comparisonShape } from './comparison.ts';
import { successionShape } from './succession.ts';
import { entryBytesMax } from './tiles.ts';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const time = z.iso.datetime();
const count = z.int().min(0);
/** Who has signed the request that the entry carries out: a vkey, and the SHA-256 of the signed text. Absent: it was unsigned. */
const authority = { by: z.string().optional(), request: sha256.optional() };

/**
 * A page as it was held: an answer of upstream with or without new records, a delivery, or records
 * that sluice made itself. Times are RFC 3339, hashes SHA-256 in lower-case hex.
 */
const pageEntry = z.object({
  t: z.literal('page'),
  stream: z.string(),
  /** Counts the stream's pages in this archive from 0, without gaps. */
  seq: count,
  /** Leaf hash of the stream's entry before this one; null for the first. */
  prev: sha256.nullable(),
  /**
   * Only in a stream's first entry: where the stream was before, by the writer's state. An earlier log has it up to,
   * not including, page `seq`, whose page before has the leaf hash `prev`. `unknown`: the state does not know. Absent
   * in older versions.
   */
  continues: z
    .union([
      z.enum(['beginning', 'unknown']),
      z.object({ archive: sha256, origin: z.string(), seq: count, prev: sha256 }),
    ])
    .optional(),
  /** Epoch of the spool and number of the event after this page: how far the archive has come. */
  place: z.tuple([count, count]),
  source: z.string(),
  kind: z.string(),
  company: z.string().optional(),
  parent: z.string().optional(),
  is_update: z.literal(true).optional(),
  delivery: z
    .object({
      id: z.string().nullable(),
      event: z.string().nullable(),
      number: z.int().positive().exactOptional(),
    })
    .optional(),
  fetched_at: time,
  /** What the answer was to, and what came with it; left out where the page is no answer. */
  answer: z
    .looseObject({
      status: z.int(),
      /** Path and query as they were asked for, without what names a place in a list. */
      path: z.string(),
      /** Keyed hash of the cursor asked with; null: without one. */
      asked: sha256.nullable(),
      /** Keyed hash of the next cursor; null: there is no more. Left out: it does not say. */
      next: sha256.nullable().optional(),
      /** It was requested from an earlier place again, for records that came late. */
      rewind: z.literal(true).optional(),
      request_id: z.string().optional(),
      /** Upstream's `Date`, as it was sent. */
      date: z.string().optional(),
    })
    .optional(),
  /** Codes of the conditions that the page's records tell of, such as `source.gap`. */
  conditions: z.array(z.string()).optional(),
  /** Records that the answer lists, and how many of them were new and went out as events. */
  records: count,
  kept: count,
  /** Earliest and latest time of the page's events, where it was known. */
  oldest: time.optional(),
  newest: time.optional(),
  /** Dotted path of the records within the body. */
  items: z.string(),
  /** The body as upstream sent it: a zstd frame `length` long, `at` that byte of the segment. */
  body: z.object({
    sha256,
    bytes: count,
    segment: z.string(),
    at: count,
    length: count,
  }),
  /** What the skippable frame behind it holds (segments.ts). */
  uids: z.object({ sha256, bytes: count }),
  /** Root of the Merkle tree over the SHA-256 of each kept record's exact bytes, in order. */
  events: z.object({ root: sha256, count }),
});

/** A process begins to write. */
const startEntry = z.object({
  t: z.literal('start'),
  at: time,
  /** Of `archive.json`. */
  archive: sha256,
  /** The spool whose numbers `place` means from here on. */
  spool: z.string(),
  version: z.string(),
  /** Whether requests have to be signed, and by which keys beside the archive's; absent in older versions. */
  requests: z.enum(['accepted', 'signed']).optional(),
  operators: z.array(z.string()).optional(),
  /** Only in the log of one shard of several: the shards that have work, and so a log each. Absent in older versions. */
  shards: z.array(count).optional(),
  /** The writer knew nothing of the archive, or less than it has: the store's checkpoint was taken for the newest. */
  resumed_from: z.literal('store').optional(),
});

/** A process ends as it should. */
const stopEntry = z.object({ t: z.literal('stop'), at: time });

/** The config of the process that writes, as a hash of it without its secrets. */
const configEntry = z.object({ t: z.literal('config'), at: time, sha256 });

/** Checkpoints are signed by this key from here on; the one that covers this also by the one before. */
const keyEntry = z.object({ t: z.literal('key'), at: time, vkey: z.string() });

/** The checkpoint before this entry, and where it is kept. */
const checkpointEntry = z.object({
  t: z.literal('checkpoint'),
  at: time,
  size: count,
  root: sha256,
  object: z.string(),
  sha256,
  /** Signed requests that were carried out since the entry of this kind before. */
  done: z.array(sha256).optional(),
  /** Trees that the logs of other shards had signed by then, as far as they have grown since they were named last. */
  siblings: z.array(z.object({ shard: count, size: count, root: sha256 })).optional(),
});

/** What somebody outside has said of a checkpoint before this entry, and where it is kept. */
const anchorEntry = z.object({
  t: z.literal('anchor'),
  /** Of the checkpoint. */
  at: time,
  size: count,
  object: z.string(),
  sha256,
});

/** A segment; the entries of its pages follow. */
const segmentEntry = z.object({
  t: z.literal('segment'),
  object: z.string(),
  bytes: count,
  sha256,
  pages: count,
});

/** A hold as it is from here on (holds.ts); a later entry of the same id takes its place. */
const holdEntry = z.object({
  t: z.literal('hold'),
  at: time,
  id: z.string(),
  from: time.nullable(),
  to: time.nullable(),
  reason: z.string(),
  released_at: time.nullable(),
  ...authority,
});

/**
 * A segment, or a cut of the lake with what it lists, that goes from here on, and when its pages
 * were read, from the first to the last.
 */
const prunedEntry = z.object({
  t: z.literal('pruned'),
  at: time,
  object: z.string(),
  pages: count,
  first: time,
  last: time,
  why: z.enum(['retention', 'asked']),
  ...authority,
});

/** A cut of the lake (lake-cuts.ts); the entries of its objects follow. */
const lakeCutEntry = z.object({
  t: z.literal('lake_cut'),
  at: time,
  object: z.string(),
  bytes: count,
  sha256,
  objects: count,
  /** How many events its objects have, and the numbers that these had: from, up to but not including. */
  events: count,
  numbers: z.tuple([count, count]),
  /**
   * Indexes of the first and last page whose events have such numbers; null: not all of its events
   * are of pages in that place, as when they were sent once more.
   */
  entries: z.tuple([count, count]).nullable(),
  /** Events of those pages that it does not have: the lake had them by then, or not yet begun. */
  absent: count,
  /** When the first and the last of the pages were read. */
  first: time,
  last: time,
  /** Who has signed its file, which has the hashes of its objects as they were made; absent in older versions. */
  by: z.string().optional(),
});

/** An object of the cut before. */
const lakeEntry = z.object({
  t: z.literal('lake'),
  object: z.string(),
  bytes: count,
  sha256,
  rows: count,
  /** Times of its first and last event, epoch milliseconds. */
  first: z.int(),
  last: z.int(),
});

/**
 * Records that are erased from a page from here on: in the body `null` stands in their place, their
 * hashes stand here. The page's frames move to the end of their segment, so that all others stay
 * where they are. What an earlier entry has erased from the same page stays erased.
 */
const erasedEntry = z.object({
  t: z.literal('erased'),
  at: time,
  /** The page: the index of its entry, and where its own entry has its body. */
  page: z.object({ index: count, segment: z.string(), at: count, fetched_at: time }),
  /** By their place among the body's records, with the SHA-256 of their exact bytes. */
  records: z.array(z.object({ place: count, sha256 })),
  reason: z.string(),
  /** The rest of the body was made from the proven body; absent in entries of older versions, which did not prove it. */
  rest: z.literal('proven').optional(),
  ...authority,
  body: pageEntry.shape.body,
  /** The whole segment as it is with this, and with what other entries of this checkpoint erase. */
  segment: z.object({ bytes: count, sha256 }),
});

/**
 * Events that are erased from an object of the lake from here on: it is written anew without them, or
 * goes where it has no others. What the `erased` entries of their records say of reasons stands here, too.
 */
const lakeErasedEntry = z.object({
  t: z.literal('lake_erased'),
  at: time,
  object: z.string(),
  /** The object that this was made from: as its own entry has it, or an earlier one of these. */
  from: sha256,
  /** The uids of the rows that are not in it any more, one for each. */
  uids: z.array(sha256),
  reason: z.string(),
  /** The object as it is with this; without rows it is gone. */
  bytes: count,
  sha256,
  rows: count,
  /** When the first and the last of the pages of its cut were read. */
  first: time,
  last: time,
  ...authority,
});

/** A comparison of a stream with what upstream served then (comparison.ts), told by that page. */
const reconciledEntry = z.object({
  t: z.literal('reconciled'),
  at: time,
  stream: z.string(),
  seq: count,
  ...comparisonShape.shape,
});

/** Which source of a pair delivers from then on (succession.ts), reported by that page. */
const successionEntry = z.object({
  t: z.literal('succession'),
  at: time,
  stream: z.string(),
  seq: count,
  ...successionShape.shape,
  /** The last page of each stream of the pair before this entry; null: it has none here. */
  streams: z.array(
    z.object({ side: z.enum(['old', 'new']), stream: z.string(), seq: count.nullable() }),
  ),
});

/** A manifest of completeness (manifests.ts): what that day of the stream comes to by the entries before. */
const manifestEntry = z.object({
  t: z.literal('manifest'),
  at: time,
  stream: z.string(),
  /** YYYY-MM-DD, UTC. */
  day: z.iso.date(),
  object: z.string(),
  bytes: count,
  sha256,
});

/** The shape of any entry. */
export const anyEntry = z.discriminatedUnion('t', [
  pageEntry,
  startEntry,
  stopEntry,
  configEntry,
  keyEntry,
  checkpointEntry,
  anchorEntry,
  segmentEntry,
  holdEntry,
  prunedEntry,
  lakeCutEntry,
  lakeEntry,
  erasedEntry,
  lakeErasedEntry,
  reconciledEntry,
  successionEntry,
  manifestEntry,
]);

/** As entries of any version are. */
const someEntry = z.looseObject({ t: z.string().regex(/^[a-z_]{1,32}$/) });

/** An entry of the log. */
export type Entry = z.output<typeof anyEntry>;
/** An entry of one kind. */
export type EntryOf<T extends Entry['t']> = Extract<Entry, { readonly t: T }>;
/** An entry that tells of a page. */
export type PageEntry = z.output<typeof pageEntry>;

/** An entry that tells of records erased from a page. */
export type ErasedEntry = z.output<typeof erasedEntry>;

/** The entry's bytes. A longer one than the log can hold is a fault of sluice. */
export function encodeEntry(entry: Entry): Buffer {
  const bytes = Buffer.from(JSON.stringify(entry));
  invariant(bytes.length <= entryBytesMax, `an entry is at most ${entryBytesMax} bytes long`);
  return bytes;
}

/** An entry as entries are, which says what this version does not know. */
export class NewerEntryError extends SyntaxError {
  override readonly name = 'NewerEntryError';
}

/**
 * Parses an entry. Throws a SyntaxError that says what is wrong with it, also where the same bytes
 * could say something else to another reader: a key that stands there twice, text that is no UTF-8.
 */
export function parseEntry(bytes: Uint8Array): Entry {
  const text = Buffer.from(bytes).toString('utf8');
  const value = JSON.parse(text) as Json;
  if (Buffer.compare(Buffer.from(JSON.stringify(value)), bytes) !== 0) {
    throw new SyntaxError('not an entry: it is not written as its JSON says');
  }
  const parsed = anyEntry.safeParse(value);
  if (parsed.success) return parsed.data;
  const { data } = someEntry.safeParse(value);
  if (data === undefined) throw new SyntaxError('not an entry: it has no type in t');
  const place = parsed.error.issues[0]?.path.join('.') || 't';
  throw new NewerEntryError(
    `an entry of the kind ${data.t} has a type that this version does not know (${place}): a newer version of sluice has written it`,
  );
}

/** What was known of the page's records when they were held. */
export function contextOf(entry: PageEntry): PageContext {
  const { company, parent, is_update, delivery } = entry;
  return {
    source: entry.source,
    stream: entry.stream,
    kind: entry.kind as PageContext['kind'],
    ...(company === undefined ? {} : { company }),
    ...(parent === undefined ? {} : { parent }),
    ...(is_update === undefined ? {} : { isUpdate: is_update }),
    fetchedAt: Date.parse(entry.fetched_at),
    ...(delivery === undefined ? {} : { delivery }),
  };
}

// The entries of the log: each is a line of JSON of at most 65,535 bytes; its field `t` is its kind. An entry about a
// stream names the stream's previous entry by its leaf hash, so each stream is a chain within the tree, and a missing
// entry shows. Invariants: the entry's bytes are authoritative and are never re-encoded from the parsed form; a cursor
// is stored only as a keyed hash, because it is a kind of credential.

import { z } from 'zod';
import { invariant, type Json, type PageContext } from '../contracts/index.ts';
import { comparisonShape } from './comparison.ts';
import { successionShape } from './succession.ts';
import { entryBytesMax } from './tiles.ts';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const time = z.iso.datetime();
const count = z.int().min(0);
/** The signer of the request behind the entry: a vkey, and the SHA-256 of the signed text. Absent: unsigned. */
const authority = { by: z.string().optional(), request: sha256.optional() };

/**
 * A stored page: a response of upstream with or without new records, a delivery, or records made by sluice. Times are
 * RFC 3339, hashes SHA-256 in lower-case hex.
 */
const pageEntry = z.object({
  t: z.literal('page'),
  stream: z.string(),
  /** Counts the stream's pages in this archive from 0, without gaps. */
  seq: count,
  /** Leaf hash of the stream's previous entry; null for the first. */
  prev: sha256.nullable(),
  /**
   * Only in a stream's first entry: where the stream was before, by the writer's state. An earlier log has it up to,
   * not including, page `seq`, whose preceding page has the leaf hash `prev`. `unknown`: the state does not know.
   * Absent in older versions.
   */
  continues: z
    .union([
      z.enum(['beginning', 'unknown']),
      z.object({ archive: sha256, origin: z.string(), seq: count, prev: sha256 }),
    ])
    .optional(),
  /** Epoch of the spool and number of the event after this page: the archive's position. */
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
  /** The request and metadata of the response; absent if the page is no response. */
  answer: z
    .looseObject({
      status: z.int(),
      /** Requested path and query, without the parameter of the list position. */
      path: z.string(),
      /** Keyed hash of the requested cursor; null: none. */
      asked: sha256.nullable(),
      /** Keyed hash of the next cursor; null: the end. Absent: the response does not say. */
      next: sha256.nullable().optional(),
      /** A repeated request from an earlier position, for late records. */
      rewind: z.literal(true).optional(),
      request_id: z.string().optional(),
      /** Upstream's `Date` header, unchanged. */
      date: z.string().optional(),
    })
    .optional(),
  /** Codes of the conditions in the page's records, such as `source.gap`. */
  conditions: z.array(z.string()).optional(),
  /** Records in the response, and the number of new ones that became events. */
  records: count,
  kept: count,
  /** Earliest and latest time of the page's events, if known. */
  oldest: time.optional(),
  newest: time.optional(),
  /** Dotted path of the records within the body. */
  items: z.string(),
  /** The body as upstream sent it: a zstd frame of `length` bytes at byte `at` of the segment. */
  body: z.object({
    sha256,
    bytes: count,
    segment: z.string(),
    at: count,
    length: count,
  }),
  /** The content of the following skippable frame (segments.ts). */
  uids: z.object({ sha256, bytes: count }),
  /** Root of the Merkle tree over the SHA-256 of each kept record's exact bytes, in order. */
  events: z.object({ root: sha256, count }),
});

/** A process starts to write. */
const startEntry = z.object({
  t: z.literal('start'),
  at: time,
  /** Of `archive.json`. */
  archive: sha256,
  /** The spool of the numbers in `place` from here on. */
  spool: z.string(),
  version: z.string(),
  /** The sink that writes, by its name in the config; absent in older versions. */
  sink: z.string().optional(),
  /** Whether requests must be signed, and the accepted keys beside the archive's; absent in older versions. */
  requests: z.enum(['accepted', 'signed']).optional(),
  operators: z.array(z.string()).optional(),
  /** Only in the log of one shard of several: the shards with work, which have a log each. Absent in older versions. */
  shards: z.array(count).optional(),
  /** The writer's state knew less than the archive has: the store's checkpoint was accepted as the newest. */
  resumed_from: z.literal('store').optional(),
});

/** A process stops cleanly. */
const stopEntry = z.object({ t: z.literal('stop'), at: time });

/** The writer's config, as a hash without its secrets. */
const configEntry = z.object({ t: z.literal('config'), at: time, sha256 });

/** Checkpoints are signed by this key from here on; the one that covers this entry also by the previous key. */
const keyEntry = z.object({ t: z.literal('key'), at: time, vkey: z.string() });

/** The previous checkpoint, and where it is stored. */
const checkpointEntry = z.object({
  t: z.literal('checkpoint'),
  at: time,
  size: count,
  root: sha256,
  object: z.string(),
  sha256,
  /** Signed requests carried out since the previous entry of this kind. */
  done: z.array(sha256).optional(),
  /** Trees signed by the logs of other shards, if they have grown since they were last named. */
  siblings: z.array(z.object({ shard: count, size: count, root: sha256 })).optional(),
});

/** An external proof for an earlier checkpoint, and where it is stored. */
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

/** A hold from here on (holds.ts); a later entry with the same id replaces it. */
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
 * A segment, or a cut of the lake with its objects, that is deleted from here on; with the reading times of its first
 * and last page.
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
  /** Number of events in its objects, and the range of their numbers, its end excluded. */
  events: count,
  numbers: z.tuple([count, count]),
  /**
   * Indices of the first and last page whose events have these numbers; null: some events are of other pages, as after
   * a repeated delivery.
   */
  entries: z.tuple([count, count]).nullable(),
  /** Events of those pages that are not in the cut: the lake had them already, or had not begun. */
  absent: count,
  /** Reading times of the first and the last page. */
  first: time,
  last: time,
  /** The signer of its file, which has the hashes of its objects; absent in older versions. */
  by: z.string().optional(),
});

/** An object of the preceding cut. */
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
 * Records that are erased from a page from here on: `null` replaces them in the body, and their hashes are stored here.
 * The page's frames move to the end of their segment, so all other frames keep their offsets. Earlier erasures of the
 * same page stay.
 */
const erasedEntry = z.object({
  t: z.literal('erased'),
  at: time,
  /** The page: the index of its entry, and the location of its body in its own entry. */
  page: z.object({ index: count, segment: z.string(), at: count, fetched_at: time }),
  /** By index among the body's records, with the SHA-256 of their exact bytes. */
  records: z.array(z.object({ place: count, sha256 })),
  reason: z.string(),
  /** The rest of the body comes from the proven body; absent in older versions, which did not prove it. */
  rest: z.literal('proven').optional(),
  ...authority,
  body: pageEntry.shape.body,
  /** The whole segment after this and the other erasures of this checkpoint. */
  segment: z.object({ bytes: count, sha256 }),
});

/**
 * Events that are erased from a lake object from here on: it is rewritten without them, or deleted if none is left. The
 * reasons of the records' `erased` entries are repeated here.
 */
const lakeErasedEntry = z.object({
  t: z.literal('lake_erased'),
  at: time,
  object: z.string(),
  /** The hash before this erasure: from the object's own entry, or an earlier entry of this kind. */
  from: sha256,
  /** The uids of the removed rows, one each. */
  uids: z.array(sha256),
  reason: z.string(),
  /** The object after this erasure; without rows it is deleted. */
  bytes: count,
  sha256,
  rows: count,
  /** Reading times of the first and the last page of its cut. */
  first: time,
  last: time,
  ...authority,
});

/** A comparison of a stream with upstream's data (comparison.ts), reported by that page. */
const reconciledEntry = z.object({
  t: z.literal('reconciled'),
  at: time,
  stream: z.string(),
  seq: count,
  ...comparisonShape.shape,
});

/** Which source of a pair delivers from here on (succession.ts), reported by that page. */
const successionEntry = z.object({
  t: z.literal('succession'),
  at: time,
  stream: z.string(),
  seq: count,
  ...successionShape.shape,
  /** The last page of each stream of the pair before this entry; null: none in this log. */
  streams: z.array(
    z.object({ side: z.enum(['old', 'new']), stream: z.string(), seq: count.nullable() }),
  ),
});

/** A manifest of completeness (manifests.ts): the totals of a stream's day from the preceding entries. */
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

/** The common shape of entries of any version. */
const someEntry = z.looseObject({ t: z.string().regex(/^[a-z_]{1,32}$/) });

/** An entry of the log. */
export type Entry = z.output<typeof anyEntry>;
/** An entry of one kind. */
export type EntryOf<T extends Entry['t']> = Extract<Entry, { readonly t: T }>;
/** The entry of a page. */
export type PageEntry = z.output<typeof pageEntry>;

/** An entry with records erased from a page. */
export type ErasedEntry = z.output<typeof erasedEntry>;

/** The entry's bytes. A longer one than the log can store is a bug. */
export function encodeEntry(entry: Entry): Buffer {
  const bytes = Buffer.from(JSON.stringify(entry));
  invariant(bytes.length <= entryBytesMax, `an entry is at most ${entryBytesMax} bytes long`);
  return bytes;
}

/** A well-formed entry of a kind that this version does not know. */
export class NewerEntryError extends SyntaxError {
  override readonly name = 'NewerEntryError';
}

/**
 * Parses an entry. Throws a SyntaxError with the reason, also if other readers could parse the same bytes differently:
 * a repeated key, or text that is not UTF-8.
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

/** The context that the page's records had when they were stored. */
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

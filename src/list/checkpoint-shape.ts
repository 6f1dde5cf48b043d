// The schema of a list stream's checkpoint, with one record for each concern. Invariant: a checkpoint written by any
// earlier version can be read. Fields added after the first version have a default; fields of older versions are
// dropped.

import { z } from 'zod';

const window = z.strictObject({ from: z.number(), to: z.number().nullable() }).exactOptional();
const position = z.union([
  z.strictObject({ by: z.literal('cursor'), cursor: z.string().nullable(), window }),
  z.strictObject({ by: z.literal('offset'), offset: z.int().min(0), window }),
]);

/** As `olderUpTo`: all identities were made by version 0.1.0. */
export const byOldVersion = Number.MAX_SAFE_INTEGER;

/** Where the list grows (poll.ts). */
const growth = z.object({
  order: z.enum(['oldest_first', 'newest_first', 'mixed', 'unknown']),
  /** When the order was learned; null: not learned, or by an older version. */
  learnedAt: z.number().nullable().default(null),
});

/** The end of the list (read-end.ts). Keys are keys of records, in base64. */
const end = z.object({
  /** Position from which the next poll reads new records; null: a full scan must find it. */
  resume: position.nullable(),
  /** A walk ended at `resume`, so every later record there is new. */
  atEnd: z.boolean().default(false),
  /** Records already read that the response at `resume` may contain again. */
  again: z.int().default(0),
  /** Keys of the last records before an offset `resume`; they must reappear. */
  overlap: z.string().nullable(),
  /** Keys of the records on the page at `resume`, for records without ids. */
  resumePage: z.string().nullable(),
  /**
   * A walk that did not finish may have stored records without ids that come after `resume`. Resuming there would store
   * them twice, so the list is first counted through from its start.
   */
  countAnew: z.boolean(),
  /** When a record last arrived through `resume`; `provenAt`: the arrival before it, which proves the end. */
  arrivedAt: z.number().nullable().default(null),
  provenAt: z.number().nullable(),
  /** When a full scan last found growth at the end that `resume` had not shown. */
  blindAt: z.number().nullable().default(null),
});

/** The start of the list (read-start.ts). */
const start = z.object({
  /** A walk that has not yet reached known records: its next position and its first block of identities. */
  openWalk: z.strictObject({ next: position, block: z.int() }).nullable(),
});

/** A full scan under way (full-scan.ts). */
const fullScan = z.strictObject({
  /** Its next position, and the keys of the last records before an offset, which must reappear. */
  next: position,
  overlap: z.string().nullable(),
  begunAt: z.number(),
  /** Time spent on the scan, milliseconds. */
  spentMs: z.number(),
  /** `memory.watermark` when the scan began. */
  watermark: z.number().nullable(),
  horizon: z.number().nullable(),
  /**
   * `known`: the scan has seen a known record. `earliest`: earliest event time seen. Both show whether the list reaches
   * back to known records.
   */
  known: z.boolean(),
  earliest: z.number().nullable(),
  /** Rows between the start of the list and `next`, and the length of the list when the scan began; null: unknown. */
  read: z.int().nullable().default(null),
  total: z.number().nullable().default(null),
});

/** The list as a whole. */
const whole = z.object({
  /** A full scan has finished, so all identities stored by then are anchored. */
  swept: z.boolean(),
  round: fullScan.nullable().default(null),
  /** Duration of the last full scan, milliseconds. */
  sweptInMs: z.number().default(0),
});

/** When the list was last checked for records that its ends do not show, epoch milliseconds; 0: never. */
const looked = z.object({
  /** Start of the last full scan. */
  sweptAt: z.number(),
  /** Last check for late records. */
  rewoundAt: z.number(),
  /** Last check at the end where the list is not known to grow. */
  probedAt: z.number(),
});

/** The memory of records that were read. */
const memory = z.object({
  /** Latest event time seen, never in the future; epoch milliseconds. */
  watermark: z.number().nullable(),
  /** Records without ids were seen. They are counted, which requires more care than ids. */
  nameless: z.boolean().default(true),
  /** Groups of remembered records, oldest first: number of records and their latest event time. */
  remembered: z.array(z.strictObject({ count: z.int(), latest: z.number() })).default([]),
  /** Records up to this event time may have been forgotten; null: none. */
  horizon: z.number().nullable().default(null),
  /** `ignore` of the last poll: dotted paths that are not content. */
  ignore: z.array(z.string()).default([]),
  /** Earlier settings of `ignore`, under which records without ids were stored up to an event time; newest last. */
  ignoredBefore: z
    .array(z.strictObject({ paths: z.array(z.string()), upTo: z.number().nullable() }))
    .default([]),
  /**
   * Blocks of identities up to this one were made by other rules: by version 0.1.0, whose checkpoints lack this key, or
   * with another `ignore`.
   */
  olderUpTo: z.int().default(byOldVersion),
  /** Most records that were read again had changed (drift.ts). */
  drift: z
    .strictObject({
      isHeld: z.boolean(),
      at: z.number(),
      patienceMs: z.number(),
      toldAt: z.number().nullable(),
    })
    .nullable()
    .default(null),
});

/** Facts learned about the server. */
const server = z.object({
  /** Largest page limit that the server accepts; 0: it accepts no limit; null: unknown. */
  limitMax: z.int().nullable(),
  /** The server rejects the sorting of the source; requests omit it since. */
  unsorted: z.boolean().default(false),
  /** The server has sent the next-cursor key, so a response without the key is doubtful. */
  hasNext: z.boolean(),
  /** The server has ended the list with null, so a missing key is an error. */
  endsWithNull: z.boolean(),
  /**
   * The server sends a next cursor at the very end of the list: to empty pages, or to the last page again (walk-end.ts).
   */
  endless: z.enum(['empty', 'again']).nullable().default(null),
  /** Longest run of empty pages that was followed by a record. */
  gap: z.int().default(0),
  /** Keys of the first records of a longer list, to detect a server that ignores the cursor; base64. */
  firstPage: z.string().nullable(),
});

/** From when records are requested; epoch milliseconds. */
const requested = z.object({
  /** Records before this time are not requested (`start`). */
  since: z.number().nullable(),
  /** Until the list was read to its end, records before this time are known and not new (`start: now`). */
  standingBefore: z.number().nullable().default(null),
});

/** Conditions already reported to the sinks. */
const reported = z.object({
  /** Keys of the records before rows that upstream hides, reported as gaps; base64. */
  gaps: z.array(z.string()).default([]),
  /** The last request found the company denied or gone. */
  scopeLost: z.boolean().default(false),
  /** Only part of the list may be read (paging-doubt.ts): the sign in words, and the likely paging. */
  suspected: z
    .strictObject({
      sign: z.string(),
      said: z.string(),
      likely: z.string().nullable(),
      next: z.string(),
      /** Only a walk through the whole list can decide. */
      isWhole: z.boolean(),
    })
    .nullable()
    .default(null),
});

/** The parts of a list's checkpoint, by concern. */
export const concerns = {
  growth,
  end,
  start,
  whole,
  looked,
  memory,
  server,
  wanted: requested,
  told: reported,
};

/** The checkpoint version that is written. */
export const listCheckpoint = z.object({
  version: z.literal(2),
  kind: z.literal('list'),
  fingerprint: z.string(),
  /** New each time the stream starts from nothing. */
  epoch: z.string(),
  ...concerns,
});

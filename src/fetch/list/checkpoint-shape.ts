// What stands in a list stream's checkpoint, a record for each concern. What must stay true: every
// checkpoint that an earlier version has written can be read. Fields that came later than the first
// version have a default, and those of an older one are left out.

import { z } from 'zod';

const window = z.strictObject({ from: z.number(), to: z.number().nullable() }).exactOptional();
const place = z.union([
  z.strictObject({ by: z.literal('cursor'), cursor: z.string().nullable(), window }),
  z.strictObject({ by: z.literal('offset'), offset: z.int().min(0), window }),
]);

/** As the last block of identities that were made otherwise: all, by version 0.1.0. */
export const byOldVersion = Number.MAX_SAFE_INTEGER;

/** Where the list was seen to grow (growth.ts). */
const growth = z.object({
  order: z.enum(['oldest_first', 'newest_first', 'mixed', 'unknown']),
  /** When that was learned; null: it was not, or by an older version. */
  learnedAt: z.number().nullable().default(null),
});

/** The list's end (read-end.ts). Keys are those of records, in base64. */
const end = z.object({
  /** Where the next poll asks for what is new; null: where that is has to be found by a round. */
  resume: place.nullable(),
  /** A walk ended at `resume`, so that what it shows from then on has come in since. */
  atEnd: z.boolean().default(false),
  /** Records that were read already and that the answer at `resume` may show again. */
  again: z.int().default(0),
  /** Keys of the last records before an offset `resume`, which must reappear. */
  overlap: z.string().nullable(),
  /** Keys of the records of the page at `resume`, for records without ids. */
  resumePage: z.string().nullable(),
  /**
   * Records without ids may be held that stand behind `resume`, from a walk that died: going on
   * there would hold them again, so the list is first counted through from its start.
   */
  countAnew: z.boolean(),
  /** When a record last arrived through `resume`, and the one before, which proves the end. */
  arrivedAt: z.number().nullable().default(null),
  provenAt: z.number().nullable(),
  /** When a round last found the list grown at its end where `resume` had shown nothing. */
  blindAt: z.number().nullable().default(null),
});

/** The list's start (read-start.ts). */
const start = z.object({
  /** A walk that has not joined up yet: where it goes on, and its first block of identities. */
  openWalk: z.strictObject({ next: place, block: z.int() }).nullable(),
});

/** A walk through the whole list that is under way (read-round.ts). */
const round = z.strictObject({
  /** Where it goes on, and the keys of the last records before an offset, which must reappear. */
  next: place,
  overlap: z.string().nullable(),
  begunAt: z.number(),
  /** Time spent on it, milliseconds. */
  spentMs: z.number(),
  /** The memory's own when it began. */
  watermark: z.number().nullable(),
  horizon: z.number().nullable(),
  /** It has met a known record, and the earliest event time: whether the list reaches so far. */
  known: z.boolean(),
  earliest: z.number().nullable(),
  /** Rows between the list's start and `next`, and its length at the beginning; null: unknown. */
  read: z.int().nullable().default(null),
  total: z.number().nullable().default(null),
});

/** The whole list. */
const whole = z.object({
  /** It was walked through once, so that everything seen by then is anchored. */
  swept: z.boolean(),
  round: round.nullable().default(null),
  /** Time spent on the last round. */
  sweptInMs: z.number().default(0),
});

/** When the list was last looked through for what its ends do not show; 0: never. */
const looked = z.object({
  /** When the last round began. */
  sweptAt: z.number(),
  /** For records that came late. */
  rewoundAt: z.number(),
  /** At the end where it is not known to grow. */
  probedAt: z.number(),
});

/** What is known of the records that were read. */
const memory = z.object({
  /** Latest event time seen, never in the future; epoch milliseconds. */
  watermark: z.number().nullable(),
  /** Records without ids were met: they are counted, which takes more care than an id. */
  nameless: z.boolean().default(true),
  /** Stretches of remembered records, oldest first: how many, and their latest event time. */
  remembered: z.array(z.strictObject({ count: z.int(), latest: z.number() })).default([]),
  /** Records up to this event time may be forgotten; null: none are. */
  horizon: z.number().nullable().default(null),
  /** Dotted paths that were no part of a record's content. */
  ignore: z.array(z.string()).default([]),
  /**
   * Blocks of identities up to this one were made otherwise: by version 0.1.0, whose checkpoints
   * lack the key, or with another `ignore`.
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

/** What was learned of the server. */
const server = z.object({
  /** Largest page limit that it was found to take; 0: it takes none; null: nothing is known. */
  limitMax: z.int().nullable(),
  /** It refuses the sorting that the source asks for, which is left out since. */
  unsorted: z.boolean().default(false),
  /** It has sent the key of the next cursor, so that its absence is doubtful. */
  hasNext: z.boolean(),
  /** It has ended the list with null, so that the key's absence is an error. */
  endsWithNull: z.boolean(),
  /** It leads on from the list's very end: to empty pages, or the last one again (tail.ts). */
  endless: z.enum(['empty', 'again']).nullable().default(null),
  /** Most empty pages in a row that a record stood behind. */
  gap: z.int().default(0),
  /** Keys of a longer list's first records, to notice that a cursor is ignored; base64. */
  firstPage: z.string().nullable(),
});

/** From when on records are wanted; epoch milliseconds. */
const requested = z.object({
  /** Those before this time are not (`start`). */
  since: z.number().nullable(),
  /** Until the list was read to its end: those of before are known, not new (`start: now`). */
  standingBefore: z.number().nullable().default(null),
});

/** What the sinks were told. */
const reported = z.object({
  /** Keys of records before rows that upstream will not show, told as gaps; base64. */
  gaps: z.array(z.string()).default([]),
  /** The company was denied or gone when it was asked last. */
  scopeLost: z.boolean().default(false),
  /** Only a part may be read (paging-doubt.ts): the sign in words, and the likely paging. */
  suspected: z
    .strictObject({
      sign: z.string(),
      said: z.string(),
      likely: z.string().nullable(),
      next: z.string(),
      /** Only a walk through the whole list can tell. */
      isWhole: z.boolean(),
    })
    .nullable()
    .default(null),
});

/** What is known of a list, by what it is about. */
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

/** A checkpoint of the version that is written. */
export const listCheckpoint = z.object({
  version: z.literal(2),
  kind: z.literal('list'),
  fingerprint: z.string(),
  /** New whenever the stream is started anew. */
  epoch: z.string(),
  ...concerns,
});

// What a list stream's checkpoint holds, a record for each concern, and how one is read back. It is
// committed in the same transaction as the page that it follows. A checkpoint of an unknown
// version, of another endpoint or with a damaged field halts its stream with a clear message: never
// is a stream silently started afresh. Only where the paging was changed, which is how a list that
// was read in part is mended, is it read again from its start; what is known of its records stays.
// Version 1 held the same fields side by side.

import { z } from 'zod';
import { isObject, type Json } from '../../contracts/json.ts';
import type { Order } from '../../contracts/source.ts';
import { checkpointMismatch } from '../outcome.ts';
import type { Place } from './page.ts';

const place = z.union([
  z.strictObject({ by: z.literal('cursor'), cursor: z.string().nullable() }),
  z.strictObject({ by: z.literal('offset'), offset: z.int().min(0) }),
]);

/**
 * As the time of the last round: rows were seen to have come in where they are not read, so one is
 * due at once.
 */
export const roundWanted = 0;

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
  /**
   * When a record last arrived through `resume`, and the one before: then it shows what is new at
   * the list's end.
   */
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
  /**
   * It has met a record that was known, and the earliest event time it has met: whether the list
   * still reaches so far.
   */
  known: z.boolean(),
  earliest: z.number().nullable(),
  /**
   * Rows between the list's start and `next`, and the list's length when it began; null: not known.
   */
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
  /**
   * Records without ids were met: they are counted, which takes more care than looking for an id.
   */
  nameless: z.boolean().default(true),
  /**
   * Stretches of records that are remembered, oldest first: how many, and their latest event time.
   */
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
  /**
   * It leads on with a new cursor from the list's very end: to empty pages, or to the last one
   * again (tail.ts).
   */
  endless: z.enum(['empty', 'again']).nullable().default(null),
  /** Most empty pages in a row that a record stood behind. */
  gap: z.int().default(0),
  /**
   * Keys of the first records of a list of several pages, to notice that a cursor is ignored;
   * base64.
   */
  firstPage: z.string().nullable(),
});

/** From when on records are wanted; epoch milliseconds. */
const wanted = z.object({
  /** Those before this time are not (`start`). */
  since: z.number().nullable(),
  /**
   * Until the list has been read to its end: those from before this time are known, not new
   * (`start: now`).
   */
  standingBefore: z.number().nullable().default(null),
});

/** What the sinks were told. */
const told = z.object({
  /**
   * Keys of the records before rows that upstream refuses to show, which were told as gaps; base64.
   */
  gaps: z.array(z.string()).default([]),
  /** The company was denied or gone when it was asked last. */
  scopeLost: z.boolean().default(false),
  /**
   * Only a part may be read (paging-doubt.ts): the sign, in words, and how the list is most likely
   * paged.
   */
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

/**
 * Fields that came later than the first version have a default, and those of an older one are left
 * out.
 */
const concerns = { growth, end, start, whole, looked, memory, server, wanted, told };

const listCheckpoint = z.object({
  version: z.literal(2),
  kind: z.literal('list'),
  fingerprint: z.string(),
  /** New whenever the stream is started anew. */
  epoch: z.string(),
  ...concerns,
});

/** A list stream's checkpoint. */
export type ListCheckpoint = Readonly<z.infer<typeof listCheckpoint>>;

/** What a step changes of it. */
export type CheckpointChange = {
  readonly [Concern in keyof typeof concerns]?: Partial<ListCheckpoint[Concern]>;
};

/** A round under way. */
export type Round = Readonly<z.infer<typeof round>>;

/** At the list's start, where nothing is known but records. */
const atStart = {
  growth: { order: 'unknown', learnedAt: null },
  end: {
    resume: null,
    atEnd: false,
    again: 0,
    overlap: null,
    resumePage: null,
    countAnew: false,
    arrivedAt: null,
    provenAt: null,
    blindAt: null,
  },
  start: { openWalk: null },
  whole: { swept: false, round: null, sweptInMs: 0 },
  looked: { sweptAt: 0, rewoundAt: 0, probedAt: 0 },
  server: {
    limitMax: null,
    unsorted: false,
    hasNext: false,
    endsWithNull: false,
    endless: null,
    gap: 0,
    firstPage: null,
  },
} as const satisfies Partial<ListCheckpoint>;

/** The checkpoint of a stream that has read nothing. */
export function freshCheckpoint(parts: {
  fingerprint: string;
  epoch: string;
  order: Order | 'unknown';
  since: number | null;
  ignore: string[];
  olderUpTo: number;
}): ListCheckpoint {
  const { fingerprint, epoch, order, since, ignore, olderUpTo } = parts;
  return {
    version: 2,
    kind: 'list',
    fingerprint,
    epoch,
    ...atStart,
    growth: { order, learnedAt: null },
    memory: {
      watermark: null,
      nameless: false,
      remembered: [],
      horizon: null,
      ignore,
      olderUpTo,
      drift: null,
    },
    wanted: { since, standingBefore: since },
    told: { gaps: [], scopeLost: false, suspected: null },
  };
}

/** A list's checkpoint of either version; null where it is none that can be read. */
export function parseCheckpoint(held: Json): ListCheckpoint | null {
  const isOld = isObject(held) && held.version === 1;
  const sides = Object.keys(concerns).map((concern) => [concern, held]);
  const current = isOld ? { ...held, version: 2, ...Object.fromEntries(sides) } : held;
  return listCheckpoint.safeParse(current).data ?? null;
}

/** Reads a checkpoint back. Throws `checkpoint_mismatch` when it is not one of this stream. */
export function readCheckpoint(stream: string, held: Json, fingerprint: string): ListCheckpoint {
  const parsed = parseCheckpoint(held);
  if (parsed === null)
    throw checkpointMismatch(stream, 'it cannot be read, or was written by another version');
  const before = printOf(parsed.fingerprint);
  const now = printOf(fingerprint);
  if (before.endpoint !== now.endpoint) {
    throw checkpointMismatch(stream, 'base address, path or fixed parameters have changed since');
  }
  // An older version kept the style alone.
  const isPaged = before.paging === now.paging || before.paging === now.style;
  return { ...parsed, fingerprint, ...(isPaged ? {} : atStart) };
}

/**
 * A checkpoint or change with another change behind it: of a field in both, the second's value
 * counts.
 */
export function joined<First extends CheckpointChange>(
  first: First,
  second: CheckpointChange,
): First {
  const both: Record<string, object> = { ...first };
  for (const [concern, fields] of Object.entries(second)) {
    both[concern] = { ...both[concern], ...fields };
  }
  return both as First; // each concern has its own fields only
}

/** The checkpoint of a list that is to be read again: from a cursor on or, with null, whole. */
export function rewound(checkpoint: ListCheckpoint, cursor: string | null): ListCheckpoint {
  // What looks new at its end need not have come in there.
  if (cursor === null) {
    const due = { whole: { round: null }, looked: { sweptAt: roundWanted }, end: { atEnd: false } };
    return joined(checkpoint, due);
  }
  const resume: Place = { by: 'cursor', cursor };
  const end = { resume, atEnd: false, again: 0, overlap: null, resumePage: null };
  return joined(checkpoint, { end });
}

/** The parts of a fingerprint (see ListStream), as text. */
function printOf(fingerprint: string): { endpoint: string; style: string; paging: string } {
  const isArray = fingerprint.startsWith('[');
  const parts: readonly unknown[] = isArray ? JSON.parse(fingerprint) : [fingerprint];
  const text = (from: number, to?: number) => JSON.stringify(parts.slice(from, to));
  return { endpoint: text(0, 3), style: text(3, 4), paging: text(3) };
}

/** True where the list's end is known, so that what is new there can be asked for. */
export function knowsEnd({ whole, end }: ListCheckpoint): boolean {
  return whole.swept && end.resume !== null && !end.countAnew;
}

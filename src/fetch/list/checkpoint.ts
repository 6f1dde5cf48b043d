// What a list stream's checkpoint holds, and how one is read back. It is committed in the same transaction as the page that
// it follows. A checkpoint of an unknown version, of another endpoint or with a damaged field halts its stream with
// a clear message: never is a stream silently started afresh. Only where the paging was changed, which is how a list that
// was read in part is mended, is it read again from its start; what is known of its records stays.

import { z } from 'zod';
import { ExportError } from '../../contracts/errors.ts';
import type { Json } from '../../contracts/json.ts';
import type { Order, Place } from '../../contracts/source.ts';

const place = z.union([
  z.strictObject({ by: z.literal('cursor'), cursor: z.string().nullable() }),
  z.strictObject({ by: z.literal('offset'), offset: z.int().min(0) }),
]);

/** As the time of the last round: rows were seen to have come in where they are not read, so one is due at once. */
export const roundWanted = 0;

/** A walk through the whole list that is under way. */
const round = z.strictObject({
  /** Where it goes on. */
  next: place,
  /** As the checkpoint's own, for `next`. */
  overlap: z.string().nullable(),
  begunAt: z.number(),
  /** Time spent on it, milliseconds. */
  spentMs: z.number(),
  /** The checkpoint's own when it began. */
  watermark: z.number().nullable(),
  horizon: z.number().nullable(),
  /** It has met a record that was known, and the earliest event time it has met: whether the list still reaches back so far. */
  known: z.boolean(),
  earliest: z.number().nullable(),
  /** Rows between the list's start and `next`, and the list's length when it began; null: not known. */
  read: z.int().nullable().default(null),
  total: z.number().nullable().default(null),
});

/** What makes it doubtful that all is read (paging-doubt.ts): the sign, in words, and how the list is most likely paged. */
const doubt = z.strictObject({
  sign: z.string(),
  said: z.string(),
  likely: z.string().nullable(),
  next: z.string(),
  /** Only a walk through the whole list can tell. */
  isWhole: z.boolean(),
});

/** As the last block of identities that were made otherwise: all, by version 0.1.0. */
export const byOldVersion = Number.MAX_SAFE_INTEGER;

/** Keys that came later than the first version have a default, and those of an older one are left out. */
const listCheckpoint = z.object({
  version: z.literal(1),
  kind: z.literal('list'),
  fingerprint: z.string(),
  /** New whenever the stream is started anew. */
  epoch: z.string(),
  order: z.enum(['oldest_first', 'newest_first', 'mixed', 'unknown']),
  /** When that was learned; null: it was not, or by an older version. */
  learnedAt: z.number().nullable().default(null),
  /** Where the next poll asks for what is new at the list's end; null: where that is has to be found by a round. */
  resume: place.nullable(),
  /** A walk ended at `resume`, so that what it shows from then on has come in since. */
  atEnd: z.boolean().default(false),
  /** Records that were read already and that the answer at `resume` may show again. */
  again: z.int().default(0),
  /** The whole list was walked once, so that everything seen by then is anchored. */
  swept: z.boolean(),
  round: round.nullable().default(null),
  /** A walk from the newest end that has not joined up yet: where it goes on, and its first block of identities. */
  openWalk: z.strictObject({ next: place, block: z.int() }).nullable(),
  /** When a record last arrived through `resume`, and the one before: then `resume` shows what is new at the list's end. */
  arrivedAt: z.number().nullable().default(null),
  provenAt: z.number().nullable(),
  /** When a round last found the list grown at its end where `resume` had shown nothing. */
  blindAt: z.number().nullable().default(null),
  /** Latest event time seen, never in the future; epoch milliseconds. */
  watermark: z.number().nullable(),
  /** Records without ids were met: they are counted, which takes more care than looking for an id. */
  nameless: z.boolean().default(true),
  /** Stretches of records that are remembered, oldest first: how many, and their latest event time. */
  remembered: z.array(z.strictObject({ count: z.int(), latest: z.number() })).default([]),
  /** Records up to this event time may be forgotten; null: none are. */
  horizon: z.number().nullable().default(null),
  /** Records before this time are not wanted (`start`); epoch milliseconds. */
  since: z.number().nullable(),
  /**
   * Until the list has been read to its end: records from before this time that stand in it are known, not new (`start: now`);
   * epoch milliseconds.
   */
  standingBefore: z.number().nullable().default(null),
  /** Largest page limit that upstream was found to take; 0: it takes none; null: nothing is known. */
  limitMax: z.int().nullable(),
  /** Upstream was found to refuse the sorting that the source asks for, which is left out since. */
  unsorted: z.boolean().default(false),
  /** Upstream has been seen to send the key of the next cursor, so that its absence is doubtful. */
  hasNext: z.boolean(),
  /** Upstream has been seen to end the list with null, so that the key's absence is an error. */
  endsWithNull: z.boolean(),
  /** Upstream leads on with a new cursor from the list's very end: to empty pages, or to the last one again (tail.ts). */
  endless: z.enum(['empty', 'again']).nullable().default(null),
  /** Most empty pages in a row that a record stood behind. */
  gap: z.int().default(0),
  /** Keys of the first records of a list of several pages, to notice that a cursor is ignored; base64. */
  firstPage: z.string().nullable(),
  /** Keys of the last records before an offset `resume`, which must reappear; base64. */
  overlap: z.string().nullable(),
  /** Keys of the records of the page at `resume`, for records without ids; base64. */
  resumePage: z.string().nullable(),
  /**
   * Records without ids may be held that stand behind `resume`, from a walk that died: going on there would hold them
   * again, so the list is first counted through from its start.
   */
  countAnew: z.boolean(),
  /** Keys of the records before rows that upstream refuses to show, which were told as gaps; base64. */
  gaps: z.array(z.string()).default([]),
  /** Dotted paths that were no part of a record's content. */
  ignore: z.array(z.string()).default([]),
  /**
   * Blocks of identities up to this one were made otherwise: by version 0.1.0, whose checkpoints lack the key, or with
   * another `ignore`.
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
  /** The company was denied or gone when it was asked last, and this was told. */
  scopeLost: z.boolean().default(false),
  /** Only a part may be read, and this was told; null: nothing shows it. */
  suspected: doubt.nullable().default(null),
  /** When the last whole round began, and the time spent on it. */
  sweptAt: z.number(),
  sweptInMs: z.number().default(0),
  rewoundAt: z.number(),
  probedAt: z.number(),
});

/** A list stream's checkpoint. */
export type ListCheckpoint = Readonly<z.infer<typeof listCheckpoint>>;

/** A round under way. */
export type Round = Readonly<z.infer<typeof round>>;

/** The checkpoint of a stream that has read nothing. */
export function freshCheckpoint(parts: {
  fingerprint: string;
  epoch: string;
  order: Order | 'unknown';
  since: number | null;
  ignore: string[];
  olderUpTo: number;
}): ListCheckpoint {
  return {
    version: 1,
    kind: 'list',
    learnedAt: null,
    standingBefore: parts.since,
    resume: null,
    atEnd: false,
    again: 0,
    swept: false,
    round: null,
    openWalk: null,
    arrivedAt: null,
    provenAt: null,
    blindAt: null,
    watermark: null,
    nameless: false,
    remembered: [],
    horizon: null,
    limitMax: null,
    unsorted: false,
    hasNext: false,
    endsWithNull: false,
    endless: null,
    gap: 0,
    firstPage: null,
    overlap: null,
    resumePage: null,
    countAnew: false,
    gaps: [],
    drift: null,
    scopeLost: false,
    suspected: null,
    sweptAt: 0,
    sweptInMs: 0,
    rewoundAt: 0,
    probedAt: 0,
    ...parts,
  };
}

/** Reads a checkpoint back. Throws `checkpoint_mismatch` when it is not one of this stream. */
export function readCheckpoint(stream: string, held: Json, fingerprint: string): ListCheckpoint {
  const parsed = listCheckpoint.safeParse(held);
  if (!parsed.success)
    throw mismatch(stream, 'it cannot be read, or was written by another version');
  const before = printOf(parsed.data.fingerprint);
  const now = printOf(fingerprint);
  if (before.endpoint !== now.endpoint) {
    throw mismatch(stream, 'base address, path or fixed parameters have changed since');
  }
  // An older version kept the style alone.
  const isPaged = before.paging === now.paging || before.paging === now.style;
  return { ...parsed.data, fingerprint, ...(isPaged ? {} : startAgain) };
}

/** A checkpoint's step to the list's start, where nothing is known but the records. */
const startAgain = {
  order: 'unknown',
  learnedAt: null,
  resume: null,
  atEnd: false,
  again: 0,
  swept: false,
  round: null,
  openWalk: null,
  arrivedAt: null,
  provenAt: null,
  blindAt: null,
  limitMax: null,
  hasNext: false,
  endsWithNull: false,
  endless: null,
  gap: 0,
  firstPage: null,
  overlap: null,
  resumePage: null,
  countAnew: false,
  sweptAt: 0,
  rewoundAt: 0,
  probedAt: 0,
} as const satisfies Partial<ListCheckpoint>;

/** The parts of a fingerprint (see ListStream), as text. */
function printOf(fingerprint: string): { endpoint: string; style: string; paging: string } {
  const isArray = fingerprint.startsWith('[');
  const parts: readonly unknown[] = isArray ? JSON.parse(fingerprint) : [fingerprint];
  const text = (from: number, to?: number) => JSON.stringify(parts.slice(from, to));
  return { endpoint: text(0, 3), style: text(3, 4), paging: text(3) };
}

/** The error that halts a stream whose checkpoint is not its own. */
export function mismatch(stream: string, why: string): ExportError {
  return new ExportError(
    'checkpoint_mismatch',
    `resuming ${stream}: its checkpoint does not fit: ${why}`,
    {
      next: `Look with 'npx sluice checkpoint show -c FILE --stream ${stream}', then mend it with 'npx sluice checkpoint reset -c FILE --stream ${stream}'; held events are not touched.`,
      details: { stream },
    },
  );
}

/** True for the same place. */
export function samePlace(a: Place | null, b: Place | null): boolean {
  if (a === null || b === null) return a === b;
  if (a.by === 'cursor') return b.by === 'cursor' && a.cursor === b.cursor;
  return b.by === 'offset' && a.offset === b.offset;
}

/** True where the list's end is known, so that what is new there can be asked for. */
export function knowsEnd({ swept, resume, countAnew }: ListCheckpoint): boolean {
  return swept && resume !== null && !countAnew;
}

// A list stream's checkpoint: its first state, its parsing and its changes, also of the horizon, which says how far
// back the memory of records reaches. It is committed in the same transaction as the page that it follows. Invariant:
// an unknown version, another endpoint or a damaged field halts the stream with a clear error; a stream never restarts
// silently. Only changed paging restarts the list from its start, because that repairs a list that was read in part;
// the memory of its records stays. Version 1 held the same fields in one flat object.

import type { z } from 'zod';
import { isObject, type Json, type Order } from '../contracts/index.ts';
import { checkpointMismatch } from '../poll/index.ts';
import { byOldVersion, concerns, listCheckpoint } from './checkpoint-shape.ts';
import type { ListPosition } from './page.ts';

/** As the time of the last full scan: a full scan is due at once, because rows arrived where no walk reads. */
export const scanRequested = 0;

/** A list stream's checkpoint. */
export type ListCheckpoint = Readonly<z.infer<typeof listCheckpoint>>;

/** The fields that one step changes. */
export type CheckpointChange = {
  readonly [Concern in keyof typeof concerns]?: Partial<ListCheckpoint[Concern]>;
};

/** A full scan under way. */
export type FullScanState = NonNullable<ListCheckpoint['whole']['round']>;

/** At the start of the list, where only records are known. */
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
      ignoredBefore: [],
      olderUpTo,
      drift: null,
    },
    wanted: { since, standingBefore: since },
    told: { gaps: [], scopeLost: false, suspected: null },
  };
}

/** Parses a checkpoint of either version; null: it is not a list's checkpoint. */
export function parseListCheckpoint(held: Json): ListCheckpoint | null {
  const isOld = isObject(held) && held.version === 1;
  const sides = Object.keys(concerns).map((concern) => [concern, held]);
  const current = isOld ? { ...held, version: 2, ...Object.fromEntries(sides) } : held;
  return listCheckpoint.safeParse(current).data ?? null;
}

/** The checkpoint after its stream's identity blocks were renumbered: each block number is greater by `by`. */
export function withBlocksMoved(held: Json, by: number): Json {
  const parsed = parseListCheckpoint(held);
  if (parsed === null) return held;
  const { openWalk } = parsed.start;
  const { olderUpTo } = parsed.memory;
  return joinedChange(parsed, {
    start: { openWalk: openWalk && { ...openWalk, block: openWalk.block + by } },
    memory: { olderUpTo: olderUpTo === byOldVersion ? olderUpTo : olderUpTo + by },
  });
}

/** Reads a stored checkpoint. Throws `checkpoint_mismatch` if it does not belong to this stream. */
export function readCheckpoint(stream: string, held: Json, fingerprint: string): ListCheckpoint {
  const parsed = parseListCheckpoint(held);
  if (parsed === null)
    throw checkpointMismatch(stream, 'it cannot be read, or was written by another version');
  const before = printOf(parsed.fingerprint);
  const now = printOf(fingerprint);
  if (before.endpoint !== now.endpoint) {
    throw checkpointMismatch(stream, 'base address, path or fixed parameters have changed since');
  }
  // An older version stored only the style.
  const isPaged = before.paging === now.paging || before.paging === now.style;
  return { ...parsed, fingerprint, ...(isPaged ? {} : atStart) };
}

/** A checkpoint or change joined with a later one; the later value wins. */
export function joinedChange<First extends CheckpointChange>(
  first: First,
  second: CheckpointChange,
): First {
  const both: Record<string, Readonly<Record<string, unknown>>> = { ...first };
  for (const [concern, fields] of Object.entries(second)) {
    const before = both[concern];
    // Unchanged concerns stay as they are: thousands of idle streams share those of a new checkpoint.
    const isSame = Object.entries(fields).every(
      ([name, value]) => before !== undefined && name in before && before[name] === value,
    );
    if (!isSame || before === undefined) both[concern] = { ...before, ...fields };
  }
  return both as First; // each concern has its own fields only
}

/** The checkpoint of a list that is to be read again: from a cursor, or with null from its start. */
export function rewound(checkpoint: ListCheckpoint, cursor: string | null): ListCheckpoint {
  // A record that looks new at the end may not have arrived there.
  if (cursor === null) {
    const due = {
      whole: { round: null },
      looked: { sweptAt: scanRequested },
      end: { atEnd: false },
    };
    return joinedChange(checkpoint, due);
  }
  const resume: ListPosition = { by: 'cursor', cursor };
  const end = { resume, atEnd: false, again: 0, overlap: null, resumePage: null };
  return joinedChange(checkpoint, { end });
}

/** The parts of a fingerprint (see ListStream), as text. */
function printOf(fingerprint: string): { endpoint: string; style: string; paging: string } {
  const isArray = fingerprint.startsWith('[');
  const parts: readonly unknown[] = isArray ? JSON.parse(fingerprint) : [fingerprint];
  const text = (from: number, to?: number) => JSON.stringify(parts.slice(from, to));
  return { endpoint: text(0, 3), style: text(3, 4), paging: text(3) };
}

/** The unit of the offsets in a checkpoint with this fingerprint. */
export function unitOf(fingerprint: string): 'page' | 'record' {
  const { paging } = printOf(fingerprint);
  return paging.includes('"page_param"') ? 'page' : 'record';
}

/** True if the end of the list is known, so new records can be requested from there. */
export function knowsEnd({ whole, end }: ListCheckpoint): boolean {
  return whole.swept && end.resume !== null && !end.countAnew;
}

// How far back the memory of a stream's records reaches, in event time. The number of remembered records is bounded
// (repeats.ts). In a longer list, forgotten records would look new when they are read again. So records before the
// horizon count as known.

/** The checkpoint's part: remembered groups of records, and the horizon. */
export type Remembered = Pick<ListCheckpoint['memory'], 'remembered' | 'horizon'>;

/** Records per group. */
const stretchMax = 100_000;
/** Number of groups that are always remembered. */
const stretchesMax = 5;

/** The horizon if no forgotten record had a time. */
export const noHorizon = Number.MAX_SAFE_INTEGER;

/** The memory with `count` more records. `latest`: their latest event time; null: they have none. */
export function remember(
  { remembered, horizon }: Remembered,
  count: number,
  latest: number | null,
): Remembered {
  const last = remembered.at(-1);
  const time = latest ?? noHorizon;
  if (last !== undefined && last.count < stretchMax) {
    const grown = { count: last.count + count, latest: Math.max(last.latest, time) };
    return { remembered: [...remembered.slice(0, -1), grown], horizon };
  }
  const all = [...remembered, { count, latest: time }];
  const gone = all.length > stretchesMax ? (all[0]?.latest ?? null) : null;
  return {
    remembered: all.slice(-stretchesMax),
    horizon: gone === null ? horizon : Math.max(horizon ?? gone, gone),
  };
}

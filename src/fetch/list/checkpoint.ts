// A list stream's checkpoint: how it begins, is read back, and changes. It is committed in the same
// transaction as the page that it follows. A checkpoint of an unknown version, of another endpoint
// or with a damaged field halts its stream with a clear message: never is a stream silently started
// afresh. Only where the paging was changed, which is how a list that was read in part is mended, is
// it read again from its start; what is known of its records stays. Version 1 held the same fields
// side by side.

import type { z } from 'zod';
import { isObject, type Json } from '../../contracts/json.ts';
import type { Order } from '../../contracts/source.ts';
import { checkpointMismatch } from '../outcome.ts';
import { byOldVersion, concerns, listCheckpoint } from './checkpoint-shape.ts';
import type { ListPosition } from './page.ts';

/** As the time of the last round: rows came in where they are not read, one is due at once. */
export const roundRequested = 0;

/** A list stream's checkpoint. */
export type ListCheckpoint = Readonly<z.infer<typeof listCheckpoint>>;

/** What a step changes of it. */
export type CheckpointChange = {
  readonly [Concern in keyof typeof concerns]?: Partial<ListCheckpoint[Concern]>;
};

/** A round under way. */
export type RoundState = NonNullable<ListCheckpoint['whole']['round']>;

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
export function parseListCheckpoint(held: Json): ListCheckpoint | null {
  const isOld = isObject(held) && held.version === 1;
  const sides = Object.keys(concerns).map((concern) => [concern, held]);
  const current = isOld ? { ...held, version: 2, ...Object.fromEntries(sides) } : held;
  return listCheckpoint.safeParse(current).data ?? null;
}

/** A checkpoint whose stream's blocks of identities have numbers that are greater by so many. */
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

/** Reads a checkpoint back. Throws `checkpoint_mismatch` when it is not one of this stream. */
export function readCheckpoint(stream: string, held: Json, fingerprint: string): ListCheckpoint {
  const parsed = parseListCheckpoint(held);
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

/** A checkpoint or change with another behind it, whose value counts where both have one. */
export function joinedChange<First extends CheckpointChange>(
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
    const due = {
      whole: { round: null },
      looked: { sweptAt: roundRequested },
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

/** What the offsets of a checkpoint with this fingerprint count. */
export function unitOf(fingerprint: string): 'page' | 'record' {
  const { paging } = printOf(fingerprint);
  return paging.includes('"page_param"') ? 'page' : 'record';
}

/** True where the list's end is known, so that what is new there can be asked for. */
export function knowsEnd({ whole, end }: ListCheckpoint): boolean {
  return whole.swept && end.resume !== null && !end.countAnew;
}

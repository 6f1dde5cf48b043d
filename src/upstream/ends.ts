// The end of an upstream: the date in the config, else the earliest that responses name for an
// endpoint, else the date in the API's document. Invariants: a date excuses no error and stops no
// stream; it is only reported. A date from a header applies to its endpoint alone.

import { z } from 'zod';
import { isDay, type Json, parseRfc3339 } from '../contracts/index.ts';

/** The announcement of an endpoint's responses. Times are epoch milliseconds. */
export interface AnnouncedEnd {
  /** The path template. */
  readonly endpoint: string;
  /** Null: no `Deprecation` header, or one without a date. */
  readonly deprecationMs: number | null;
  readonly sunsetMs: number | null;
  /** The end: `Sunset`, else a date in `Deprecation` that was in the future; null: a deprecation only. */
  readonly endsMs: number | null;
}

/** The end of an upstream, and the origin of the date. */
export interface UpstreamEnd {
  /** Epoch milliseconds; null: never. */
  readonly endsMs: number | null;
  readonly from: (typeof endOrigins)[number];
  /** The endpoint whose responses name the date; null: the date applies to the whole upstream. */
  readonly endpoint: string | null;
  /** With `from: config`: an earlier date in a header; null: none. */
  readonly earlier: { readonly endpoint: string; readonly endsMs: number } | null;
}

/** The settings that decide an upstream's end; `ends` in epoch milliseconds. */
interface EndSettings {
  readonly api: 'unified' | 'services';
  readonly ends?: number | 'never' | undefined;
}

/** Possible origins of the date. */
export const endOrigins = ['config', 'sunset', 'deprecation', 'default'] as const;

/** The services document: integrations on the earlier unified API keep working until the end of 2026. */
const unifiedEndsMs = Date.UTC(2026, 11, 31, 23, 59, 59);

/** The end of an upstream by its settings and announcements. */
export function upstreamEnd(
  { api, ends }: EndSettings,
  announced: readonly AnnouncedEnd[],
): UpstreamEnd {
  const first = earliestOf(announced);
  if (ends !== undefined) {
    const endsMs = ends === 'never' ? null : ends;
    const isEarlier = first !== null && first.endsMs < (endsMs ?? Number.POSITIVE_INFINITY);
    return { endsMs, from: 'config', endpoint: null, earlier: isEarlier ? first : null };
  }
  if (first !== null) {
    const { endpoint, endsMs, sunsetMs } = first;
    const from = sunsetMs === endsMs ? 'sunset' : 'deprecation';
    return { endsMs, from, endpoint, earlier: null };
  }
  const endsMs = api === 'unified' ? unifiedEndsMs : null;
  return { endsMs, from: 'default', endpoint: null, earlier: null };
}

function earliestOf(announced: readonly AnnouncedEnd[]) {
  return announced.reduce<(AnnouncedEnd & { readonly endsMs: number }) | null>((first, one) => {
    const { endsMs } = one;
    if (endsMs === null || (first !== null && first.endsMs <= endsMs)) return first;
    return { ...one, endsMs };
  }, null);
}

const dayMs = 86_400_000;

/** Whole days until a time, rounded down; negative once it has passed. */
export function daysLeft(endsMs: number, now: number): number {
  return Math.floor((endsMs - now) / dayMs);
}

/** An event reports an end this many days before, the first ones first. */
export const eventDays: readonly number[] = [90, 30, 7, 1];

/** From this many days before an end it needs attention. */
export const noticeDays = 90;

/** A value of `ends` in the config: epoch milliseconds, or `never`; null: invalid. */
export function parseEnds(text: string): number | 'never' | null {
  if (text === 'never') return text;
  return parseRfc3339(isDay(text) ? `${text}T23:59:59Z` : text);
}

// The stored state of an upstream's end: the dates that its responses announced, and the events
// emitted for each date. It is one checkpoint, so that an event and its record become durable
// together. An unreadable value counts as nothing stored.

const ms = z.number().nullable();

const heldEnds = z.object({
  version: z.literal(1),
  /** The address of the API that announced the dates. */
  base: z.string(),
  announced: z.array(
    z.object({ endpoint: z.string(), deprecationMs: ms, sunsetMs: ms, endsMs: ms }),
  ),
  /** The dates that the upstream had, the latest last. */
  dates: z.array(
    z.object({
      /** In UTC: `2026-12-31`. */
      date: z.string(),
      /** Those of `eventDays` that have passed: their event was emitted, or a later one instead. */
      days: z.array(z.number()),
      /** When its last event was emitted, epoch milliseconds; null: never. */
      emittedAt: ms,
    }),
  ),
});

/** The value stored under `endsKey`. */
export type HeldEnds = Readonly<z.infer<typeof heldEnds>>;

/** A date that an upstream had, with the events emitted for it. */
export type DateOfEnd = HeldEnds['dates'][number];

/** The same in its stored form. */
export function heldJson(held: {
  readonly base: string;
  readonly announced: readonly AnnouncedEnd[];
  readonly dates: readonly DateOfEnd[];
}): Json {
  const { base, announced, dates } = held;
  return {
    ...{ version: 1, base },
    announced: announced.map((one) => ({ ...one })),
    dates: dates.map(({ days, ...one }) => ({ ...one, days: [...days] })),
  };
}

/** The key of an upstream's end in the state, which no stream has. */
export function endsKey(upstream: string): string {
  return `${upstream}#ends`;
}

/** The upstream of this key; null: another key. */
export function upstreamAt(key: string): string | null {
  return /^(.+)#ends$/.exec(key)?.[1] ?? null;
}

/** Parses the stored value; null: unreadable. */
export function parseEndsHeld(held: unknown): HeldEnds | null {
  return heldEnds.safeParse(held).data ?? null;
}

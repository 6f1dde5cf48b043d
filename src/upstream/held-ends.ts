// The stored state of an upstream's end: the dates that its responses announced, and the events
// emitted for each date. It is one checkpoint, so that an event and its record become durable
// together. An unreadable value counts as nothing stored.

import { z } from 'zod';
import type { Json } from '../contracts/index.ts';
import type { AnnouncedEnd } from './ends.ts';

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

// What the state has of an upstream's end: the dates that its responses announced, and the events that
// were emitted for each date. It is one checkpoint, so that an event and its record are one transaction.
// A value that cannot be read counts as nothing stored.

import { z } from 'zod';
import type { Json } from '../contracts/json.ts';
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
      /** Of `eventDays` those that have passed: their event was emitted, or a nearer one instead. */
      days: z.array(z.number()),
      /** When its last event was emitted, epoch milliseconds; null: there was none. */
      emittedAt: ms,
    }),
  ),
});

/** What is stored under `endsKey`. */
export type HeldEnds = Readonly<z.infer<typeof heldEnds>>;

/** A date that an upstream had, with the events that are behind it. */
export type DateOfEnd = HeldEnds['dates'][number];

/** The same as it is stored. */
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

/** The name that the end of an upstream is stored by, which no stream has. */
export function endsKey(upstream: string): string {
  return `${upstream}#ends`;
}

/** The upstream whose end is stored by this name; null: it is another name. */
export function upstreamAt(key: string): string | null {
  return /^(.+)#ends$/.exec(key)?.[1] ?? null;
}

/** What is stored; null: nothing that can be read. */
export function parseEndsHeld(held: unknown): HeldEnds | null {
  return heldEnds.safeParse(held).data ?? null;
}

// What is held of an upstream's look-ups: their rows, and how it went to read them. What cannot be
// read is as if nothing had been looked up yet.

import { z } from 'zod';
import { lookupNames } from '../contracts/lookups.ts';

const table = z.object({
  /** When it was read last, epoch milliseconds; null: never. */
  at: z.number().nullable(),
  names: z.array(z.tuple([z.int(), z.string()])),
  /** Why it could not be read lately; null: it could. */
  error: z.string().nullable(),
});

const held = z.object({
  version: z.literal(1),
  tables: z.partialRecord(z.enum(lookupNames), table),
});

/** What is held of an upstream's look-ups, under `lookupsKey`. */
export type HeldLookups = z.infer<typeof held>;

/** The name that an upstream's look-ups are held by, which no stream has. */
export function lookupsKey(upstream: string): string {
  return `${upstream}#lookups`;
}

/** Whose look-ups are held by this name; null: nobody's. */
export function lookedUpAt(key: string): string | null {
  return /^(.+)#lookups$/.exec(key)?.[1] ?? null;
}

/** Look-ups as they are held; none where that cannot be read. */
export function parseLookups(body: unknown): HeldLookups {
  return held.safeParse(body).data ?? { version: 1, tables: {} };
}

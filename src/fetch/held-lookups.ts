// The stored look-ups of an upstream: their rows, and the result of the last reading. State that cannot be read counts
// as no look-ups.

import { z } from 'zod';
import { lookupNames } from '../contracts/config.ts';

const table = z.object({
  /** When it was last read, epoch milliseconds; null: never. */
  at: z.number().nullable(),
  names: z.array(z.tuple([z.int(), z.string()])),
  /** Why the last reading failed; null: it did not. */
  error: z.string().nullable(),
});

const held = z.object({
  version: z.literal(1),
  tables: z.partialRecord(z.enum(lookupNames), table),
});

/** The stored look-ups of an upstream, under `lookupsKey`. */
export type HeldLookups = z.infer<typeof held>;

/** The name under which an upstream's look-ups are stored; no stream has this name. */
export function lookupsKey(upstream: string): string {
  return `${upstream}#lookups`;
}

/** The upstream whose look-ups have this name; null: another name. */
export function lookedUpAt(key: string): string | null {
  return /^(.+)#lookups$/.exec(key)?.[1] ?? null;
}

/** Parses stored look-ups; none if they cannot be read. */
export function parseLookups(body: unknown): HeldLookups {
  return held.safeParse(body).data ?? { version: 1, tables: {} };
}

// What the watch over a trail remembers: changes and audit events that wait for each other, when
// each configuration was read, and which kinds of things have ever met. Items are rows of the state
// database, the rest is one checkpoint, all committed with the findings that follow from them. What
// cannot be read back is forgotten, and nothing from before that is judged.

import { z } from 'zod';

/** What was done to an entity. */
export type DriftOperation = z.infer<typeof operation>;

const operation = z.enum(['created', 'updated', 'deleted']);
const keys = z.array(z.string());

const change = z.object({
  is: z.literal('change'),
  uid: z.string(),
  source: z.string(),
  stream: z.string(),
  company: z.string().nullable(),
  /** Ids of the entity and its parent. */
  keys,
  operation,
  kind: z.string(),
  name: z.string(),
  /** It happened between these; null: nobody knows since when it can have. */
  from: z.number().nullable(),
  to: z.number(),
  state: z.enum(['open', 'withheld', 'done']),
});

const event = z.object({
  is: z.literal('event'),
  uid: z.string(),
  source: z.string(),
  company: z.string().nullable(),
  keys,
  /** What upstream calls such a thing; empty: nothing. */
  type: z.string(),
  action: z.string(),
  actor: z.string().nullable(),
  at: z.number(),
  /** Null: it changes something, in a way that nobody knows. */
  operation: operation.nullable(),
  state: z.enum(['open', 'shown', 'told']),
});

/** A change that was told, and may still find its audit event. */
export type OpenChange = z.infer<typeof change>;
/** An audit event of a change, which may still be shown by a reading. */
export type OpenEvent = z.infer<typeof event>;
/** Either. */
export type OpenItem = OpenChange | OpenEvent;

const item = z.discriminatedUnion('is', [change, event]);

const checkpoint = z.object({
  version: z.literal(1),
  kind: z.literal('drift'),
  /** The next event in the spool to look at. */
  next: z.int(),
  /** All audit events from here on are known; epoch milliseconds. */
  since: z.number(),
  /** When each stream's configuration was last read whole, oldest first, those in between left out. */
  readings: z.record(z.string(), z.array(z.number())),
  /** By changed source. */
  sources: z.record(
    z.string(),
    z.object({
      /** Some change has found its event: ids meet. */
      matched: z.boolean(),
      /** Changes that have found none before one did. */
      alone: z.int(),
      /** What its entities are called in the trail. */
      types: z.array(z.string()),
    }),
  ),
});

/** All but the items. */
export type DriftCheckpoint = z.infer<typeof checkpoint>;

/** The name that all this is held by, and the position of its reader, which no stream or sink has. */
export const driftKey = '#drift';

/** Reads a checkpoint back; null where there is none. */
export function parseDrift(held: unknown): DriftCheckpoint | null {
  return checkpoint.safeParse(held).data ?? null;
}

/** Reads an item back; null where it cannot be read. */
export function parseOpenItem(body: string): OpenItem | null {
  try {
    return item.safeParse(JSON.parse(body)).data ?? null;
  } catch {
    return null;
  }
}

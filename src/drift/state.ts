// The stored state of the comparison: changes and audit events that wait for each other, the times
// of each configuration's scans, and the kinds of entities that have ever matched. Items are rows
// of the state database, the rest is one checkpoint, all committed with the resulting findings.
// Unreadable state is dropped, and nothing from before it is judged.

import { z } from 'zod';

/** The operation on an entity. */
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
  /** It happened between these times; null: the start is unknown. */
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
  /** Upstream's name for the entity's kind; empty: none. */
  type: z.string(),
  action: z.string(),
  actor: z.string().nullable(),
  at: z.number(),
  /** Null: a change of unknown kind. */
  operation: operation.nullable(),
  state: z.enum(['open', 'shown', 'told']),
});

/** A reported change, which may still find its audit event. */
export type OpenChange = z.infer<typeof change>;
/** An audit event of a change, which a scan may still confirm. */
export type OpenEvent = z.infer<typeof event>;
/** Either. */
export type OpenItem = OpenChange | OpenEvent;

const item = z.discriminatedUnion('is', [change, event]);

const checkpoint = z.object({
  version: z.literal(1),
  kind: z.literal('drift'),
  /** The next offset to read. */
  next: z.int(),
  /** All audit events from here on are known; epoch milliseconds. */
  since: z.number(),
  /** Times of each stream's complete scans, oldest first, thinned out. */
  readings: z.record(z.string(), z.array(z.number())),
  /** By changed source. */
  sources: z.record(
    z.string(),
    z.object({
      /** Some change has found its event: the ids match. */
      matched: z.boolean(),
      /** Changes without an event before the first match. */
      alone: z.int(),
      /** The trail's names for its entity kinds. */
      types: z.array(z.string()),
    }),
  ),
});

/** The state without the items. */
export type DriftCheckpoint = z.infer<typeof checkpoint>;

/** The key of this state, and the reader name of its position, which no stream or sink has. */
export const driftKey = '#drift';

/** Parses a checkpoint; null if invalid. */
export function parseDrift(held: unknown): DriftCheckpoint | null {
  return checkpoint.safeParse(held).data ?? null;
}

/** Parses an item; null if invalid. */
export function parseOpenItem(body: string): OpenItem | null {
  try {
    return item.safeParse(JSON.parse(body)).data ?? null;
  } catch {
    return null;
  }
}

// The stored state of a collection: its checkpoint, and each entity as last reported. Invariants: both are committed in
// one transaction with their changes, so a crash repeats a generation as a whole or not at all; state that cannot be
// read halts the stream with a clear error, and a stream never restarts silently.

import { z } from 'zod';
import type { Json } from '../contracts/index.ts';
import { checkpointMismatch } from '../poll/index.ts';

const volatilePath = z.strictObject({
  kind: z.string(),
  /** In the form of `ignore`. */
  path: z.string(),
  /** Number of entities on which it changed, and two values of one of them. */
  entities: z.int(),
  first: z.string(),
  last: z.string(),
  /** When it was learned, epoch milliseconds. */
  at: z.number(),
});

const collectionCheckpoint = z.strictObject({
  version: z.literal(1),
  kind: z.literal('snapshot'),
  fingerprint: z.string(),
  /** New each time the stream starts from nothing: its baseline is not a change. */
  epoch: z.string(),
  /** Number of readings. */
  generation: z.int(),
  /** `open` until the first complete reading: entities seen until then existed before. */
  baseline: z.enum(['open', 'told']),
  /** Incomplete readings in a row. */
  incomplete: z.int(),
  /** The company was denied or gone at the last reading, and this was reported. */
  scopeLost: z.boolean(),
  /** So many entities were missing at the last reading that removals are held back. */
  suspect: z.boolean(),
  /** The entities known while the baseline is open were reported when they were seen. */
  statesTold: z.boolean().optional(),
  /** The state of the rotation of requests by id. */
  rotation: z.strictObject({ at: z.number(), time: z.number() }).optional(),
  /** The list had no end at the last reading, and this was reported. */
  endless: z.boolean().optional(),
  /** Paths that were learned as volatile. */
  volatile: z.array(volatilePath).optional(),
  /** Number of entities with an unlearned value that differs at each reading, and examples. */
  unstable: z
    .strictObject({
      entities: z.int(),
      examples: z.array(z.strictObject({ kind: z.string(), id: z.string(), path: z.string() })),
    })
    .optional(),
  /** Number of unreported returns to a reported value. */
  flaps: z.int().optional(),
});

/** A path that was learned as volatile. */
export type VolatilePath = Readonly<z.infer<typeof volatilePath>>;

/** A collection's checkpoint. */
export type CollectionCheckpoint = Readonly<z.infer<typeof collectionCheckpoint>>;

/** A value that differs from the last reported one and waits for confirmation. */
const pendingPath = z.strictObject({
  /** Its key, as in paths.ts; empty: the whole entity. */
  key: z.string(),
  /** Its path in the form of `ignore`. */
  path: z.string(),
  /** When its latest value was first seen, epoch milliseconds. */
  at: z.number(),
  /** Readings that showed a difference since the last report. */
  readings: z.int(),
  /** Values of consecutive readings, each different from the previous one; the latest last. */
  values: z.array(z.string()),
  /** It was reported unconfirmed because it differs at each reading. */
  unstable: z.boolean().optional(),
});

/** A value that differs from the last reported one and waits for confirmation. */
export type PendingPath = Readonly<z.infer<typeof pendingPath>>;

/** The form of versions before 0.3: a digest of the whole content. */
const seenAt = z.strictObject({ hash: z.string(), at: z.number() });

const entityState = z.strictObject({
  kind: z.string(),
  id: z.string(),
  name: z.string().optional(),
  parentId: z.string().optional(),
  list: z.string().optional(),
  /** Number of reported contents. */
  version: z.int(),
  hash: z.string(),
  /** The last reported text, as upstream sent it; a lossless text (tools/lossless-text.ts). */
  text: z.string(),
  /**
   * U+FFFD in the text is what upstream sent. Versions before 0.3 wrote it for each byte that is not UTF-8, so this is
   * set if the text has the character.
   */
  lossless: z.literal(true).optional(),
  /** A digest of its list element then; versions before 0.2 stored none. */
  listed: z.string().optional(),
  /** Since when it is denied by id, epoch milliseconds; the last reported state stays. */
  deniedAt: z.number().optional(),
  /** Seen values that wait for confirmation. */
  pending: z.union([z.strictObject({ paths: z.array(pendingPath) }), seenAt]).nullable(),
  /** The previous content and when it was replaced: an immediate return to it is a flap. */
  previous: z
    .strictObject({
      hash: z.string(),
      at: z.number(),
      /** The values reported as changed; absent before version 0.3. */
      paths: z
        .array(z.strictObject({ key: z.string(), value: z.string(), at: z.number() }))
        .optional(),
    })
    .nullable(),
  /** Consecutive complete readings without it, and the time of the first. */
  absent: z.strictObject({ since: z.number(), count: z.int() }).nullable(),
});

/** An entity as last reported. */
export type EntityState = Readonly<z.infer<typeof entityState>>;

/** True if bytes that are not UTF-8 may be missing from the text: an older version wrote it. */
export function isOfOldText({ text, lossless }: Pick<EntityState, 'text' | 'lossless'>): boolean {
  return lossless !== true && text.includes('\ufffd');
}

/** The checkpoint of a stream that has read nothing. */
export function freshCollectionCheckpoint(
  fingerprint: string,
  epoch: string,
): CollectionCheckpoint {
  return {
    version: 1,
    kind: 'snapshot',
    fingerprint,
    epoch,
    generation: 0,
    baseline: 'open',
    incomplete: 0,
    scopeLost: false,
    suspect: false,
  };
}

/** Parses a checkpoint; null: it is not a collection's checkpoint. */
export function parseCollectionCheckpoint(held: Json): CollectionCheckpoint | null {
  return collectionCheckpoint.safeParse(held).data ?? null;
}

/** Parses a checkpoint. Throws `checkpoint_mismatch` if it does not belong to this stream. */
export function readCollectionCheckpoint(
  stream: string,
  held: Json,
  fingerprint: string,
): CollectionCheckpoint {
  const parsed = parseCollectionCheckpoint(held);
  if (parsed === null) {
    throw checkpointMismatch(stream, 'it cannot be read, or was written by another version');
  }
  if (parsed.fingerprint !== fingerprint) {
    throw checkpointMismatch(stream, 'base address, company or path has changed since');
  }
  return parsed;
}

/** Parses an entity's state. Throws `checkpoint_mismatch` if it cannot be read. */
export function readEntityState(stream: string, body: string): EntityState {
  try {
    return entityState.parse(JSON.parse(body));
  } catch {
    throw checkpointMismatch(stream, 'an entity of its last reading cannot be read');
  }
}

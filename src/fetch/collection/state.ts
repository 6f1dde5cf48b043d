// What a collection keeps: its checkpoint, and each entity as it was last told. Both are committed
// in one transaction with the changes that lead to them, so a crash either repeats a whole
// generation or none of it. As with lists, state that cannot be read halts its stream with a clear
// message; nothing is ever silently begun anew.

import { z } from 'zod';
import type { Json } from '../../contracts/json.ts';
import { checkpointMismatch } from '../outcome.ts';

const volatilePath = z.strictObject({
  kind: z.string(),
  /** As `ignore` names it. */
  path: z.string(),
  /** How many entities it moved on, and values of one of them. */
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
  /** New whenever the stream is started anew: its baseline is not a change. */
  epoch: z.string(),
  /** Readings so far. */
  generation: z.int(),
  /** `open` until the first complete reading: what is seen until then was there before. */
  baseline: z.enum(['open', 'told']),
  /** Incomplete readings in a row. */
  incomplete: z.int(),
  /** The company was denied or gone at the last reading, and this was told. */
  scopeLost: z.boolean(),
  /** So much was missing at the last reading that removals are held. */
  suspect: z.boolean(),
  /** The entities known while the baseline is open were told as they were met. */
  statesTold: z.boolean().optional(),
  /** Where the rotation of those asked by their ids stands, and since when. */
  rotation: z.strictObject({ at: z.number(), time: z.number() }).optional(),
  /** The list had no end at the last reading, and this was told. */
  endless: z.boolean().optional(),
  /** Paths that were learned as volatile. */
  volatile: z.array(volatilePath).optional(),
  /** Entities with a value that differs at each reading and is not learned, and some of them. */
  unstable: z
    .strictObject({
      entities: z.int(),
      examples: z.array(z.strictObject({ kind: z.string(), id: z.string(), path: z.string() })),
    })
    .optional(),
  /** Returns to a reported value that were not reported. */
  flaps: z.int().optional(),
});

/** A path that was learned as volatile. */
export type VolatilePath = Readonly<z.infer<typeof volatilePath>>;

/** a collection's checkpoint. */
export type CollectionCheckpoint = Readonly<z.infer<typeof collectionCheckpoint>>;

/** A value that differs from the last reported one and is to be confirmed. */
const pendingPath = z.strictObject({
  /** Where it is, as in paths.ts; empty: the whole entity. */
  key: z.string(),
  /** The same as `ignore` names it. */
  path: z.string(),
  /** When its latest value was first seen, epoch milliseconds. */
  at: z.number(),
  /** Readings that showed a difference since it was last reported. */
  readings: z.int(),
  /** The last values of readings in a row, each other than the one before it; the latest last. */
  values: z.array(z.string()),
  /** It was reported without being confirmed, since it differs at each reading. */
  unstable: z.boolean().optional(),
});

/** A value that differs from the last reported one and is to be confirmed. */
export type PendingPath = Readonly<z.infer<typeof pendingPath>>;

/** As versions before 0.3 kept it: a digest of the whole content. */
const seenAt = z.strictObject({ hash: z.string(), at: z.number() });

const entityState = z.strictObject({
  kind: z.string(),
  id: z.string(),
  name: z.string().optional(),
  parentId: z.string().optional(),
  list: z.string().optional(),
  /** Counts the contents told. */
  version: z.int(),
  hash: z.string(),
  /** As it was reported last, and as upstream sent it; a lossless text (tools/lossless-text.ts). */
  text: z.string(),
  /**
   * U+FFFD in the text is what upstream sent. Versions before 0.3 wrote it for each byte that is not
   * UTF-8, so it is set where the text has such a character.
   */
  lossless: z.literal(true).optional(),
  /** A digest of what the list showed of it then; versions before 0.2 kept none. */
  listed: z.string().optional(),
  /** Since when it is denied by its id, epoch milliseconds; what was told stays. */
  deniedAt: z.number().optional(),
  /** Values that were seen and are still to be confirmed. */
  pending: z.union([z.strictObject({ paths: z.array(pendingPath) }), seenAt]).nullable(),
  /** The content before this one and when it was left: going back to it at once is a flap. */
  previous: z
    .strictObject({
      hash: z.string(),
      at: z.number(),
      /** The values that were reported as changed; left out by versions before 0.3. */
      paths: z
        .array(z.strictObject({ key: z.string(), value: z.string(), at: z.number() }))
        .optional(),
    })
    .nullable(),
  /** Complete readings in a row that it was missing from, and when the first was. */
  absent: z.strictObject({ since: z.number(), count: z.int() }).nullable(),
});

/** An entity as it was told last. */
export type EntityState = Readonly<z.infer<typeof entityState>>;

/** True where bytes that are not UTF-8 may be missing in the text: an older version wrote it. */
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

/** Reads a checkpoint's text back; null where it is none of a collection. */
export function parseCollectionCheckpoint(held: Json): CollectionCheckpoint | null {
  return collectionCheckpoint.safeParse(held).data ?? null;
}

/** Reads a checkpoint back. Throws `checkpoint_mismatch` when it is not one of this stream. */
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

/** Reads an entity back. Throws `checkpoint_mismatch` when it cannot be read. */
export function readEntityState(stream: string, body: string): EntityState {
  try {
    return entityState.parse(JSON.parse(body));
  } catch {
    throw checkpointMismatch(stream, 'an entity of its last reading cannot be read');
  }
}

// The stored state of a parents stream: its own checkpoint, and for each parent its state beside its list's checkpoint.
// Invariant: a checkpoint that cannot be read halts the stream with a clear error.

import { z } from 'zod';
import type { Json, JsonObject } from '../contracts/index.ts';
import { checkpointMismatch } from '../poll/index.ts';

const parentsCheckpoint = z.strictObject({
  version: z.literal(1),
  kind: z.literal('parents'),
  fingerprint: z.string(),
  /** New each time the stream starts from nothing. */
  epoch: z.string(),
  /** When it started; with `start: now`, earlier records are not requested. */
  begunAt: z.number(),
  /** How long the last parent requested in rotation had waited, milliseconds; null: none yet. */
  rotationMs: z.number().nullable(),
  /** When each condition shared by many parents was last reported. */
  told: z.record(z.string(), z.number()),
});

/** A parents stream's checkpoint. */
export type ParentsCheckpoint = Readonly<z.infer<typeof parentsCheckpoint>>;

const parentState = z.object({
  /** When it was last answered, and when its last change was seen. */
  askedAt: z.number(),
  changedAt: z.number(),
  /** Since when it is rejected or fails, how often in a row, and whether it was reported as lost. */
  refused: z
    .strictObject({
      since: z.number(),
      isFailing: z.boolean().default(false),
      times: z.int(),
      told: z.boolean(),
    })
    .nullable()
    .default(null),
  /** Of an object: the digest of the last reported content, and the number of reported contents. */
  digest: z.string().default(''),
  version: z.int().default(0),
  /** Of a list: its last end, and the number of records there. */
  end: z.strictObject({ place: z.string(), count: z.int() }).nullable().default(null),
});

/** The state of one parent. */
export type ParentState = Readonly<z.infer<typeof parentState>>;

/** The checkpoint of a stream that has read nothing. */
export function freshParentsCheckpoint(
  fingerprint: string,
  epoch: string,
  now: number,
): ParentsCheckpoint {
  const nothing = { rotationMs: null, told: {} };
  return { version: 1, kind: 'parents', fingerprint, epoch, begunAt: now, ...nothing };
}

/** Parses a checkpoint; null: it is not a parents stream's checkpoint. */
export function parseParentsCheckpoint(held: Json): ParentsCheckpoint | null {
  return parentsCheckpoint.safeParse(held).data ?? null;
}

/** Parses a checkpoint. Throws `checkpoint_mismatch` if it does not belong to this stream. */
export function readParentsCheckpoint(
  stream: string,
  held: Json,
  fingerprint: string,
): ParentsCheckpoint {
  const parsed = parseParentsCheckpoint(held);
  if (parsed === null) {
    throw checkpointMismatch(stream, 'it cannot be read, or was written by another version');
  }
  if (parsed.fingerprint !== fingerprint) {
    throw checkpointMismatch(stream, 'base address, path or fixed parameters have changed since');
  }
  return parsed;
}

/** Parses a parent's state; an unreadable one counts as a new parent. */
export function readParentState(held: JsonObject | null, now: number): ParentState {
  const fresh = { askedAt: 0, changedAt: now };
  const state = parentState.parse(parentState.safeParse(held).data ?? fresh);
  // By a clock that was ahead. A change in the future would count as recent until then, at each poll.
  return { ...state, changedAt: Math.min(state.changedAt, now) };
}

/** The parents of a stream as status shows them. */
export interface ParentsState {
  readonly known: number;
  /** Parents with a recent change. */
  readonly active: number;
  /** `lost`: denied, gone or failing; `ended`: no longer changing. */
  readonly lost: number;
  readonly ended: number;
  /** Parents to be requested now. */
  readonly due: number;
  /** How long the last parent requested in rotation had waited, milliseconds; null: none yet. */
  readonly rotation_ms: number | null;
}

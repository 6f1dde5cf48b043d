// What a stream of parents keeps: its own checkpoint, and for each parent what is known of it
// beside its list's checkpoint. As with lists, state that cannot be read halts its stream with a
// clear message.

import { z } from 'zod';
import type { Json, JsonObject } from '../../contracts/json.ts';
import { checkpointMismatch } from '../outcome.ts';

const parentsCheckpoint = z.strictObject({
  version: z.literal(1),
  kind: z.literal('parents'),
  fingerprint: z.string(),
  /** New whenever the stream is started anew. */
  epoch: z.string(),
  /** When it was; records from before it are not wanted with `start: now`. */
  begunAt: z.number(),
  /** How long the parent asked last in rotation had waited for it; null: none came round yet. */
  rotationMs: z.number().nullable(),
  /** When a condition that many parents share was told last. */
  told: z.record(z.string(), z.number()),
});

/** A parents stream's checkpoint. */
export type ParentsCheckpoint = Readonly<z.infer<typeof parentsCheckpoint>>;

const parentState = z.object({
  /** When it was answered last, and when something new came of it last. */
  askedAt: z.number(),
  changedAt: z.number(),
  /**
   * It was refused, or failed, ever since; how often it was either in a row, and whether it was
   * told as lost.
   */
  refused: z
    .strictObject({
      since: z.number(),
      isFailing: z.boolean().default(false),
      times: z.int(),
      told: z.boolean(),
    })
    .nullable()
    .default(null),
  /** Of an object: the content told last, and how many were. */
  digest: z.string().default(''),
  version: z.int().default(0),
  /** Of a list: where its end was, and how many records stood there. */
  end: z.strictObject({ place: z.string(), count: z.int() }).nullable().default(null),
});

/** What is known of one parent. */
export type ParentState = Readonly<z.infer<typeof parentState>>;

/** The checkpoint of a stream that has asked for nothing. */
export function freshParentsCheckpoint(
  fingerprint: string,
  epoch: string,
  now: number,
): ParentsCheckpoint {
  const nothing = { rotationMs: null, told: {} };
  return { version: 1, kind: 'parents', fingerprint, epoch, begunAt: now, ...nothing };
}

/** Reads a checkpoint's text back; null where it is none of parents. */
export function parseParentsCheckpoint(held: Json): ParentsCheckpoint | null {
  return parentsCheckpoint.safeParse(held).data ?? null;
}

/** Reads a checkpoint back. Throws `checkpoint_mismatch` when it is not one of this stream. */
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

/** Reads back what is known of a parent; of one that cannot be read, as of a new one. */
export function readParentState(held: JsonObject | null, now: number): ParentState {
  const fresh = { askedAt: 0, changedAt: now };
  return parentState.parse(parentState.safeParse(held).data ?? fresh);
}

/** What status shows of a stream's parents. */
export interface ParentsState {
  readonly known: number;
  /** Something new came of them lately. */
  readonly active: number;
  /** Denied or gone, or failing; and those that change no more. */
  readonly lost: number;
  readonly ended: number;
  /** They are to be asked now. */
  readonly due: number;
  /** How long the one that was asked last in rotation had waited for it; null: none came round. */
  readonly rotation_ms: number | null;
}

// The metadata stored with a committed position: the epoch of its offset and, while the topic has
// records that the state does not know, their location.

import { z } from 'zod';

const rangesShape = z.record(z.string(), z.tuple([z.string(), z.string()]).readonly()).readonly();
const noteShape = z.object({
  epoch: z.number(),
  unknown: z.union([rangesShape, z.literal('newest')]).optional(),
});
/** `offset.metadata.max.bytes` of the brokers is 4,096 by default. */
const noteBytesMax = 4_000;

/** `unknown` absent: none. `newest`: among the newest, in more partitions than fit a note. */
export type CommittedNote = Readonly<z.output<typeof noteShape>>;

/** Parses a note; version 0.1.0 wrote none, and used the epoch 0. */
export function readCommittedNote(text: string): CommittedNote {
  try {
    return noteShape.parse(JSON.parse(text));
  } catch {
    return { epoch: 0 };
  }
}

/** A note as text within the brokers' limit. */
export function writtenNote(note: CommittedNote): string {
  const text = JSON.stringify(note);
  if (text.length <= noteBytesMax) return text;
  return JSON.stringify({ ...note, unknown: 'newest' } satisfies CommittedNote);
}

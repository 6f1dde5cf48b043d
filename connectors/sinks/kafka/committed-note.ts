// What is kept with the position that a transaction commits: the epoch that gave its number, and,
// while records stand in the topic that the state knew nothing of, where they do.

import { z } from 'zod';

const rangesShape = z.record(z.string(), z.tuple([z.string(), z.string()]).readonly()).readonly();
const noteShape = z.object({
  epoch: z.number(),
  unknown: z.union([rangesShape, z.literal('newest')]).optional(),
});
/** `offset.metadata.max.bytes` of the brokers is 4,096 unless it is set. */
const noteBytesMax = 4_000;

/** `unknown` left out: nothing. `newest`: among the newest, in more partitions than are noted. */
export type CommittedNote = Readonly<z.output<typeof noteShape>>;

/** Reads a note; version 0.1.0 left none, and gave numbers of the epoch 0. */
export function readCommittedNote(text: string): CommittedNote {
  try {
    return noteShape.parse(JSON.parse(text));
  } catch {
    return { epoch: 0 };
  }
}

/** A note as text that the brokers take. */
export function writtenNote(note: CommittedNote): string {
  const text = JSON.stringify(note);
  if (text.length <= noteBytesMax) return text;
  return JSON.stringify({ ...note, unknown: 'newest' } satisfies CommittedNote);
}

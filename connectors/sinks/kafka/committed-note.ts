// What is kept with the position that a transaction commits: the epoch that gave its number, and, while records stand in the
// topic that the state knew nothing of, where they do.

import { z } from 'zod';

/** By partition: offsets from the first to behind the last. */
export type Ranges = Readonly<Record<string, readonly [from: string, to: string]>>;

const noteShape = z.object({
  epoch: z.number(),
  unknown: z.record(z.string(), z.tuple([z.string(), z.string()])).optional(),
});

/** The note of a committed position. */
export interface CommittedNote {
  readonly epoch: number;
  /** Left out: there are none. */
  readonly unknown?: Ranges | undefined;
}

/** Reads a note; version 0.1.0 left none, and gave numbers of the epoch 0. */
export function readCommittedNote(text: string): CommittedNote {
  try {
    return noteShape.parse(JSON.parse(text));
  } catch {
    return { epoch: 0 };
  }
}

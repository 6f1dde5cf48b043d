// Checkpoints as they are found: the newest one, and those that were kept. What must stay true: they
// are looked for by their sizes, not in the order of their names, which are of the clock of whoever
// wrote them, and that may have gone back; and what else lies beside them is none.

import { type Checkpoint, parseCheckpoint } from '../checkpoint.ts';
import { keptCheckpointsPrefix } from '../layout.ts';
import { parseNote } from '../note.ts';
import type { ArchiveReader } from '../reader.ts';

const keptPattern = /^checkpoints\/\d{4}\/\d\d\/\d\d\/(\d{20})\.(note|tsr|cosig)$/;

/** A checkpoint as it was found. */
export interface FoundCheckpoint {
  /** Null where there is none at all. */
  readonly bytes: Uint8Array | null;
  readonly checkpoint: Checkpoint;
}

/** A checkpoint that was kept, or what others have said of it, as its name tells. */
export interface KeptObject {
  readonly name: string;
  /** Entries under the checkpoint. */
  readonly size: number;
  /** True for the checkpoint itself. */
  readonly isNote: boolean;
}

/** What a note says, whoever has signed it; null where it is no checkpoint. */
export function headOf(bytes: Uint8Array): FoundCheckpoint | null {
  try {
    return { bytes, checkpoint: parseCheckpoint(parseNote(bytes).text) };
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** All that was kept, by days. */
export async function* keptObjects({ store }: ArchiveReader): AsyncGenerator<KeptObject> {
  for await (const { name } of store.list(keptCheckpointsPrefix)) {
    const [, size, kind] = keptPattern.exec(name) ?? [];
    if (size !== undefined) yield { name, size: Number(size), isNote: kind === 'note' };
  }
}

/** The checkpoint of most entries; null where none was kept, or it is damaged. */
export async function newestKept(reader: ArchiveReader): Promise<FoundCheckpoint | null> {
  let newest: KeptObject | null = null;
  for await (const kept of keptObjects(reader)) {
    if (kept.isNote && (newest === null || kept.size >= newest.size)) newest = kept;
  }
  const bytes = newest === null ? null : await reader.small(newest.name);
  return bytes === null ? null : headOf(bytes);
}

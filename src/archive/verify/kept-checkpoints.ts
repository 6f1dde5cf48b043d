// The stored checkpoints: the newest one, and the permanent copies. Invariants: copies are ordered by size and not by
// name, because names contain the writer's clock, which may have been set back; other objects beside them are ignored.

import { type Checkpoint, parseCheckpoint } from '../checkpoint.ts';
import { keptCheckpointsPrefix } from '../layout.ts';
import { parseNote } from '../note.ts';
import type { ArchiveReader } from '../reader.ts';

const keptPattern = /^checkpoints\/\d{4}\/\d\d\/\d\d\/(\d{20})\.(note|tsr|cosig)$/;

/** A checkpoint as found. */
export interface FoundCheckpoint {
  /** Null: there is none. */
  readonly bytes: Uint8Array | null;
  readonly checkpoint: Checkpoint;
}

/** A copy of a checkpoint, or an external proof for it, by its name. */
export interface KeptObject {
  readonly name: string;
  /** Entries under the checkpoint. */
  readonly size: number;
  /** True for the checkpoint itself. */
  readonly isNote: boolean;
}

/** The content of a note with any signature; null: it is no checkpoint. */
export function headOf(bytes: Uint8Array): FoundCheckpoint | null {
  try {
    return { bytes, checkpoint: parseCheckpoint(parseNote(bytes).text) };
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** All copies and proofs, by day. */
export async function* keptObjects({ store }: ArchiveReader): AsyncGenerator<KeptObject> {
  for await (const { name } of store.list(keptCheckpointsPrefix)) {
    const [, size, kind] = keptPattern.exec(name) ?? [];
    if (size !== undefined) yield { name, size: Number(size), isNote: kind === 'note' };
  }
}

/** The copy with the most entries; null: there is none, or it is damaged. */
export async function newestKept(reader: ArchiveReader): Promise<FoundCheckpoint | null> {
  let newest: KeptObject | null = null;
  for await (const kept of keptObjects(reader)) {
    if (kept.isNote && (newest === null || kept.size >= newest.size)) newest = kept;
  }
  const bytes = newest === null ? null : await reader.small(newest.name);
  return bytes === null ? null : headOf(bytes);
}

// The reasons why an archive cannot be opened for writing, with the next steps.

import { ExportError, errorText } from '../contracts/index.ts';
import type { ObjectStore } from '../objects/index.ts';
import { NewerEntryError } from './entries.ts';
import { checkpointPath, NewerFormatError } from './layout.ts';

/** Another key signs the archive. */
export class OtherKeyError extends SyntaxError {
  override readonly name = 'OtherKeyError';
}

/** Its newest checkpoint is missing or older than this existing copy. */
export class CheckpointGoneError extends SyntaxError {
  override readonly name = 'CheckpointGoneError';
  readonly copy: string;

  constructor(message: string, copy: string) {
    super(message);
    this.copy = copy;
  }
}

/**
 * A permanent copy has a larger size in its name than the newest checkpoint, and the archive's key has not signed it.
 */
export class UnprovenCopyError extends SyntaxError {
  override readonly name = 'UnprovenCopyError';
  readonly copy: string;

  constructor(copy: string, size: number) {
    super(
      `${copy} is newer by its name than the checkpoint of ${size} entries, and the archive’s key has not signed it: it is damaged, or another account put it there`,
    );
    this.copy = copy;
  }
}

/** The process does not see the archive that its state has written. */
export class ElsewhereError extends SyntaxError {
  override readonly name = 'ElsewhereError';
}

/** Runs `work`. Replaces a SyntaxError by an ExportError with the next step. */
export async function reported<T>({ location }: ObjectStore, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new ExportError('sink_refused', `opening the archive ${location}: ${errorText(error)}`, {
      next: `${nextOf(error)}; or use another location. Nothing is lost: events stay in the spool.`,
      cause: error,
    });
  }
}

function nextOf(error: SyntaxError): string {
  if (error instanceof NewerFormatError || error instanceof NewerEntryError) {
    return 'Run the version of sluice that has written it, or a newer one';
  }
  if (error instanceof OtherKeyError) return 'Give the key that signs this archive';
  if (error instanceof ElsewhereError) {
    return 'Check it with `sluice archive verify`, and restore the missing objects. If several processes share a state, give all of them the same directory, as an absolute path on a network file system, or a bucket';
  }
  if (error instanceof CheckpointGoneError) {
    return `Copy ${error.copy} to ${checkpointPath}, and look at it with \`sluice archive verify\``;
  }
  if (error instanceof UnprovenCopyError) {
    return `Check the archive with \`sluice archive verify --since\` and a checkpoint from elsewhere. If it has all entries, move ${error.copy} out of the archive, and find out who wrote it; if not, restore the archive`;
  }
  return 'Check it with `sluice archive verify`, and restore the missing objects';
}

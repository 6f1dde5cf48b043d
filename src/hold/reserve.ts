// Disk space reserved in the state directory, so that sluice can recover from a full disk by
// itself. SQLite needs space even to note a position or to delete a page; without any, nothing
// could be freed, however much the sinks accept. If a write finds the disk full, this file is
// removed: writes that free space (positions, deletions) then succeed, and pages are refused until
// the file fits again. It grows with the amount to recover from, so that a short run does not write
// many megabytes for nothing. Invariant: a page never uses this space.

import {
  closeSync,
  existsSync,
  ftruncateSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { ExportError } from '../contracts/index.ts';
import { makePrivateFile } from './private-files.ts';
import { withUsedUp } from './used-up.ts';

const bytesMaxDefault = 32 * 1024 * 1024;
const bytesFirst = 4 * 1024 * 1024;
/** Of a small disk, only this share is reserved. */
const diskShareMax = 0.25;
/** Reserved again only if clearly more space is free, which gives it hysteresis. */
const roomShare = 1.25;
const chunkBytes = 1024 * 1024;

const fileName = 'reserve';

/** Runs a start; on a full disk once more, in the reserved space. */
export function withReserve<T>(dir: string, start: () => T): T {
  try {
    return start();
  } catch (cause) {
    releaseFor(cause, dir);
    return start();
  }
}

/** As `withReserve`, for a start that reads from Kafka. */
export async function withReserveOf<T>(dir: string, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (cause) {
    releaseFor(cause, dir);
    return await start();
  }
}

/** Releases the reserved space after a failure for lack of space; throws any other failure. */
function releaseFor(cause: unknown, dir: string): void {
  const path = join(dir, fileName);
  const error = cause instanceof ExportError ? withUsedUp(cause, dir) : cause;
  const isFull = error instanceof ExportError && error.code === 'disk_full';
  if (!isFull || !existsSync(path)) throw error;
  rmSync(path);
}

/** The reserved space in one directory. */
export class Reserve {
  readonly #dir: string;
  readonly #path: string;
  #bytes: number;
  #bytesMax: number;
  #held = false;

  /** Reserves as much as before, or the minimum, if the disk has space. */
  constructor(dir: string, bytesMax = bytesMaxDefault) {
    this.#dir = dir;
    this.#path = join(dir, fileName);
    const { blocks, bsize } = statfsSync(dir);
    const share = blocks === 0 ? bytesMax : Math.floor(blocks * bsize * diskShareMax);
    this.#bytesMax = Math.min(bytesMax, share);
    this.#bytes = Math.min(this.#bytesMax, Math.max(bytesFirst, this.#size()));
    this.#held = this.#fill(this.#bytes);
  }

  /** The size of the reserve while it exists. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Doubles the reserve up to its bound; false if the bound is reached or the disk has no space.
   */
  grow(): boolean {
    const requested = Math.min(this.#bytesMax, 2 * this.#bytes);
    if (!this.#held || requested <= this.#bytes) return false;
    if (this.#fill(requested)) this.#bytes = requested;
    else this.#bytesMax = this.#bytes;
    return this.#bytes === requested;
  }

  /** True while the space is reserved: pages may be written. */
  get held(): boolean {
    return this.#held;
  }

  /** Gives the space back to the disk. */
  release(): void {
    this.#held = false;
    rmSync(this.#path, { force: true });
  }

  /** Reserves the space again, if there is enough for it and more. */
  retake(): void {
    if (this.#held) return;
    const { blocks, bavail, bsize } = statfsSync(this.#dir);
    if (blocks === 0 || bavail * bsize >= this.#bytes * roomShare)
      this.#held = this.#fill(this.#bytes);
  }

  #size(): number {
    return statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Extends the file to this size; without space, restores its previous size or removes it. */
  #fill(bytes: number): boolean {
    const before = this.#size();
    if (before >= bytes) return true;
    // Not zeros, which some file systems do not store.
    const chunk = Buffer.alloc(chunkBytes, 'set aside for when the disk is full. ');
    let file: number;
    try {
      makePrivateFile(this.#path);
      file = openSync(this.#path, 'a');
    } catch {
      // The directory is gone, or has no free inode.
      return false;
    }
    try {
      for (let left = bytes - before; left > 0; )
        left -= writeSync(file, chunk, 0, Math.min(left, chunkBytes));
      return true;
    } catch {
      // Undo the partial write: without a reserve pages must wait.
      if (this.#held) ftruncateSync(file, before);
      else rmSync(this.#path, { force: true });
      return false;
    } finally {
      closeSync(file);
    }
  }
}

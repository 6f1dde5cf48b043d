// Disk space set aside in the state directory, so that sluice can work its way out of a full disk
// by itself. SQLite needs room even to note a position or to delete a page; without any, nothing
// could ever be freed, however much sinks take. So when a write finds the disk full this file is
// removed: what frees space (positions, deletions) then has room, and pages are refused until there
// is room again for the file. It grows with what there may be to work out of, so that a short run does not write many
// megabytes for nothing. What must stay true: a page never uses this space.

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
import { ExportError } from '../contracts/errors.ts';
import { makePrivateFile } from './private-files.ts';

const bytesMaxDefault = 32 * 1024 * 1024;
const bytesFirst = 4 * 1024 * 1024;
/** Of a small disk, only this share is set aside. */
const diskShareMax = 0.25;
/** Set aside anew only where much more room is there, so that it does not come and go. */
const roomShare = 1.25;
const chunkBytes = 1024 * 1024;

const fileName = 'reserve';

/** Does what a start needs; where the disk is full, once more in the space that was set aside. */
export function withReserve<T>(dir: string, start: () => T): T {
  try {
    return start();
  } catch (error) {
    const path = join(dir, fileName);
    const isFull = error instanceof ExportError && error.code === 'disk_full';
    if (!isFull || !existsSync(path)) throw error;
    rmSync(path);
    return start();
  }
}

/** The space set aside in one directory. */
export class Reserve {
  readonly #dir: string;
  readonly #path: string;
  #bytes: number;
  #bytesMax: number;
  #held = false;

  /** Sets as much aside as was before, or a little, if the disk has room for it. */
  constructor(dir: string, bytesMax = bytesMaxDefault) {
    this.#dir = dir;
    this.#path = join(dir, fileName);
    const { blocks, bsize } = statfsSync(dir);
    const share = blocks === 0 ? bytesMax : Math.floor(blocks * bsize * diskShareMax);
    this.#bytesMax = Math.min(bytesMax, share);
    this.#bytes = Math.min(this.#bytesMax, Math.max(bytesFirst, this.#size()));
    this.#held = this.#fill(this.#bytes);
  }

  /** How much is set aside while it is. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Sets twice as much aside, up to its bound; false where that, or no room for it, is reached. */
  grow(): boolean {
    const requested = Math.min(this.#bytesMax, 2 * this.#bytes);
    if (!this.#held || requested <= this.#bytes) return false;
    if (this.#fill(requested)) this.#bytes = requested;
    else this.#bytesMax = this.#bytes;
    return this.#bytes === requested;
  }

  /** True while the space is set aside: there is room for pages. */
  get held(): boolean {
    return this.#held;
  }

  /** Gives the space back to the disk. */
  release(): void {
    this.#held = false;
    rmSync(this.#path, { force: true });
  }

  /** Sets the space aside again, if there is room for it and more. */
  retake(): void {
    if (this.#held) return;
    const { blocks, bavail, bsize } = statfsSync(this.#dir);
    if (blocks === 0 || bavail * bsize >= this.#bytes * roomShare)
      this.#held = this.#fill(this.#bytes);
  }

  #size(): number {
    return statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Makes the file so large; where there is no room for it, it is again what it was, or gone. */
  #fill(bytes: number): boolean {
    const before = this.#size();
    if (before >= bytes) return true;
    // Not zeros, which some file systems do not store.
    const chunk = Buffer.alloc(chunkBytes, 'set aside for when the disk is full. ');
    makePrivateFile(this.#path);
    const file = openSync(this.#path, 'a');
    try {
      for (let left = bytes - before; left > 0; )
        left -= writeSync(file, chunk, 0, Math.min(left, chunkBytes));
      return true;
    } catch {
      // What was written goes again: without a reserve pages have to wait.
      if (this.#held) ftruncateSync(file, before);
      else rmSync(this.#path, { force: true });
      return false;
    } finally {
      closeSync(file);
    }
  }
}

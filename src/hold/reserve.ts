// Disk space set aside in the state directory, so that sluice can work its way out of a full disk
// by itself. SQLite needs room even to note a position or to delete a page; without any, nothing
// could ever be freed, however much sinks take. So when a write finds the disk full this file is
// removed: what frees space (positions, deletions) then has room, and pages are refused until there
// is room again for the file. What must stay true: a page never uses this space.

import { closeSync, existsSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { ExportError } from '../contracts/errors.ts';
import { makePrivateFile } from './private-files.ts';

const bytesMaxDefault = 32 * 1024 * 1024;
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
  readonly bytes: number;
  readonly #dir: string;
  readonly #path: string;
  #held = false;

  /** Sets the space aside, if the disk has room for it. */
  constructor(dir: string, bytesMax = bytesMaxDefault) {
    this.#dir = dir;
    this.#path = join(dir, fileName);
    const { blocks, bsize } = statfsSync(dir);
    this.bytes = Math.min(
      bytesMax,
      blocks === 0 ? bytesMax : Math.floor(blocks * bsize * diskShareMax),
    );
    this.#held = this.#size() >= this.bytes || this.#fill();
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
    if (blocks === 0 || bavail * bsize >= this.bytes * roomShare) this.#held = this.#fill();
  }

  #size(): number {
    return statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
  }

  #fill(): boolean {
    // Not zeros, which some file systems do not store.
    const chunk = Buffer.alloc(chunkBytes, 'set aside for when the disk is full. ');
    makePrivateFile(this.#path);
    const file = openSync(this.#path, 'w');
    try {
      for (let left = this.bytes; left > 0; )
        left -= writeSync(file, chunk, 0, Math.min(left, chunkBytes));
      return true;
    } catch {
      // No room: what was written goes again, and pages have to wait.
      rmSync(this.#path, { force: true });
      return false;
    } finally {
      closeSync(file);
    }
  }
}

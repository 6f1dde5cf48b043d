// A file that events are appended to, each once, although the process may die at any moment and the
// state may be restored from a copy, damaged or lost. The note beside the file (segment-note.ts)
// records its content:
//
//   begin    open the file, note that a segment begins in it
//   append   note the batch, write it, flush both
//   finish   note the finished name, rename; the next append begins a new segment
//   open     the last noted batch is complete in the file:  resume after it
//            it is partial or missing, but the one before is complete: cut the partial one, resume
//            neither (moved, replaced, emptied): cut nothing, begin a segment after the existing bytes
//
// Invariants: only the part of a batch that was never finished is cut; a file that another program
// moved, replaced, emptied or wrote to while it was open is left unchanged, and its last line is
// ended before sluice's lines begin.

import { constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import {
  ExportError,
  errorCodeOf,
  flushNames,
  makeDirectory,
  type Offset,
  type PositionReach,
  presentEpoch,
} from '../../../src/contracts/index.ts';
import { closedOnFailure, directoryMode, fileMode, writeAll } from './durable-files.ts';
import { finishedPath, renameFinished } from './segment-names.ts';
import { SegmentNote } from './segment-note.ts';
import { recover, type SegmentReach } from './segment-recovery.ts';
import type { SegmentFileSettings } from './segment-settings.ts';

/** Lines to append, with the data for their note. */
export interface SegmentLines {
  readonly bytes: Uint8Array;
  /** The sink's offsets before and after these lines. */
  readonly from: Offset;
  readonly to: Offset;
  /** The kept parts of the events' uids, concatenated. */
  readonly uids: string;
}

interface Active {
  /** Null after `park`. */
  file: FileHandle | null;
  readonly inode: number;
  readonly segment: Offset;
  readonly since: number;
  /** True until the first append if the file's last line, from another program, was not ended. */
  torn: boolean;
  /** Length that is covered by notes. */
  bytes: number;
  /** True from before a write until its flush: bytes after `bytes` are sluice's and may be cut. */
  unsure: boolean;
  /** False until the note names the segment of this epoch. */
  noted: boolean;
}

/** Opened by `openSegmentFile`; one append at a time. */
export class SegmentFile {
  /** The sink's position according to the file. */
  readonly reach: PositionReach;
  /** Events in the file that the state does not know, by the kept part of their uids. */
  readonly known: Set<string>;
  readonly #settings: SegmentFileSettings;
  readonly #note: SegmentNote;
  #active: Active | null;

  constructor(
    settings: SegmentFileSettings,
    { reach, known, active }: SegmentReach & { readonly active: Active | null },
  ) {
    this.#settings = settings;
    this.#note = new SegmentNote(settings.path, settings.flush);
    this.reach = reach;
    this.known = known;
    this.#active = active;
  }

  /** Appends whole lines. Resolves once they are durable; if it rejects, none of them stays. */
  async append({ bytes: lines, from, to, uids }: SegmentLines, nowMs: number): Promise<void> {
    await this.#leaveIfChanged();
    if (this.#isFull(lines.length, nowMs)) await this.#finish();
    this.#active ??= await this.#begin(from, nowMs);
    const active = this.#active;
    active.file ??= await openAgain(this.#settings.path, active.inode);
    const { file } = active;
    if (active.unsure) await file.truncate(active.bytes);
    active.unsure = false;
    if (this.#note.isFull) {
      await this.#note.turn();
      active.noted = false;
    }
    if (!active.noted) await this.#noteSegment(active);
    const bytes = active.torn ? Buffer.concat([Buffer.from('\n'), lines]) : lines;
    const end = active.bytes + bytes.length;
    await this.#note.add(['batch', from, to, active.bytes, end, crc32(bytes), uids]);
    active.unsure = true;
    await writeAll(file, bytes, active.bytes);
    if (this.#settings.flush) await file.datasync();
    active.bytes = end;
    active.unsure = false;
    active.torn = false;
  }

  /** Cuts the rest of a failed append, and closes the file. */
  async close(): Promise<void> {
    await this.park();
    this.#active = null;
  }

  /** As `close`, and the next append opens the file again. Meanwhile another process may write to it. */
  async park(): Promise<void> {
    const active = this.#active;
    const file = active?.file ?? null;
    try {
      await this.#note.close();
      if (active?.unsure) {
        await file?.truncate(active.bytes);
        active.unsure = false;
      }
    } finally {
      if (active !== null) {
        active.file = null;
        // Another process may note a segment of its own meanwhile.
        active.noted = false;
      }
      await file?.close();
    }
  }

  async #noteSegment(active: Active): Promise<void> {
    const { numbering, sink } = this.#settings;
    const { segment, since, inode, bytes } = active;
    const epoch = presentEpoch(numbering);
    await this.#note.add(['segment', numbering.spool, epoch, segment, since, inode, bytes]);
    await this.#note.add(['sink', sink]);
    active.noted = true;
  }

  /** A file that was moved, deleted, cut or written to by another program is not continued. */
  async #leaveIfChanged(): Promise<void> {
    const active = this.#active;
    if (active === null) return;
    const found = await statOf(this.#settings.path);
    const same = found?.ino === active.inode;
    if (same && (found.size === active.bytes || (active.unsure && found.size > active.bytes)))
      return;
    this.#settings.log.warn(
      'file_replaced',
      'another process moved or changed the file; starting a new segment',
      {
        path: this.#settings.path,
      },
    );
    this.#active = null;
    await active.file?.close();
  }

  #isFull(more: number, nowMs: number): boolean {
    const { rotateBytes, rotateEveryMs } = this.#settings;
    const active = this.#active;
    if (active === null || active.bytes === 0) return false;
    if (rotateBytes !== undefined && active.bytes + more > rotateBytes) return true;
    // A segment that began in the future, by a clock that was ahead, would never be old enough.
    return rotateEveryMs !== undefined && Math.abs(nowMs - active.since) >= rotateEveryMs;
  }

  async #finish(): Promise<void> {
    const active = this.#active;
    if (active === null) return;
    active.file ??= await openAgain(this.#settings.path, active.inode);
    const { file } = active;
    if (active.unsure) await file.truncate(active.bytes);
    active.unsure = false;
    const finished = finishedPath(this.#settings.path, active.segment);
    await this.#note.add(['finished', basename(finished), active.bytes]);
    await renameFinished(this.#settings, finished);
    this.#active = null;
    await file.close();
  }

  async #begin(segment: Offset, since: number): Promise<Active> {
    const { path, flush } = this.#settings;
    makeDirectory(dirname(path), directoryMode);
    const file = await openForWriting(path);
    return await closedOnFailure(file, async () => {
      const { ino: inode, size: bytes } = await file.stat();
      if (flush) await flushNames(path);
      const torn = !(await endsInLine(file, bytes));
      return { file, inode, segment, since, torn, bytes, unsure: false, noted: false };
    });
  }
}

/** Opens the file and cuts an unfinished batch. Rejects with the system's error. */
export async function openSegmentFile(settings: SegmentFileSettings): Promise<SegmentFile> {
  const { left, ...recovered } = await recover(settings);
  if (left === null) return new SegmentFile(settings, { ...recovered, active: null });
  const file = await openForWriting(settings.path);
  const { ino: inode, size } = await closedOnFailure(file, async () => {
    const found = await file.stat();
    if (found.size > left.bytes) await file.truncate(left.bytes);
    return found;
  });
  if (size > left.bytes) {
    settings.log.info(
      'file_tail_cut',
      'cut a half-written end of the file; its events are written again',
      {
        path: settings.path,
        bytes: size - left.bytes,
      },
    );
  }
  const active = { ...left, file, inode, torn: false, unsure: false, noted: false };
  return new SegmentFile(settings, { ...recovered, active });
}

async function openForWriting(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDWR | constants.O_CREAT, fileMode);
  return await closedOnFailure(file, async () => {
    if ((await file.stat()).isFile()) return file;
    throw new ExportError('sink_refused', `writing to ${path}: it is not a regular file`, {
      next: 'Set path to a file, or use the stdout sink; nothing was lost.',
    });
  });
}

/** Rejects if another file has the path now. */
async function openAgain(path: string, inode: number): Promise<FileHandle> {
  const file = await openForWriting(path);
  return await closedOnFailure(file, async () => {
    if ((await file.stat()).ino === inode) return file;
    throw new ExportError('sink_unreachable', `writing to ${path}: another process replaced it`, {
      next: 'No action needed: the events are sent again, to the new file.',
    });
  });
}

async function statOf(
  path: string,
): Promise<{ readonly size: number; readonly ino: number } | null> {
  try {
    return await stat(path);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

async function endsInLine(file: FileHandle, length: number): Promise<boolean> {
  if (length === 0) return true;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, length - 1);
  return buffer[0] === 0x0a;
}

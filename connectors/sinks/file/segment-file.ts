// A file that events are appended to, each once, although the process may die at any moment and the
// state may be put back from a copy, damaged or lost. What stands in the file is known from the
// note beside it (segment-note.ts):
//
//   begin    open the file, note that a segment begins in it
//   append   note the batch, write it, flush both
//   finish   note the finished name, rename; the next append begins a new segment
//   open     the last batch that is noted stands whole in the file:  go on behind it
//            only in part, or not at all, but the one before it does: cut that part away, go on
//            neither (moved, replaced, emptied): cut nothing, begin a segment behind whatever is there
//
// What must stay true: only the part of a batch that was never finished is cut; a file that someone
// moved, replaced, emptied or wrote to while it was open is left as it is, and its last line is
// ended before ours begins.

import { constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { flushNames, makeDirectory } from '../../../src/contracts/directory.ts';
import { ExportError, errorCodeOf } from '../../../src/contracts/errors.ts';
import type { Offset } from '../../../src/contracts/event.ts';
import { type PositionReach, presentEpoch } from '../../../src/contracts/numbering.ts';
import { directoryMode, fileMode, writeAll } from './durable-files.ts';
import { finishedPath, renameFinished } from './segment-names.ts';
import { SegmentNote } from './segment-note.ts';
import { recover, type SegmentReach } from './segment-recovery.ts';
import type { SegmentFileSettings } from './segment-settings.ts';

/** Lines to append, with what is noted of them. */
export interface SegmentLines {
  readonly bytes: Uint8Array;
  /** The offsets that the sink comes from, and has reached with them. */
  readonly from: Offset;
  readonly to: Offset;
  /** What is kept of each event's uid, in one. */
  readonly uids: string;
}

interface Active {
  readonly file: FileHandle;
  readonly inode: number;
  readonly segment: Offset;
  readonly since: number;
  /** True until the first append where the file's last line, someone else's, was not ended. */
  torn: boolean;
  /** Length that is accounted for. */
  bytes: number;
  /** True from before a write until it was flushed: bytes beyond `bytes` are ours to cut. */
  unsure: boolean;
  /** False until the note says that what follows is of this epoch. */
  noted: boolean;
}

/** Opened by `openSegmentFile`; one append at a time. */
export class SegmentFile {
  /** How far the sink has come by what stands in the file. */
  readonly reach: PositionReach;
  /** Events that stand in it and that the state knows nothing of, by what is kept of their uids. */
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

  /** Appends whole lines. Resolves once they are durable; if it rejects, nothing of them stays. */
  async append({ bytes: lines, from, to, uids }: SegmentLines, nowMs: number): Promise<void> {
    await this.#leaveIfChanged();
    if (this.#isFull(lines.length, nowMs)) await this.#finish();
    this.#active ??= await this.#begin(from, nowMs);
    const active = this.#active;
    if (active.unsure) await active.file.truncate(active.bytes);
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
    await writeAll(active.file, bytes, active.bytes);
    if (this.#settings.flush) await active.file.datasync();
    active.bytes = end;
    active.unsure = false;
    active.torn = false;
  }

  /** Cuts what a failed append left behind, and lets go of the file. */
  async close(): Promise<void> {
    const active = this.#active;
    this.#active = null;
    try {
      await this.#note.close();
      if (active?.unsure) await active.file.truncate(active.bytes);
    } finally {
      await active?.file.close();
    }
  }

  async #noteSegment(active: Active): Promise<void> {
    const { numbering } = this.#settings;
    const { segment, since, inode, bytes } = active;
    const epoch = presentEpoch(numbering);
    await this.#note.add(['segment', numbering.spool, epoch, segment, since, inode, bytes]);
    active.noted = true;
  }

  /** A file that was moved, deleted, cut or written to by others is no longer ours to continue. */
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
    await active.file.close();
  }

  #isFull(more: number, nowMs: number): boolean {
    const { rotateBytes, rotateEveryMs } = this.#settings;
    const active = this.#active;
    if (active === null || active.bytes === 0) return false;
    if (rotateBytes !== undefined && active.bytes + more > rotateBytes) return true;
    return rotateEveryMs !== undefined && nowMs - active.since >= rotateEveryMs;
  }

  async #finish(): Promise<void> {
    const active = this.#active;
    if (active === null) return;
    if (active.unsure) await active.file.truncate(active.bytes);
    active.unsure = false;
    const finished = finishedPath(this.#settings.path, active.segment);
    await this.#note.add(['finished', basename(finished), active.bytes]);
    await renameFinished(this.#settings, finished);
    this.#active = null;
    await active.file.close();
  }

  async #begin(segment: Offset, since: number): Promise<Active> {
    const { path, flush } = this.#settings;
    makeDirectory(dirname(path), directoryMode);
    const file = await openForWriting(path);
    const { ino: inode, size: bytes } = await file.stat();
    if (flush) await flushNames(path);
    const torn = !(await endsInLine(file, bytes));
    return { file, inode, segment, since, torn, bytes, unsure: false, noted: false };
  }
}

/** Opens the file and cuts what was never finished. Rejects with the system's error. */
export async function openSegmentFile(settings: SegmentFileSettings): Promise<SegmentFile> {
  const { left, ...recovered } = await recover(settings);
  if (left === null) return new SegmentFile(settings, { ...recovered, active: null });
  const file = await openForWriting(settings.path);
  const { ino: inode, size } = await file.stat();
  if (size > left.bytes) {
    await file.truncate(left.bytes);
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
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new ExportError('sink_refused', `writing to ${path}: it is not a regular file`, {
    next: 'Set path to a file, or use the stdout sink; nothing was lost.',
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

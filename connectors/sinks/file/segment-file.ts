// A file that events are appended to, each once, although the process may die at any moment. The engine keeps a mark
// for it: how far the active segment is accounted for. It makes each mark durable before the next append, and sends
// again whatever is not accounted for. So at most one append stands in the file beyond the mark, and opening cuts it
// away.
//
//   begin    note that a segment is about to begin (durable), open the file, remember its length so far
//   append   write, flush, hand out the mark { segment, since, bytes }
//   finish   close, rename to the finished name; the next append begins a new segment
//   open     note and mark name the same segment:     cut the file back to the mark, go on
//            the note's segment began after the mark:  cut the file back to where that segment began
//            anything else (moved, replaced, state lost, an older state brought back): cut nothing, begin behind it
//
// What must stay true: only what is behind the mark in the very file that the mark was made for is ever cut; a file
// that someone moved, replaced, emptied or wrote to while it was open is left as it is, and its last line is ended
// before ours begins.

import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readFile, rename, stat, truncate } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { ExportError } from '../../../src/contracts/errors.ts';
import type { Offset } from '../../../src/contracts/event.ts';
import type { Json } from '../../../src/contracts/json.ts';
import type { Log } from '../../../src/contracts/tools.ts';
import { errorCodeOf } from '../../shared/system-error.ts';
import { directoryMode, fileMode, flushNames, replaceFile, writeAll } from './durable-files.ts';
import { finishedPath, notePath } from './segment-names.ts';

const markShape = z.object({
  /** Offset of the segment's first event. */
  segment: z.number(),
  /** When it began, epoch milliseconds. */
  since: z.number(),
  /** Tells the file from one that was put in its place. */
  inode: z.number(),
  /** The file's length. */
  bytes: z.number(),
});
const noteShape = z.object({
  spool: z.string(),
  segment: z.number(),
  since: z.number(),
  /** Length of the file before the segment's first byte. */
  base: z.number(),
  /** The mark that was durable then. */
  after: markShape.nullable(),
});

/** How far the active segment is accounted for. */
export type SegmentMark = z.output<typeof markShape>;
type Note = z.output<typeof noteShape>;

/** What a segment file is opened with. */
export interface SegmentFileSettings {
  readonly path: string;
  readonly spoolId: string;
  readonly mark: Json | null;
  readonly rotateBytes?: number | undefined;
  readonly rotateEveryMs?: number | undefined;
  /** False: flushing is left to the system, and a power cut may take what was delivered. */
  readonly flush: boolean;
  readonly log: Log;
  /** Called with the path of each segment that is finished from now on. */
  readonly onFinished: (path: string) => void;
}

interface Active {
  readonly file: FileHandle;
  readonly inode: number;
  readonly segment: Offset;
  readonly since: number;
  /** True until the first append where the file's last line, someone else's, was not ended. */
  torn: boolean;
  /** Length that is accounted for, or will be with the next mark. */
  bytes: number;
  /** True from before a write until it has been flushed: bytes beyond `bytes` are then ours to cut. */
  unsure: boolean;
}

/** Opened by `openSegmentFile`; one append at a time. */
export class SegmentFile {
  readonly #settings: SegmentFileSettings;
  #active: Active | null;
  #mark: SegmentMark | null;

  constructor(settings: SegmentFileSettings, mark: SegmentMark | null, active: Active | null) {
    this.#settings = settings;
    this.#mark = mark;
    this.#active = active;
  }

  /**
   * Appends whole lines, the first of them of event `first`. Resolves with the mark once they are durable; when it
   * rejects, nothing of them stays. The mark that it handed out before must be durable by now.
   */
  async append(lines: Uint8Array, first: Offset, nowMs: number): Promise<SegmentMark> {
    await this.#leaveIfChanged();
    if (this.#isFull(lines.length, nowMs)) await this.#finish();
    this.#active ??= await this.#begin(first, nowMs);
    const active = this.#active;
    if (active.unsure) await active.file.truncate(active.bytes);
    active.unsure = true;
    const bytes = active.torn ? Buffer.concat([Buffer.from('\n'), lines]) : lines;
    await writeAll(active.file, bytes, active.bytes);
    if (this.#settings.flush) await active.file.datasync();
    active.bytes += bytes.length;
    active.unsure = false;
    active.torn = false;
    const { segment, since, inode } = active;
    this.#mark = { segment, since, inode, bytes: active.bytes };
    return this.#mark;
  }

  /** Cuts what a failed append left behind, and lets go of the file. */
  async close(): Promise<void> {
    const active = this.#active;
    this.#active = null;
    if (active === null) return;
    try {
      if (active.unsure) await active.file.truncate(active.bytes);
    } finally {
      await active.file.close();
    }
  }

  /** A file that was moved, deleted, cut or written to by others is no longer ours to continue. */
  async #leaveIfChanged(): Promise<void> {
    const active = this.#active;
    if (active === null) return;
    const found = await statOf(this.#settings.path);
    const same = found?.ino === active.inode;
    if (same && (found.size === active.bytes || (active.unsure && found.size > active.bytes)))
      return;
    this.#settings.log.warn('the file was moved or changed by someone else; a new segment begins', {
      path: this.#settings.path,
    });
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
    const { path, flush, onFinished } = this.#settings;
    if (active.unsure) await active.file.truncate(active.bytes);
    active.unsure = false;
    const finished = finishedPath(path, active.segment);
    await rename(path, finished);
    this.#active = null;
    await active.file.close();
    if (flush) await flushNames(path);
    onFinished(finished);
  }

  async #begin(segment: Offset, since: number): Promise<Active> {
    const { path, spoolId, flush } = this.#settings;
    await mkdir(dirname(path), { recursive: true, mode: directoryMode });
    const base = (await statOf(path))?.size ?? 0;
    const note: Note = { spool: spoolId, segment, since, base, after: this.#mark };
    await replaceFile(notePath(path), JSON.stringify(note));
    const file = await openForWriting(path);
    const { ino } = await file.stat();
    if (flush) await flushNames(path);
    const torn = !(await endsInLine(file, base));
    return { file, inode: ino, segment, since, torn, bytes: base, unsure: false };
  }
}

/** Opens the file and cuts what is not accounted for. Rejects with the system's error, or an ExportError. */
export async function openSegmentFile(settings: SegmentFileSettings): Promise<SegmentFile> {
  const { path, spoolId, log } = settings;
  const parsed = markShape.safeParse(settings.mark);
  const mark = parsed.success ? parsed.data : null;
  const note = await readNote(path);
  const found = await statOf(path);
  if (note?.spool === spoolId && !sameSegment(note, mark)) {
    const isNext = JSON.stringify(note.after) === JSON.stringify(mark);
    if (isNext && found !== null && found.size > note.base) {
      await truncate(path, note.base);
      logCut(log, path, found.size - note.base);
    }
    if (!isNext) log.warn('the file is ahead of the state; events may stand in it twice', { path });
    return new SegmentFile(settings, mark, null);
  }
  return new SegmentFile(settings, mark, mark === null ? null : await resume(settings, mark));
}

async function resume(settings: SegmentFileSettings, mark: SegmentMark): Promise<Active | null> {
  const { path, log } = settings;
  const found = await statOf(path);
  if (found === null || found.ino !== mark.inode || found.size < mark.bytes) {
    log.info('the file is not the one that was left here, or shorter; a new segment begins', {
      path,
    });
    return null;
  }
  const file = await openForWriting(path);
  if (found.size > mark.bytes) {
    await file.truncate(mark.bytes);
    logCut(log, path, found.size - mark.bytes);
  }
  return { ...mark, file, torn: false, unsure: false };
}

function logCut(log: Log, path: string, bytes: number): void {
  log.info('cut what a stopped process had begun to write; it is written again', { path, bytes });
}

function sameSegment(note: Note, mark: SegmentMark | null): boolean {
  return mark !== null && note.segment === mark.segment && note.since === mark.since;
}

async function readNote(path: string): Promise<Note | null> {
  try {
    return noteShape.parse(JSON.parse(await readFile(notePath(path), 'utf8')));
  } catch {
    return null; // none yet, or not one of ours: then nothing is cut on its word
  }
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

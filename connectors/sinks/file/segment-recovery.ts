// Determines the content of a file sink's segments when it is opened, from the note beside them,
// and the part that this state knows. Invariants: an event counts as present only if it is
// verified in the file, so that a note without its files prevents no event from being written
// again; batches of another sink move no position, because they lack events that only this sink
// gets.

import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { z } from 'zod';
import {
  errorCodeOf,
  type Json,
  type Offset,
  type PositionReach,
  reachOf,
} from '../../../src/contracts/index.ts';
import { keptDigits } from '../../shared/known-events.ts';
import { renameFinished } from './segment-names.ts';
import { type NotedBatch, type NotedSegment, readNotes } from './segment-note.ts';
import type { SegmentFileSettings } from './segment-settings.ts';

/** The content of the file. */
export interface SegmentReach {
  readonly reach: PositionReach;
  /** Events in the file that this state may not know, by the kept part of their uids. */
  readonly known: Set<string>;
}

/** A segment that was left active. */
interface Left {
  readonly segment: Offset;
  readonly since: number;
  /** End of its last complete batch: later bytes were never finished. */
  readonly bytes: number;
}

/** Reads the note and the files, and changes neither. */
export async function recover(
  settings: SegmentFileSettings,
): Promise<SegmentReach & { readonly left: Left | null }> {
  const { path, mark } = settings;
  const segments = await readNotes(path);
  const last = segments.at(-1);
  if (last?.finished) await finishAgain(settings, last, last.finished);
  const file = await openToLook(path);
  try {
    if (last === undefined) {
      const left = file === null ? null : await leftBefore(file, mark);
      if (file !== null && left === null) await reportUnknown(settings, file);
      return { ...nothingStands(), left };
    }
    const left = last.finished === null && file !== null ? await leftIn(file, last) : null;
    return { ...(await existingIn(settings, segments, file)), left };
  } finally {
    await file?.close();
  }
}

const nothingStands = () => ({ reach: { position: 0, ahead: false }, known: new Set<string>() });

/**
 * Completes a rename if a process ended between noting the name and renaming. If the finished file was renamed,
 * compressed and deleted before, a new active file can have its inode: that one is still empty.
 */
async function finishAgain(
  settings: SegmentFileSettings,
  { inode, base, batches }: NotedSegment,
  name: string,
): Promise<void> {
  const found = await stat(settings.path).catch(() => null);
  const length = batches.at(-1)?.bytes ?? base;
  if (found?.ino !== inode || found.size < length) return;
  if ((await namesBeside(settings.path)).has(name)) return;
  await renameFinished(settings, join(dirname(settings.path), name));
}

/**
 * The position to resume at in the file; null if it is another file, or another program has written
 * to it since.
 */
async function leftIn(file: FileHandle, segment: NotedSegment): Promise<Left | null> {
  const { first, since, inode, base, batches } = segment;
  const { ino, size } = await file.stat();
  const noted = batches.at(-1);
  const isSeen = await isSeenIn(file, segment);
  const last = batches.at(-1);
  if (!isSeen && !(last === undefined && ino === inode && size >= base)) return null;
  const bytes = last?.bytes ?? base;
  const wasBegun = noted !== undefined && noted !== last && size <= noted.bytes;
  const isEnd = wasBegun || !(await hasLineEnd(file, bytes));
  return isEnd ? { segment: first, since, bytes } : null;
}

/** The verified content: batches seen in the file, and finished files of this sink. */
async function existingIn(
  { path, sink, numbering }: SegmentFileSettings,
  segments: readonly NotedSegment[],
  file: FileHandle | null,
): Promise<SegmentReach> {
  const names = await namesBeside(path);
  const seen = new Set<NotedSegment>();
  for (const segment of segments) {
    const isThere =
      segment.finished === null
        ? file !== null && (await isSeenIn(file, segment))
        : names.has(segment.finished) || names.has(`${segment.finished}.gz`);
    if (isThere) seen.add(segment);
  }
  const counted = segments.filter(
    (segment) => seen.has(segment) || (segment.finished !== null && seen.size > 0),
  );
  const batches = counted.flatMap((segment) => segment.batches);
  const isOwn = (batch: NotedBatch) => batch.sink === null || batch.sink === sink;
  const reaches = batches.map((batch) => {
    const reach = reachOf(batch.place, numbering);
    return isOwn(batch) ? reach : { ...reach, position: 0 };
  });
  const position = Math.max(0, ...reaches.map((reach) => reach.position));
  const known = new Set<string>();
  // An older or damaged state may have forgotten any record, and so reads it again.
  const isOlder = reaches.some(({ ahead }) => ahead);
  for (const { uids } of batches.filter((batch) => isOlder || !isOwn(batch))) {
    for (let at = 0; at < uids.length; at += keptDigits) known.add(uids.slice(at, at + keptDigits));
  }
  return { reach: { position, ahead: reaches.at(-1)?.ahead ?? false }, known };
}

/** Whether the noted batches are in the file; a missing last batch is removed from the list. */
async function isSeenIn(file: FileHandle, { batches }: NotedSegment): Promise<boolean> {
  const last = batches.at(-1);
  if (last === undefined || (await stands(file, last))) return last !== undefined;
  batches.pop();
  const before = batches.at(-1);
  return before !== undefined && (await stands(file, before));
}

/** Whether the file has this content at this position, even if it is a copy of the original. */
async function stands(file: FileHandle, { at, bytes, crc }: NotedBatch): Promise<boolean> {
  const { size } = await file.stat();
  return size >= bytes && crc32(await bytesOf(file, at, bytes)) === crc;
}

async function hasLineEnd(file: FileHandle, from: number): Promise<boolean> {
  const { size } = await file.stat();
  const step = 1024 * 1024;
  for (let at = from; at < size; at += step) {
    if ((await bytesOf(file, at, Math.min(size, at + step))).includes(0x0a)) return true;
  }
  return false;
}

async function bytesOf(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const buffer = Buffer.alloc(to - from);
  const { bytesRead } = await file.read(buffer, 0, buffer.length, from);
  return buffer.subarray(0, bytesRead);
}

/** The covered length of the file in version 0.1.0, which stored it in the state. */
const markShape = z.object({
  segment: z.number(),
  since: z.number(),
  inode: z.number(),
  bytes: z.number(),
});

async function leftBefore(file: FileHandle, mark: Json | null): Promise<Left | null> {
  const { success, data } = markShape.safeParse(mark);
  const { ino, size } = await file.stat();
  if (!success || ino !== data.inode || size < data.bytes) return null;
  if (await hasLineEnd(file, data.bytes)) return null;
  return { segment: data.segment, since: data.since, bytes: data.bytes };
}

async function reportUnknown({ path, log }: SegmentFileSettings, file: FileHandle): Promise<void> {
  const found = await file.stat();
  if (!found.isFile() || found.size === 0) return;
  log.warn(
    'file_lines_unknown',
    'the file has lines that its note does not know; events may be written twice',
    {
      code: 'state_older',
      path,
      next: 'Nothing is lost, and a repeat has the same uid. Keep the note beside the file to be spared them.',
    },
  );
}

async function openToLook(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, 'r');
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

async function namesBeside(path: string): Promise<ReadonlySet<string>> {
  const entries = await readdir(dirname(path)).catch(() => []);
  return new Set(entries.filter((entry) => entry !== basename(path)));
}

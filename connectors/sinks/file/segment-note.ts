// The note beside a file sink's file: the content of its segments, batch by batch, so that an older,
// damaged or lost state neither cuts nor repeats anything. Lines, each a JSON array, append-only:
//
//   ["segment", spool, epoch, first, since, inode, base]   later batches are in the active file, from byte `base`
//   ["sink", name]                                         this sink writes the later batches
//   ["batch", from, to, at, bytes, crc, uids]              these events, the bytes `at` to `bytes` with this CRC-32
//   ["finished", name, bytes]                              the segment has this length, gets this name, never changes again
//
// A batch is noted before it is written: the last one may be missing in the file, or partial. A
// batch that begins before the end of another replaces it. The newest notes are in one file and the
// ones before in a second, which is deleted when the first is full, so that at least the newest
// 200,000 events are known, and half a million if batches are large.

import { constants } from 'node:fs';
import { type FileHandle, open, readFile, rename } from 'node:fs/promises';
import { z } from 'zod';
import {
  errorCodeOf,
  flushNames,
  type Offset,
  type SinkPosition,
} from '../../../src/contracts/index.ts';
import { closedOnFailure, fileMode } from './durable-files.ts';
import { notePath } from './segment-names.ts';

const noteBytesMax = 32 * 1024 * 1024;

const count = z.number().int().nonnegative();
const lineShape = z.union([
  z.tuple([z.literal('segment'), z.string(), z.number(), count, z.number(), count, count]),
  z.tuple([z.literal('sink'), z.string()]),
  z.tuple([z.literal('batch'), count, count, count, count, count, z.string()]),
  z.tuple([z.literal('finished'), z.string(), count]),
]);
/** One line of the note. */
export type NoteLine = z.output<typeof lineShape>;

/** A noted batch. */
export interface NotedBatch {
  /** The sink's position with this batch. */
  readonly place: SinkPosition;
  /** The sink that wrote it; null: a version that noted no sink. */
  readonly sink: string | null;
  /** Its byte range in the file. */
  readonly at: number;
  readonly bytes: number;
  readonly crc: number;
  /** The kept parts of the events' uids, concatenated. */
  readonly uids: string;
}

/** A noted segment. */
export interface NotedSegment {
  readonly first: Offset;
  /** When it began, epoch milliseconds. */
  readonly since: number;
  readonly inode: number;
  /** Length of the file before the noted batches. */
  readonly base: number;
  readonly batches: NotedBatch[];
  /** Name of the finished file; null: it is the active one. */
  readonly finished: string | null;
}

/** The notes of the file at `path`, oldest first. An unreadable note counts as none. */
export async function readNotes(path: string): Promise<readonly NotedSegment[]> {
  const segments: NotedSegment[] = [];
  let place: Omit<SinkPosition, 'next'> = { spool: '', epoch: 0 };
  let sink: string | null = null;
  for (const line of [...(await linesIn(olderPath(path))), ...(await linesIn(notePath(path)))]) {
    const last = segments.at(-1);
    switch (line[0]) {
      case 'segment': {
        const [, spool, epoch, first, since, inode, base] = line;
        place = { spool, epoch };
        sink = null;
        // A finished one is not continued, though another may begin at its event, in its millisecond.
        const same = last?.finished === null && last.first === first && last.since === since;
        if (same) dropFrom(last.batches, base);
        const known = same ? (segments.pop()?.batches ?? []) : [];
        segments.push({ first, since, inode, base, batches: known, finished: null });
        break;
      }
      case 'sink':
        sink = line[1];
        break;
      case 'batch': {
        const [, , to, at, bytes, crc, uids] = line;
        dropFrom(last?.batches ?? [], at);
        last?.batches.push({ place: { ...place, next: to }, sink, at, bytes, crc, uids });
        break;
      }
      case 'finished':
        dropFrom(last?.batches ?? [], line[2]);
        // An earlier segment, left because another program wrote to the file, is in the same file.
        for (const [index, each] of segments.entries()) {
          const isThere = each.finished === null && each.inode === last?.inode;
          if (isThere) segments[index] = { ...each, finished: line[1] };
        }
        break;
    }
  }
  return segments;
}

/** Batches that end after `at` were not written, or cut: another batch is there. */
function dropFrom(batches: NotedBatch[], at: number): void {
  while ((batches.at(-1)?.bytes ?? 0) > at) batches.pop();
}

async function linesIn(path: string): Promise<readonly NoteLine[]> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (errorCodeOf(error) === 'ENOENT') return '';
    throw error;
  });
  return text.split('\n').flatMap((line) => {
    try {
      return [lineShape.parse(JSON.parse(line))];
    } catch {
      return []; // Torn, or of an older version.
    }
  });
}

function olderPath(path: string): string {
  return `${notePath(path)}.older`;
}

/** The note as it is written. */
export class SegmentNote {
  readonly #path: string;
  readonly #flush: boolean;
  #file: FileHandle | null = null;
  #bytes = 0;

  constructor(path: string, flush: boolean) {
    this.#path = path;
    this.#flush = flush;
  }

  /** True if a new note should be started. */
  get isFull(): boolean {
    return this.#bytes >= noteBytesMax;
  }

  /** Adds a line; resolves once it is durable. */
  async add(line: NoteLine): Promise<void> {
    this.#file ??= await this.#open();
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`, 'utf8');
    await this.#file.appendFile(bytes);
    this.#bytes += bytes.length;
    if (this.#flush) await this.#file.datasync();
  }

  /** Starts a new note; the previous one is kept until the new one is full. */
  async turn(): Promise<void> {
    await this.close();
    await rename(notePath(this.#path), olderPath(this.#path));
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    await file?.close();
  }

  /** The next line must not be joined to a torn one. */
  async #open(): Promise<FileHandle> {
    const { O_RDWR, O_APPEND, O_CREAT } = constants;
    const file = await open(notePath(this.#path), O_RDWR | O_APPEND | O_CREAT, fileMode);
    return await closedOnFailure(file, async () => {
      this.#bytes = (await file.stat()).size;
      if (this.#bytes > 0) await file.appendFile('\n');
      if (this.#flush) await flushNames(this.#path);
      return file;
    });
  }
}

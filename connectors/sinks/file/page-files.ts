// The files of a sink whose path has `{company}` or `{source}`: a segment file for each, and a batch is written to several
// of them. A batch counts as delivered once each of its files has its part; after a failure or a crash it comes again,
// perhaps cut differently, and each file skips the offsets that it has. Events of one file that cannot be written follow
// later, after those of other files: the engine sets them aside. Invariants: a file has each of its events once, as
// with a fixed path; two open paths never lead to one file; at most `openMax` files, with their notes and locks, are open at once, whatever the number of
// companies; a file that is not open can be locked by another process, and is opened again by its note and its length.

import { statSync } from 'node:fs';
import {
  type Batch,
  type Event,
  ExportError,
  epochBegin,
  type FileLock,
  type Numbering,
  type Offset,
  realPathOf,
} from '../../../src/contracts/index.ts';
import { eventsAt, forget, keptUid, onlyEvents, withoutKnown } from '../../shared/known-events.ts';
import { linesOf } from '../../shared/lines.ts';
import type { SegmentFile } from './segment-file.ts';

/** Dependencies of the files. */
export interface PageFilesSettings {
  pathOf(event: Event): string;
  /** Opens a file for the first time. */
  open(path: string): Promise<SegmentFile>;
  /** Throws while another process writes to the file. */
  lock(path: string): FileLock | null;
  readonly numbering: Numbering;
}

/** Each has up to four descriptors: the file, its note, its lock. */
const openMax = 64;
/** Files that are written at once: each waits for the disk. */
const atOnce = 8;

/** The same text for every path to one file, hard links included. */
export function sameFile(path: string): string {
  const real = realPathOf(path);
  const found = statSync(real, { throwIfNoEntry: false });
  return found?.isFile() && found.nlink > 1 ? `inode ${found.dev}:${found.ino}` : real;
}

/** One of the files cannot be written, for the reason in `cause`. */
export class PageFileFailure extends Error {
  readonly path: string;
  /** The events of the batch that are not in the file. */
  readonly events: readonly Event[];

  constructor(path: string, events: readonly Event[], cause: unknown) {
    super('a file of the sink cannot be written', { cause });
    this.path = path;
    this.events = events;
  }
}

interface PageFile {
  readonly path: string;
  readonly file: SegmentFile;
  /** All events of the file before this offset are in it. */
  position: Offset;
  lock: FileLock | null;
}

/** Opened with the sink; one `write` at a time. */
export class PageFiles {
  readonly #settings: PageFilesSettings;
  readonly #files = new Map<string, PageFile>();
  /** Those that are open, the one without events for the longest time first. */
  readonly #open = new Set<PageFile>();
  /** The path of each file that is open or being opened. */
  readonly #pathOfFile = new Map<string, string>();

  constructor(settings: PageFilesSettings) {
    this.#settings = settings;
  }

  /** True if a file has events that the state does not know. */
  get isAhead(): boolean {
    return this.#files.values().some(({ file }) => file.reach.ahead);
  }

  /** Writes the batch. Resolves to the failures of single files; the parts of all others are written. */
  async write(batch: Batch, nowMs: number): Promise<readonly PageFileFailure[]> {
    const { pathOf } = this.#settings;
    const failures: PageFileFailure[] = [];
    const parts = [...Map.groupBy(batch.events.keys(), (i) => pathOf(batch.events[i] as Event))];
    for (let at = 0; at < parts.length; at += atOnce) {
      const some = parts.slice(at, at + atOnce);
      await this.#makeRoom(new Set(some.map(([path]) => path)));
      await Promise.all(
        some.map(async ([path, indexes]) => {
          const part = eventsAt(batch, indexes);
          try {
            await this.#append(await this.#opened(path), part, nowMs);
          } catch (error) {
            failures.push(new PageFileFailure(path, part.events, error));
          }
        }),
      );
    }
    return failures;
  }

  async close(): Promise<void> {
    const closed = await Promise.allSettled([...this.#open].map((one) => this.#park(one)));
    for (const one of closed) if (one.status === 'rejected') throw one.reason;
  }

  async #append(into: PageFile, part: Batch, nowMs: number): Promise<void> {
    const { file } = into;
    const rest = onlyEvents(part, ({ offset }) => offset >= into.position);
    const { events, lines } = withoutKnown(rest, file.known);
    const [first] = events;
    if (first !== undefined) {
      const bytes = linesOf(lines, { from: 0, to: events.length });
      const uids = events.map(keptUid).join('');
      await file.append({ bytes, from: first.offset, to: part.end, uids }, nowMs);
    }
    forget(rest, file.known, epochBegin(this.#settings.numbering));
    into.position = Math.max(into.position, part.end);
  }

  async #opened(path: string): Promise<PageFile> {
    const known = this.#files.get(path);
    if (known !== undefined && this.#open.delete(known)) {
      this.#open.add(known);
      return known;
    }
    const lock = this.#locked(path);
    try {
      const file = known?.file ?? (await this.#settings.open(path));
      const opened = known ?? { path, file, position: file.reach.position, lock };
      opened.lock = lock;
      this.#files.set(path, opened);
      this.#open.add(opened);
      return opened;
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /**
   * Two writers of one file would overwrite each other's lines. The lock alone does not exclude it: processes that share
   * a state all get it.
   */
  #locked(path: string): FileLock {
    this.#refuseTwice(path);
    const lock = this.#settings.lock(path);
    try {
      // The lock has created the directory, so the real path is certain now.
      const file = this.#refuseTwice(path);
      this.#pathOfFile.set(file, path);
      return {
        release: () => {
          this.#pathOfFile.delete(file);
          lock?.release();
        },
      };
    } catch (error) {
      lock?.release();
      throw error;
    }
  }

  #refuseTwice(path: string): string {
    const file = sameFile(path);
    const other = this.#pathOfFile.get(file);
    if (other === undefined) return file;
    throw new ExportError('sink_refused', `opening ${path}: it is the same file as ${other}`, {
      next: 'Remove the symbolic or hard link, so that each company has a file of its own; nothing was lost.',
    });
  }

  /** Closes files until these can be opened. */
  async #makeRoom(paths: ReadonlySet<string>): Promise<void> {
    const others = [...this.#open].filter(({ path }) => !paths.has(path));
    const more = openMax - paths.size;
    for (const one of others.slice(0, Math.max(0, others.length - more))) await this.#park(one);
  }

  async #park(one: PageFile): Promise<void> {
    this.#open.delete(one);
    try {
      await one.file.park();
    } finally {
      one.lock?.release();
      one.lock = null;
    }
  }
}

// The pages of a shard as whoever only sends reads them from its log: from a place on, in order, and
// on for as long as it runs. What must stay true: a page is handed on only once it is committed and
// `isBelieved` has said so, and memory holds a bound of them, or the one that is waited for.

import type { Offset } from '../../contracts/event.ts';
import type { HeldPage } from '../../contracts/spool.ts';
import type { Clock, Log } from '../../contracts/tools.ts';
import { heldBytes } from '../../hold/held-page.ts';
import { keyLengths, type OutboxRow, pageOf, pageTable } from '../../hold/outbox.ts';
import { Watchers } from '../../hold/watchers.ts';
import { LogClient, type Partition } from './client.ts';
import { RowReader } from './rows.ts';
import { type LogSettings, shardNames } from './settings.ts';

/** What pages are read with. */
export interface PageTailMeans {
  readonly clock: Clock;
  readonly log: Log;
  /** Whether what was read by now may be handed on; where not, nothing is read any more. */
  readonly isBelieved: () => Promise<boolean>;
}

const bytesMax = 48 * 1024 * 1024;
const waitMs = 1_000;
const pauseMs = 1_000;

/** The pages from a place on that are not let go yet. */
export class PageTail {
  readonly #means: PageTailMeans;
  readonly #client: LogClient;
  readonly #place: Partition;
  readonly #rows = new RowReader(keyLengths);
  readonly #over = new AbortController();
  readonly #watchers = new Watchers();
  readonly #pages: HeldPage[] = [];
  #bytes = 0;
  #end: Offset;
  /** The furthest that anyone waits for. */
  #wanted: Offset;

  constructor(settings: LogSettings, from: Offset, means: PageTailMeans) {
    this.#means = means;
    this.#place = shardNames(settings).pages;
    this.#client = new LogClient(settings, means.clock);
    this.#end = from;
    this.#wanted = from;
  }

  /** The number behind the last event that was read. */
  get end(): Offset {
    return this.#end;
  }

  get oldest(): Offset {
    return this.#pages[0]?.first ?? this.#end;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whole pages from the one that holds `from`, up to about so many bytes. */
  read(from: Offset, bytes: number): readonly HeldPage[] {
    const start = this.#pages.findIndex(({ first, count }) => first + count > from);
    if (start < 0) return [];
    let end = start;
    for (let sum = 0; end < this.#pages.length && sum < bytes; end += 1) {
      sum += heldBytes(this.#pages[end] as HeldPage);
    }
    return this.#pages.slice(start, end);
  }

  /** Pages that end before it are not asked for any more. */
  letGo(before: Offset): void {
    const kept = this.#pages.findIndex(({ first, count }) => first + count > before);
    const gone = this.#pages.splice(0, kept < 0 ? this.#pages.length : kept);
    for (const page of gone) this.#bytes -= heldBytes(page);
    if (gone.length > 0) this.#watchers.wake();
  }

  /** Resolves when there is an event at or after `from`. */
  async arrival(from: Offset, signal: AbortSignal): Promise<void> {
    this.#wanted = Math.max(this.#wanted, from);
    this.#watchers.wake();
    await this.#watchers.until(() => this.#end > from, signal);
  }

  /** Reads on until closed, or until what was read is not believed. */
  async follow(): Promise<void> {
    const { signal } = this.#over;
    const { clock, log, isBelieved } = this.#means;
    const hasRoom = () => this.#bytes < bytesMax || this.#wanted >= this.#end;
    for (let position: bigint | null = null; ; ) {
      await this.#watchers.until(hasRoom, signal).catch(() => undefined);
      if (signal.aborted) return;
      try {
        position ??= await this.#client.start(this.#place);
        const fetched = await this.#client.fetch(this.#place, position, waitMs);
        const rows = this.#rows.rowsOf(fetched.records);
        if (rows.length > 0 && !(await isBelieved())) return;
        for (const row of rows) this.#put(row);
        this.#watchers.wake();
        position = fetched.position;
      } catch (error) {
        if (signal.aborted) return;
        log.warn('the pages of the shard cannot be read; it is tried again', {
          error: String(error),
        });
        // What every sink has is deleted from the log.
        const start = await this.#client.start(this.#place).catch(() => null);
        if (start !== null && (position ?? 0n) < start) position = start;
        await clock.sleep(pauseMs, signal).catch(() => undefined);
      }
    }
  }

  close(): void {
    const over = new Error('the pages are not read any more');
    this.#over.abort(over);
    this.#watchers.end(over);
    this.#client.close();
  }

  /** A log may hold a page twice, where an import was begun again. */
  #put({ table, value }: OutboxRow): void {
    if (table !== pageTable || value === null) return;
    const page = pageOf(value);
    const end = page.first + page.count;
    if (end <= this.#end) return;
    this.#pages.push(page);
    this.#bytes += heldBytes(page);
    this.#end = end;
  }
}

// The pages in the state database: events with consecutive offsets, appended at one end and deleted
// at the other once every sink has passed them. Invariants: `end` in memory equals the one on disk
// whenever no transaction is open; an offset is assigned to one event only.

import {
  type HeldPage,
  type NewPage,
  type Offset,
  type SpoolGauge,
  uidBytes,
} from '../contracts/index.ts';
import type { Statements } from './database.ts';
import {
  answerRowBytes,
  heldBytes,
  pageOfRow,
  wholeRow,
  writeLoggedPage,
  writePage,
} from './held-page.ts';
import type { Present } from './present.ts';

/** How long pages are kept after every sink has passed them. */
export interface PageRetention {
  /** For replay. */
  readonly keepMs: number;
  /**
   * The bound on all pages: passed ones are deleted before `keepMs` if polling would stop
   * otherwise.
   */
  readonly bytesMax?: number;
  /** The database is a cache of a log, which receives all its changes. */
  readonly isCache?: boolean;
}

/** A page deleted before every sink had passed it: events from `first` up to before `end`. */
export interface ReleasedPage {
  readonly first: Offset;
  readonly end: Offset;
  /** The single sink that it was for; null: every sink; empty: it has no event. */
  readonly onlySink: string | null;
}

/** End and size of the pages, to restore when a transaction fails. */
export interface PageMark {
  readonly end: Offset;
  readonly bytes: number;
}

/** Pages deleted per transaction, so that a long backlog does not block other work. */
const pruneMax = 512;
/** Pages kept for replay may fill the spool up to this share of its bound. */
const keptShareMax = 0.8;
/** The same as `heldBytes`, in SQL. */
const countedBytes = `(bytes + (only_sink IS '') * ${answerRowBytes})`;

/** The table of pages. */
export class Pages {
  readonly #statements: Statements;
  readonly #retention: PageRetention;
  readonly #present: Present;
  /** Of a cache: the pages that were added since the last drain, in the form of the log. */
  readonly added = new Map<Offset, Uint8Array>();
  #end: Offset;
  #bytes: number;

  constructor(statements: Statements, retention: PageRetention, present: Present) {
    this.#present = present;
    this.#statements = statements;
    this.#retention = retention;
    this.#end = this.#storedEnd();
    this.#bytes = this.#storedBytes();
  }

  /** Offset of the next event. */
  get end(): Offset {
    return this.#end;
  }

  get mark(): PageMark {
    return { end: this.#end, bytes: this.#bytes };
  }

  /** Restores the values from before a failed transaction. */
  goBack({ end, bytes }: PageMark): void {
    for (const first of this.added.keys()) if (first >= end) this.added.delete(first);
    this.#end = end;
    this.#bytes = bytes;
  }

  /** Another process may have put dead letters back in the meantime. */
  catchUp(): void {
    const end = this.#storedEnd();
    if (end === this.#end) return;
    this.#end = end;
    this.#bytes = this.#storedBytes();
  }

  /** Stores the end, as the last step of a transaction that added pages. */
  saveEnd(): void {
    this.#statements.run("UPDATE meta SET value = ? WHERE key = 'end'", String(this.#end));
  }

  /** Adds a page; returns its first offset. */
  add(page: NewPage, now: number): Offset {
    const first = this.#end;
    const run: Statements['run'] = (sql, ...values) => this.#statements.run(sql, ...values);
    if (this.#retention.isCache !== true) writePage(run, page, first, now);
    else this.added.set(first, writeLoggedPage(run, page, first, now));
    this.#end += page.uids.length / uidBytes;
    this.#bytes += heldBytes(page);
    return first;
  }

  /** Whole pages from the one that contains `from`, about `bytesMax`. */
  read(from: Offset, bytesMax: number): readonly HeldPage[] {
    const pages: HeldPage[] = [];
    let bytes = 0;
    const holding = this.#statements.row(
      'SELECT max(first) AS n FROM page WHERE first <= ?',
      from,
    )?.n;
    const rows = this.#statements.each(
      'SELECT * FROM page WHERE first >= ? ORDER BY first',
      Number(holding ?? from),
    );
    for (const row of rows) {
      if (Number(row.first) + Number(row.count) <= from) continue;
      const page = pageOfRow(wholeRow(row, (sql, ...of) => this.#statements.each(sql, ...of)));
      pages.push(page);
      bytes += heldBytes(page);
      if (bytes >= bytesMax) break;
    }
    return pages;
  }

  /**
   * Deletes pages before `passed` that are older than `keepMs`, oldest first. True: there may be
   * more.
   */
  prune(passed: Offset, now: number): boolean {
    const { keepMs, bytesMax = Number.POSITIVE_INFINITY } = this.#retention;
    const keptFrom = keepMs === 0 ? now : this.#present.at(now) - keepMs;
    let bytes = this.#bytes;
    let done = 0;
    let last = -1;
    for (const page of this.#statements.each(
      `SELECT first, count, ${countedBytes} AS bytes, held_at FROM page ORDER BY first`,
    )) {
      const heldAt = Number(page.held_at);
      // A page of the future was stored by a clock that was ahead; older ones are kept long enough.
      const isYoung = heldAt > keptFrom && heldAt <= now;
      const requested = isYoung && bytes <= bytesMax * keptShareMax;
      const end = Number(page.first) + Number(page.count);
      if (requested || end > passed || done === pruneMax) break;
      bytes -= Number(page.bytes);
      last = Number(page.first);
      done += 1;
    }
    this.#deleteUpTo(last);
    this.#bytes = bytes;
    return done === pruneMax;
  }

  /** The bound of the spool, in bytes. */
  get bytesMax(): number {
    return this.#retention.bytesMax ?? Number.POSITIVE_INFINITY;
  }

  /** Deletes the oldest pages that end by `until`, while pages use more than `bytesMax`. */
  release(until: Offset, bytesMax: number): readonly ReleasedPage[] {
    const released: ReleasedPage[] = [];
    if (this.#bytes < bytesMax) return released;
    let bytes = this.#bytes;
    for (const page of this.#statements.each(
      `SELECT first, count, only_sink, ${countedBytes} AS bytes FROM page ORDER BY first`,
    )) {
      const [first, onlySink] = [Number(page.first), page.only_sink];
      const end = first + Number(page.count);
      if (end > until || bytes < bytesMax || released.length === pruneMax) break;
      bytes -= Number(page.bytes);
      released.push({ first, end, onlySink: typeof onlySink === 'string' ? onlySink : null });
    }
    this.#deleteUpTo(released.at(-1)?.first ?? -1);
    this.#bytes = bytes;
    return released;
  }

  #deleteUpTo(last: Offset): void {
    if (last < 0) return;
    this.#statements.run('DELETE FROM page WHERE first <= ?', last);
    this.#statements.run('DELETE FROM page_part WHERE first <= ?', last);
  }

  gauge(): SpoolGauge {
    const oldest = this.#statements.row('SELECT min(first) AS n FROM page')?.n;
    return {
      bytes: this.#bytes,
      oldest: typeof oldest === 'number' ? oldest : this.#end,
      end: this.#end,
    };
  }

  /**
   * Events stored at or after an offset, and the time at which the oldest page of all was stored.
   */
  held(from: Offset): { readonly events: number; readonly oldestAt: number | null } {
    const row = this.#statements.row(
      `SELECT (SELECT coalesce(sum(first + count - max(first, ?1)), 0) FROM page
           WHERE first + count > ?1 AND only_sink IS NOT '') AS n,
         (SELECT min(held_at) FROM page) AS at`,
      from,
    );
    return { events: Number(row?.n), oldestAt: typeof row?.at === 'number' ? row.at : null };
  }

  /** Offsets of stored responses without records, in order. */
  answers(): readonly Offset[] {
    const rows = this.#statements.rows(
      "SELECT first FROM page WHERE only_sink = '' ORDER BY first",
    );
    return rows.map(({ first }) => Number(first));
  }

  #storedEnd(): Offset {
    return Number(this.#statements.row("SELECT value FROM meta WHERE key = 'end'")?.value ?? 0);
  }

  #storedBytes(): number {
    const sum = `SELECT coalesce(sum(${countedBytes}), 0) AS n FROM page`;
    return Number(this.#statements.row(sum)?.n ?? 0);
  }
}

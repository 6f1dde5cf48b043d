// The state database, synchronously: every statement that sluice runs on it stands here. It runs in a worker thread
// (spool-worker.ts) so that an fsync never stalls the event loop, and in the commands that look at or mend the state
// while nothing else writes. Writes are made inside `transaction`, which commits many of them with one fsync.

import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { ExportError } from '../contracts/errors.ts';
import type { Offset, PageContext } from '../contracts/event.ts';
import type { Json } from '../contracts/json.ts';
import type {
  Acknowledgement,
  DeadLetter,
  EntityChange,
  HeldPage,
  NewPage,
  SinkProgress,
  SpoolGauge,
  StreamMemory,
  TrailEntry,
} from '../contracts/spool.ts';
import { identityBytes, uidBytes } from '../contracts/spool.ts';
import { type DatabaseSettings, openDatabase, storeError } from './database.ts';

/** How the database is opened. */
export interface StoreSettings extends DatabaseSettings {
  /** How long pages stay after every sink has passed them, for replay. */
  readonly keepMs: number;
  /** The bound on all pages: passed ones go earlier than `keepMs` where polling would else have to stop for them. */
  readonly bytesMax?: number;
}

/** What `append` writes; the same as the spool's Append. */
export interface StoreAppend {
  readonly stream: string;
  readonly pages: readonly NewPage[];
  readonly checkpoint: Json;
  readonly identities?: Uint8Array;
  readonly trail?: TrailEntry;
  readonly entities?: EntityChange;
}

/** Where an append has landed: the first offset of each page, and the block of its identities (0: none). */
export interface Landed {
  readonly firsts: readonly Offset[];
  readonly block: number;
}

/** Page cursors this recent are all kept; older ones are thinned to one a minute, and forgotten after a day. */
const trailRecent = 16;
const trailAgeMsMax = 24 * 3_600_000;
/** A stream's oldest identities are forgotten beyond this many: as many as a running stream remembers. */
const identitiesMax = 1_000_000;
/** They are forgotten a good number at a time. */
const identitiesSlack = 1.1;
/** Pages deleted in one transaction, so that a long backlog passed at once does not hold up what others write. */
const pruneMax = 512;
/** Pages kept for replay may fill the spool to this share of its bound. */
const keptShareMax = 0.8;

/** The database of one state directory. */
export class Store {
  readonly id: string;
  readonly #database: DatabaseSync;
  readonly #settings: StoreSettings;
  readonly #statements = new Map<string, StatementSync>();
  #end: Offset;
  #bytes: number;
  #sinks: readonly string[] | null = null;
  #trailCount = 0;
  /** Identities held of each stream, where they have been counted. */
  readonly #identityCounts = new Map<string, number>();

  constructor(settings: StoreSettings) {
    this.#settings = settings;
    this.#database = openDatabase(settings);
    this.id = this.#meta('spool_id') ?? '';
    this.#end = Number(this.#meta('end') ?? 0);
    this.#bytes = Number(this.#row('SELECT coalesce(sum(bytes), 0) AS n FROM page')?.n ?? 0);
  }

  /** Names the sinks of the config: only their positions hold pages back. */
  retainFor(sinks: readonly string[]): void {
    this.#sinks = sinks;
  }

  /** Runs `work` in one transaction: all of it becomes durable, or nothing. */
  transaction<T>(work: () => T): T {
    this.#database.exec('BEGIN IMMEDIATE');
    const before = { end: this.#end, bytes: this.#bytes };
    try {
      this.#catchUp();
      const known = this.#end;
      const result = work();
      if (this.#end !== known) {
        this.#run("UPDATE meta SET value = ? WHERE key = 'end'", String(this.#end));
      }
      this.#database.exec('COMMIT');
      return result;
    } catch (error) {
      this.#end = before.end;
      this.#bytes = before.bytes;
      this.#identityCounts.clear();
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw storeError(error, 'writing to the state database');
    }
  }

  /** Another process may have put dead letters back since. */
  #catchUp(): void {
    const end = Number(this.#meta('end') ?? 0);
    if (end === this.#end) return;
    this.#end = end;
    this.#bytes = Number(this.#row('SELECT coalesce(sum(bytes), 0) AS n FROM page')?.n ?? 0);
  }

  append(entry: StoreAppend, now: number): Landed {
    const firsts = entry.pages.map((page) => this.hold(page, now));
    this.saveCheckpoint(entry.stream, entry.checkpoint, now);
    let block = 0;
    if (entry.identities !== undefined && entry.identities.length > 0) {
      const done = this.#run(
        'INSERT INTO identities (stream, at, keys) VALUES (?, ?, ?)',
        entry.stream,
        now,
        entry.identities,
      );
      block = Number(done.lastInsertRowid);
      this.#boundIdentities(entry.stream, entry.identities.length / identityBytes);
    }
    if (entry.trail !== undefined) this.#extendTrail(entry.stream, entry.trail);
    if (entry.entities !== undefined) this.#changeEntities(entry.stream, entry.entities);
    return { firsts, block };
  }

  /** Adds a page without touching a checkpoint: also how a dead letter is put back. Returns its first offset. */
  hold(page: NewPage, now: number): Offset {
    const first = this.#end;
    const count = page.uids.length / uidBytes;
    const kept = page.kept === null ? null : bytesOf(page.kept);
    this.#run(
      `INSERT INTO page (first, count, bytes, held_at, stream, context, items, only_sink, kept, uids, body)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      first,
      count,
      page.body.length,
      now,
      page.context.stream,
      JSON.stringify(page.context),
      page.items,
      page.onlySink ?? null,
      kept,
      page.uids,
      page.body,
    );
    this.#end += count;
    this.#bytes += page.body.length;
    return first;
  }

  #boundIdentities(stream: string, added: number): void {
    const known = this.#identityCounts.get(stream);
    let held = known === undefined ? this.#countIdentities(stream) : known + added;
    if (held > identitiesMax * identitiesSlack) {
      const blocks = this.#prepare(
        'SELECT block, length(keys) AS bytes FROM identities WHERE stream = ? ORDER BY block',
      );
      let oldest = 0;
      for (const row of blocks.iterate(stream)) {
        if (held <= identitiesMax) break;
        held -= Number(row.bytes) / identityBytes;
        oldest = Number(row.block);
      }
      this.#run('DELETE FROM identities WHERE stream = ? AND block <= ?', stream, oldest);
    }
    this.#identityCounts.set(stream, held);
  }

  #countIdentities(stream: string): number {
    const row = this.#row(
      'SELECT coalesce(sum(length(keys)), 0) AS bytes FROM identities WHERE stream = ?',
      stream,
    );
    return Number(row?.bytes ?? 0) / identityBytes;
  }

  saveCheckpoint(stream: string, checkpoint: Json, now: number): void {
    this.#run(
      `INSERT INTO checkpoint (stream, body, updated_at) VALUES (?, ?, ?)
       ON CONFLICT (stream) DO UPDATE SET body = excluded.body, updated_at = excluded.updated_at`,
      stream,
      JSON.stringify(checkpoint),
      now,
    );
  }

  #extendTrail(stream: string, entry: TrailEntry): void {
    this.#run(
      'INSERT INTO trail (stream, at, cursor) VALUES (?, ?, ?)',
      stream,
      entry.at,
      entry.cursor,
    );
    this.#trailCount += 1;
    if (this.#trailCount % trailRecent !== 0) return;
    this.#run(
      `DELETE FROM trail WHERE stream = ?1 AND rowid NOT IN (
         SELECT rowid FROM (SELECT rowid FROM trail WHERE stream = ?1 ORDER BY rowid DESC LIMIT ${trailRecent})
         UNION ALL
         SELECT min(rowid) FROM trail WHERE stream = ?1 AND at > ?2 GROUP BY at / 60000)`,
      stream,
      entry.at - trailAgeMsMax,
    );
  }

  #changeEntities(stream: string, change: EntityChange): void {
    for (const [key, body] of change.put) {
      this.#run(
        'INSERT OR REPLACE INTO entity (stream, key, body) VALUES (?, ?, ?)',
        stream,
        key,
        body,
      );
    }
    for (const key of change.drop) {
      this.#run('DELETE FROM entity WHERE stream = ? AND key = ?', stream, key);
    }
  }

  /** Moves a sink forward; a smaller position than the one held is kept out. */
  acknowledge(sink: string, step: Acknowledgement, now: number): void {
    this.#run(
      `INSERT INTO position (sink, next, mark, updated_at) VALUES (?1, ?2, ?3, ?4)
       ON CONFLICT (sink) DO UPDATE SET next = max(next, ?2), mark = coalesce(?3, mark), updated_at = ?4`,
      sink,
      step.position,
      step.mark === undefined ? null : JSON.stringify(step.mark),
      now,
    );
    for (const letter of step.deadLetters ?? []) this.#bury(sink, letter, now);
  }

  #bury(sink: string, letter: DeadLetter, now: number): void {
    this.#run(
      'INSERT INTO dead_letter (sink, uid, offset, reason, at, context, record) VALUES (?, ?, ?, ?, ?, ?, ?)',
      sink,
      letter.uid,
      letter.offset,
      letter.reason,
      now,
      JSON.stringify(letter.context),
      letter.record,
    );
  }

  /** Deletes what every sink has passed and `keep` no longer wants, oldest first. True where there may be more to do. */
  prune(now: number): boolean {
    const passed = this.#passed();
    const keptMax = (this.#settings.bytesMax ?? Number.POSITIVE_INFINITY) * keptShareMax;
    let bytes = this.#bytes;
    let done = 0;
    let last = -1;
    const oldest = this.#prepare('SELECT first, count, bytes, held_at FROM page ORDER BY first');
    for (const page of oldest.iterate()) {
      const wanted = Number(page.held_at) > now - this.#settings.keepMs && bytes <= keptMax;
      const end = Number(page.first) + Number(page.count);
      if (wanted || end > passed || done === pruneMax) break;
      bytes -= Number(page.bytes);
      last = Number(page.first);
      done += 1;
    }
    if (done > 0) this.#run('DELETE FROM page WHERE first <= ?', last);
    this.#bytes = bytes;
    return done === pruneMax;
  }

  /** How much of the log is let grow before it is moved into the database. */
  boundLog(bytes: number): void {
    const pages = Math.min(1_000, Math.max(1, Math.floor(bytes / 16_384)));
    this.#database.exec(`PRAGMA wal_autocheckpoint = ${pages}`);
  }

  /** Moves the whole log into the database and gives its space back to the disk. */
  emptyLog(): void {
    this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  }

  /** Gives free pages of the file back to the file system, a bounded number at a time. */
  shrink(): void {
    const free = Number(this.#row('PRAGMA freelist_count')?.freelist_count ?? 0);
    if (free > 256) this.#database.exec('PRAGMA incremental_vacuum(256)');
  }

  #passed(): Offset {
    if (this.#sinks === null) return 0;
    let passed = this.#end;
    for (const sink of this.#sinks) passed = Math.min(passed, this.progress(sink).position);
    return passed;
  }

  gauge(): SpoolGauge {
    const oldest = this.#row('SELECT min(first) AS n FROM page')?.n;
    return {
      bytes: this.#bytes,
      oldest: oldest === null ? this.#end : Number(oldest),
      end: this.#end,
    };
  }

  /** The gauge, after what another process has put into the file. */
  refresh(): SpoolGauge {
    this.#catchUp();
    return this.gauge();
  }

  progress(sink: string): SinkProgress {
    const row = this.#row('SELECT next, mark FROM position WHERE sink = ?', sink);
    if (row === undefined) return { position: 0, mark: null };
    const mark = row.mark;
    return {
      position: Number(row.next),
      mark: typeof mark === 'string' ? JSON.parse(mark) : null,
    };
  }

  read(from: Offset, bytesMax: number): readonly HeldPage[] {
    const pages: HeldPage[] = [];
    let bytes = 0;
    const start = this.#row('SELECT max(first) AS n FROM page WHERE first <= ?', from)?.n ?? from;
    const rows = this.#prepare('SELECT * FROM page WHERE first >= ? ORDER BY first').iterate(
      Number(start),
    );
    for (const row of rows) {
      const page = heldPage(row);
      if (page.first + page.count <= from) continue;
      pages.push(page);
      bytes += page.body.length;
      if (bytes >= bytesMax) break;
    }
    return pages;
  }

  recall(stream: string): StreamMemory {
    const body = this.#row('SELECT body FROM checkpoint WHERE stream = ?', stream)?.body;
    const blocks = this.#prepare(
      'SELECT block, keys FROM identities WHERE stream = ? ORDER BY block',
    ).all(stream);
    return {
      checkpoint: typeof body === 'string' ? JSON.parse(body) : null,
      identities: blocks.map((row) => ({
        block: Number(row.block),
        bytes: asBytes(row.keys),
      })),
    };
  }

  trail(stream: string): readonly TrailEntry[] {
    const rows = this.#prepare('SELECT cursor, at FROM trail WHERE stream = ? ORDER BY rowid').all(
      stream,
    );
    return rows.map((row) => ({ cursor: String(row.cursor), at: Number(row.at) }));
  }

  entities(stream: string): ReadonlyMap<string, string> {
    const rows = this.#prepare('SELECT key, body FROM entity WHERE stream = ?').all(stream);
    return new Map(rows.map((row) => [String(row.key), String(row.body)]));
  }

  note(kind: string, name: string, facts: Json, now: number): void {
    this.#run(
      'INSERT OR REPLACE INTO note (kind, name, facts, at) VALUES (?, ?, ?, ?)',
      kind,
      name,
      JSON.stringify(facts),
      now,
    );
  }

  /** Every row of a small table, for `status` and the mending commands. */
  rows(sql: string, ...values: (string | number)[]): readonly Record<string, unknown>[] {
    return this.#prepare(sql).all(...values);
  }

  /** Runs one statement of a mending command. */
  change(sql: string, ...values: (string | number)[]): number {
    return Number(this.#run(sql, ...values).changes);
  }

  close(): void {
    this.#statements.clear();
    this.#database.close();
  }

  #meta(key: string): string | null {
    const value = this.#row('SELECT value FROM meta WHERE key = ?', key)?.value;
    return typeof value === 'string' ? value : null;
  }

  #row(sql: string, ...values: SQLInputValue[]): Record<string, unknown> | undefined {
    return this.#prepare(sql).get(...values);
  }

  #run(sql: string, ...values: SQLInputValue[]): ReturnType<StatementSync['run']> {
    return this.#prepare(sql).run(...values);
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

function heldPage(row: Record<string, unknown>): HeldPage {
  const kept = row.kept;
  const onlySink = row.only_sink;
  return {
    first: Number(row.first),
    count: Number(row.count),
    context: JSON.parse(String(row.context)) as PageContext,
    items: String(row.items),
    kept: kept === null ? null : new Uint32Array(asBytes(kept).slice().buffer),
    uids: asBytes(row.uids),
    body: asBytes(row.body),
    ...(typeof onlySink === 'string' ? { onlySink } : {}),
  };
}

function asBytes(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new ExportError(
    'state_damaged',
    'reading the state database: a column that holds bytes holds none',
    {
      next: 'Restore state.dir from a backup, or move it away: upstream is then read again from its beginning.',
    },
  );
}

function bytesOf(numbers: Uint32Array): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
}

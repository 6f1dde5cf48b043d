// The state database, with a synchronous interface. It runs in a worker thread (spool-worker.ts), so that an fsync
// never blocks the event loop, and in the commands that inspect or repair the state while no other process writes.
// Writes are made inside `transaction`, which commits many of them with one fsync. Pages and streams have their tables
// in files of their own (pages.ts, streams.ts, dead-letters.ts, requests.ts, notes.ts); positions are here. Invariant:
// no SQL outside src/hold.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type {
  Acknowledgement,
  Append,
  AsideSettled,
  HeldPage,
  JsonObject,
  NewPage,
  Numbering,
  Offset,
  PairReport,
  SinkProgress,
  SpoolGauge,
  StreamMemory,
} from '../contracts/index.ts';
import {
  type DatabaseSettings,
  hasState,
  openDatabase,
  Statements,
  storeError,
} from './database.ts';
import { DeadLetters, type HeldDeadLetter } from './dead-letters.ts';
import { epochsFrom, nextEpoch } from './epochs.ts';
import { Holders } from './holders.ts';
import type { KnownSinks } from './known-sinks.ts';
import { notesOf, writeNote } from './notes.ts';
import { drainOutbox, type OutboxRow } from './outbox.ts';
import { type PageRetention, Pages } from './pages.ts';
import { type Cutover, type CutoverWish, cutOver } from './pair-cutover.ts';
import { pairReport } from './pair-report.ts';
import { Pairs } from './pairs.ts';
import { Parents } from './parents.ts';
import { Present } from './present.ts';
import { Receipts } from './receipts.ts';
import { RequestTable } from './requests.ts';
import { databaseName } from './schema.ts';
import { SetAside } from './set-aside.ts';
import { SettledEvents } from './settled.ts';
import { Streams } from './streams.ts';

/** Free pages that stay in the file: about as many as are reused while the sinks keep up. */
const freeMax = 1_024;
/** Free pages returned to the disk at a time: each may require moving a page in use. */
const shrinkMax = 512;

/** Options for opening the database. */
export interface StoreSettings extends DatabaseSettings, PageRetention {
  /** How long pages are retained for a sink that no running config has; default: not at all. */
  readonly removedSinksMs?: number;
}

/** The result of an append: each page's first offset, and its identities' block (0: none). */
export interface Landed {
  readonly firsts: readonly Offset[];
  readonly block: number;
  /** The stored part of each page if some belong to a pair; null: nothing as an event. */
  readonly pages?: readonly (Omit<NewPage, 'body'> | null)[];
}

/** The database of one state directory. */
export class Store {
  readonly id: string;
  readonly #database: DatabaseSync;
  readonly #statements: Statements;
  readonly #pages: Pages;
  readonly streams: Streams;
  readonly parents: Parents;
  readonly deadLetters: DeadLetters;
  readonly aside: SetAside;
  readonly settled: SettledEvents;
  readonly pairs: Pairs;
  readonly receipts: Receipts;
  readonly requests: RequestTable;
  /** Decides which sinks retain pages. */
  readonly holders: Holders;

  constructor(settings: StoreSettings) {
    this.#database = openDatabase(settings);
    this.#statements = new Statements(this.#database);
    this.streams = new Streams(this.#statements);
    this.parents = new Parents(this.#statements);
    this.deadLetters = new DeadLetters(this.#statements);
    this.aside = new SetAside(this.#statements);
    this.settled = new SettledEvents(this.#statements);
    this.pairs = new Pairs(this.#statements, settings.bytesMax ?? Number.POSITIVE_INFINITY);
    this.receipts = new Receipts(this.#statements, () => this.#pages.end);
    this.requests = new RequestTable(this.#statements);
    const present = new Present(this.#statements);
    this.holders = new Holders(this.#statements, settings.removedSinksMs ?? 0, present);
    try {
      this.#pages = new Pages(this.#statements, settings, present);
      const id = this.#statements.row("SELECT value FROM meta WHERE key = 'spool_id'")?.value;
      this.id = typeof id === 'string' ? id : '';
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Names the sinks of the config, and other readers, whose positions retain pages. */
  retainFor(readers: readonly string[]): void {
    this.holders.retainFor(readers);
  }

  /** The sinks of this config and of earlier ones. */
  get knownSinks(): KnownSinks {
    return this.holders.known;
  }

  /** Runs `work` in one transaction: everything becomes durable, or nothing. */
  transaction<T>(work: () => T): T {
    this.#statements.run('BEGIN IMMEDIATE');
    const before = this.#pages.mark;
    try {
      this.#pages.catchUp();
      const known = this.#pages.end;
      const result = work();
      if (this.#pages.end !== known) this.#pages.saveEnd();
      this.#statements.run('COMMIT');
      return result;
    } catch (error) {
      this.#pages.goBack(before);
      this.streams.goBack();
      this.parents.goBack();
      this.aside.changed();
      this.pairs.changed();
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw storeError(error, 'writing to the state database');
    }
  }

  append(entry: Append, now: number): Landed {
    const { stream, checkpoint, identities, trail, entities } = entry;
    const pages = entry.pages.map((page) => (page.pair ? this.pairs.judge(page, now) : page));
    if (entry.scan) this.pairs.scan(entry.stream, entry.scan, now);
    const firsts = pages.map((page) => (page === null ? noOffset : this.hold(page, now)));
    if (checkpoint !== undefined) {
      if (entry.parent === undefined) this.streams.saveCheckpoint(stream, checkpoint, now);
      else {
        const text = JSON.stringify(checkpoint);
        this.parents.saveCheckpoint({ ...entry.parent, list: stream, checkpoint: text });
      }
    }
    for (const change of entry.parents ?? []) this.parents.change(change, now);
    const block =
      identities === undefined || identities.length === 0
        ? 0
        : this.streams.addIdentities(stream, identities, now);
    for (const place of trail ?? []) this.streams.extendTrail(stream, place);
    if (entities !== undefined) this.streams.changeEntities(stream, entities);
    if (entry.pages.every(({ pair }) => pair === undefined)) return { firsts, block };
    return { firsts, block, pages: pages.map(withoutBody) };
  }

  /** A stream's stored state, for its restart; for a parent's list, with its checkpoint there. */
  recall(stream: string): StreamMemory {
    const memory = this.streams.recall(stream);
    const checkpoint = memory.checkpoint ?? this.parents.checkpoint(stream);
    return { ...memory, checkpoint };
  }

  /** Adds a page without changing a checkpoint. Returns its first offset. */
  hold(page: NewPage, now: number): Offset {
    return this.#pages.add(page, now);
  }

  /** Stores a dead letter as an event for its sink alone. False: another process has done so. */
  putBack(deadLetter: HeldDeadLetter, now: number): boolean {
    const { id, sink, uid, context } = deadLetter;
    const record = this.deadLetters.record(id);
    if (record === null) return false;
    const body = Buffer.concat([Buffer.from('['), record, Buffer.from(']')]);
    const uids = Buffer.from(uid, 'hex');
    this.hold({ context, body, items: '', kept: null, uids, onlySink: sink }, now);
    this.#removeDeadLetter(deadLetter, now);
    return true;
  }

  /** The sink must not send the event from its old offset, which its position may not have passed. */
  #removeDeadLetter(deadLetter: HeldDeadLetter, now: number): void {
    const { id, sink } = deadLetter;
    const from = Math.max(this.progress(sink).position, this.#pages.gauge().oldest);
    this.settled.note(sink, deadLetter, from, now);
    this.deadLetters.remove(id);
  }

  /** Moves a sink's position forward; a smaller one than stored is ignored. */
  acknowledge(sink: string, step: Acknowledgement, now: number): void {
    this.receipts.begin(sink, now);
    this.#statements.run(
      `INSERT INTO position (sink, next, mark, updated_at) VALUES (?1, ?2, ?3, ?4)
       ON CONFLICT (sink) DO UPDATE SET next = max(next, ?2), mark = coalesce(?3, mark), updated_at = ?4`,
      sink,
      step.position,
      step.mark === undefined ? null : JSON.stringify(step.mark),
      now,
    );
    for (const deadLetter of step.deadLetters ?? []) this.deadLetters.add(sink, deadLetter, now);
    if (step.aside !== undefined) this.aside.add(sink, step.aside, now);
  }

  /** Removes set-aside events: delivered ones, and others that become dead letters. */
  settleAside(sink: string, { delivered, guilty }: AsideSettled, now: number): void {
    for (const id of delivered) this.aside.remove(id);
    for (const { id, reason } of guilty) {
      const event = this.aside.get(id);
      if (event === null) continue;
      this.deadLetters.add(sink, { ...event, reason }, now);
      this.aside.remove(id);
    }
  }

  /** Deletes dead letters permanently, and counts them. */
  dropDeadLetters(deadLetters: readonly HeldDeadLetter[], now: number): void {
    for (const deadLetter of deadLetters) this.#removeDeadLetter(deadLetter, now);
    for (const [sink, { length }] of Map.groupBy(deadLetters, (deadLetter) => deadLetter.sink))
      this.receipts.dropped(sink, length, now);
  }

  /** Stores records as events that have waited long enough for the other side of a pair. */
  releaseWaiting(now: number): void {
    this.pairs.release(now, (page) => this.hold(page, now));
  }

  /** The reports on all pairs of the config. */
  pairReports(now: number): readonly PairReport[] {
    const deps = { pairs: this.pairs, statements: this.#statements, now };
    return this.pairs.all.filter((one) => !one.isRetired).map((one) => pairReport(one, deps));
  }

  /** Makes the other side of a pair deliver, if permitted. */
  cutOver(wish: CutoverWish, now: number): Cutover {
    const { pairs } = this;
    return cutOver(wish, {
      pairs,
      now,
      reports: this.pairReports(now),
      store: (page) => this.hold(page, now),
    });
  }

  /** Deletes pages that no sink retains and that are older than `keep`. True: there may be more. */
  prune(now: number): boolean {
    const held = { pages: this.#pages, aside: this.aside };
    this.holders.expire(held, now);
    const mayBeMore = this.#pages.prune(this.passed(), now);
    this.holders.makeRoom(held, now);
    return mayBeMore;
  }

  /** On a full disk: deletes some pages that only removed sinks need. */
  makeDiskRoom(now: number): void {
    this.holders.makeDiskRoom({ pages: this.#pages, aside: this.aside }, now);
  }

  /** The offset before which no sink retains pages, removed ones included. */
  passed(): Offset {
    return this.holders.passed(this.#pages.end);
  }

  /** If it is a cache of a log: the changes since the last call. `all`: also notes that wait for other changes. */
  drain(all = true): readonly OutboxRow[] {
    const { added } = this.#pages;
    const rows = this.transaction(() => drainOutbox(this.#statements, all, added));
    added.clear();
    return rows;
  }

  /** Offset of the next event. */
  get end(): Offset {
    return this.#pages.end;
  }

  /** The meaning of its offsets. */
  get numbering(): Numbering {
    const text = this.#statements.row("SELECT value FROM meta WHERE key = 'epochs'")?.value;
    return { spool: this.id, epochs: epochsFrom(typeof text === 'string' ? text : null) };
  }

  /** Opens a new epoch. */
  beginEpoch(now: number): void {
    this.#saveEpochs(nextEpoch(this.numbering.epochs, this.end, now));
  }

  /** Records may get other offsets from now on: no earlier epoch is trusted. */
  doubtEpochs(): void {
    this.#saveEpochs([]);
  }

  #saveEpochs(epochs: Numbering['epochs']): void {
    const save = "INSERT OR REPLACE INTO meta VALUES ('epochs', ?)";
    this.transaction(() => this.#statements.run(save, JSON.stringify(epochs)));
  }

  /** Size of the WAL that triggers its checkpoint. */
  boundLog(bytes: number): void {
    const pageBytes = Number(this.#statements.row('PRAGMA page_size')?.page_size);
    const pages = Math.max(1, Math.floor(bytes / pageBytes));
    this.#database.exec(`PRAGMA wal_autocheckpoint = ${pages}`);
  }

  /** Limit of blocking while another connection has the lock. */
  boundWait(ms: number): void {
    this.#database.exec(`PRAGMA busy_timeout = ${ms}`);
  }

  /** Moves the whole WAL into the database and returns its space to the disk. */
  emptyLog(): void {
    this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  }

  /** Returns some free pages to the file system; some stay for reuse, but none on a full disk. */
  shrink({ isFull = false } = {}): void {
    const free = Number(this.#statements.row('PRAGMA freelist_count')?.freelist_count ?? 0);
    if (free > (isFull ? 0 : freeMax))
      this.#database.exec(`PRAGMA incremental_vacuum(${shrinkMax})`);
  }

  gauge(): SpoolGauge {
    const gauge = this.#pages.gauge();
    const waiting = this.pairs.bytes;
    return { ...gauge, bytes: gauge.bytes + this.aside.bytes + waiting, waiting };
  }

  /**
   * Events stored at or after an offset, and the time at which the oldest page of all was stored;
   * null: none.
   */
  held(from: Offset = 0): { readonly events: number; readonly oldestAt: number | null } {
    return this.#pages.held(from);
  }

  /** Offsets of stored responses without records, in order; they are not events. */
  answers(): readonly Offset[] {
    return this.#pages.answers();
  }

  /** The gauge, including pages that another process has added. */
  refresh(): SpoolGauge {
    this.#pages.catchUp();
    this.aside.changed();
    this.pairs.changed();
    return this.gauge();
  }

  progress(sink: string): SinkProgress {
    const row = this.#statements.row('SELECT next, mark FROM position WHERE sink = ?', sink);
    if (row === undefined) return { position: 0, mark: null };
    const mark = row.mark;
    return {
      position: Number(row.next),
      mark: typeof mark === 'string' ? JSON.parse(mark) : null,
    };
  }

  /** The positions of all sinks that ever had one. */
  positions(): ReadonlyMap<string, Offset> {
    const rows = this.#statements.rows('SELECT sink, next FROM position');
    return new Map(rows.map(({ sink, next }) => [String(sink), Number(next)]));
  }

  /** Number of rows that this connection has changed, also in transactions that have failed. */
  get changes(): number {
    return Number(this.#statements.row('SELECT total_changes() AS n')?.n);
  }

  /** Whole pages from the one that contains `from`, about `bytesMax`. Throws `state_damaged`. */
  read(from: Offset, bytesMax: number): readonly HeldPage[] {
    return this.#pages.read(from, bytesMax);
  }

  /** Stores a note; `facts` is JSON. */
  note(kind: string, name: string, facts: string, now: number): void {
    writeNote(this.#statements, { kind, name, facts, now });
  }

  /** The notes about streams, sinks, or the owner of a state in Kafka, by name. */
  noted(kind: 'stream' | 'sink' | 'cluster' | 'throttle'): ReadonlyMap<string, JsonObject> {
    return notesOf(this.#statements, kind);
  }

  close(): void {
    this.#statements.clear();
    this.#database.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** The offset of a page that was not stored. */
const noOffset: Offset = -1;

function withoutBody(page: NewPage | null): Omit<NewPage, 'body'> | null {
  if (page === null) return null;
  const { body: _, ...rest } = page;
  return rest;
}

/** Reads a state directory; returns `nothing` if no run has been there. Throws `state_damaged`. */
export function lookInto<T>(dir: string, nothing: T, look: (store: Store) => T): T {
  using store = openIfAny(dir);
  return store === null ? nothing : look(store);
}

/** The database read-only; null: there is none, or it has no tables yet. Looks for these only if it does not open. */
function openIfAny(dir: string): Store | null {
  if (!existsSync(join(dir, databaseName))) return null;
  try {
    return openForLooking(dir);
  } catch {
    return hasState(dir) ? openForLooking(dir) : null;
  }
}

/** Opens the database read-only. The caller closes it. */
export function openForLooking(dir: string): Store {
  return new Store({ dir, sync: 'full', keepMs: 0, readOnly: true });
}

/** Changes a state directory, also while a process runs there. */
export function changeState<T>(settings: StoreSettings, change: (store: Store) => T): T {
  using store = new Store(settings);
  return change(store);
}

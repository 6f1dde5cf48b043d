// Serves the requests to one spool, in the thread that owns its database (spool-worker.ts). Writes that
// arrive during a commit share the next transaction (group commit), which spreads the cost of an
// fsync. Each commit also deletes the pages that every sink has passed, so that new pages reuse
// their space while it is still in the WAL: a WAL checkpoint then costs as much as is stored, not as
// much as was. Replies are posted only after the commit that covers them, all replies of a commit
// together. Invariants: a write that fails (a page without disk space) fails alone; but once the
// database turns out to be damaged, every caller gets the error, because only the next start can
// repair it (repair.ts). A lock of another process is waited for without blocking the thread, since
// other spools may share it. Nothing that a spool does ends the thread.

import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { MessagePort } from 'node:worker_threads';
import { type Append, ExportError, type HeldPage } from '../contracts/index.ts';
import { isDamage, isDatabaseBusy, storeError } from './database.ts';
import { Delivered } from './delivered.ts';
import { Reserve, withReserve } from './reserve.ts';
import { databaseName } from './schema.ts';
import {
  isWrite,
  type Operations,
  operationsOn,
  type ReportedError,
  WaitingNotes,
  type WorkerReplies,
  type WorkerReply,
  type WorkerRequest,
  type WorkerSettings,
} from './spool-operations.ts';
import { type Landed, Store } from './store.ts';
import { withUsedUp } from './used-up.ts';

const tidyEveryMs = 1_000;
/** A wait for the lock of another process: so long the thread is blocked, then it serves others. */
const lockedMs = 20;
const lockedPauseMs = 100;
/** After so long the waiting requests fail. */
const lockedMsMax = 5_000;
/** Notes without news wait so long for another change of the cache (notes.ts). */
const newsMsMax = 600_000;
/** After so long without a successful write, a cache ends: another process may have a disk that works. */
const brokenMsMax = 30_000;
/** A flush that takes longer delays the other spools of the thread noticeably. */
const slowMs = 1_000;

/** One write; id 0 if no caller awaits it. */
interface Job {
  readonly id: number;
  readonly entry?: Append;
  run(): unknown;
}

/** One spool of a thread. */
export class SpoolServer {
  readonly #port: MessagePort;
  readonly #settings: WorkerSettings;
  readonly #store: Store;
  readonly #reserve: Reserve;
  readonly #delivered: Delivered;
  readonly #notes = new WaitingNotes();
  readonly #operations: Operations;
  #waiting: WorkerRequest[] = [];
  #unposted: WorkerReply[] = [];
  #isScheduled = false;
  #isClosed = false;
  /** Since when another process has the lock, monotonic milliseconds; null: none has. */
  #lockedSinceMs: number | null = null;
  /** A flush has taken long. */
  #isSlow = false;
  /** Monotonic milliseconds: the wall clock may be set back. */
  #tidiedMs = Number.NEGATIVE_INFINITY;
  /** Of the last changes for the log, monotonic milliseconds. */
  #drainedMs = performance.now();
  /** Bytes of pages since the start; some of them are in the WAL. */
  #logged = 0;
  /** A page was refused for lack of space; set only then, so that a stream tries first. */
  #refuses = false;
  /** The database file that is open. */
  readonly #file: string | null;
  /** The directory has it no more: a restart would not find what is stored from now on. */
  #isGone = false;
  /** Since when the disk of a cache refuses all writes, monotonic milliseconds; null: the last write succeeded. */
  #brokenSinceMs: number | null = null;
  /** Why nothing that is read or written is reliable any more. */
  #damage: ReportedError | null = null;

  /** Opens a spool, and reports that or its failure as the first message. */
  static open(settings: WorkerSettings, port: MessagePort): void {
    try {
      new SpoolServer(settings, port);
    } catch (error) {
      const { code, message, next } = storeError(error, 'opening the state database');
      const failure: WorkerReplies = { answers: [{ id: 0, error: { code, message, next } }] };
      port.postMessage(failure);
      port.close();
    }
  }

  private constructor(settings: WorkerSettings, port: MessagePort) {
    this.#settings = settings;
    this.#port = port;
    this.#store = withReserve(settings.dir, () => begun(new Store(settings)));
    this.#file = databaseFile(settings.dir);
    const store = this.#store;
    try {
      store.retainFor(settings.sinks);
      // The copy of a cache is deleted at the next start (rebuild.ts).
      const isDurable = settings.sync !== 'none';
      this.#delivered = new Delivered(settings.dir, store, { isDurable });
      for (const [stream, place] of store.streams.places())
        this.#delivered.note(stream, store.end, place);
      // From now on a missing database is known to have existed.
      this.#delivered.save(store.end, Date.now(), true);
      this.#reserve = new Reserve(settings.dir, settings.reserveBytesMax);
      store.boundLog(logBytesMax(this.#reserve));
      store.boundWait(lockedMs);
      this.#operations = operationsOn({
        ...{ store, delivered: this.#delivered, notes: this.#notes },
        accept: () => this.#accept(),
        tick: (isPaused) => this.#tick(isPaused),
      });
      const opened = { gauge: store.gauge(), numbering: store.numbering, held: store.answers() };
      port.postMessage({ answers: [{ id: 0 }], ...opened } satisfies WorkerReplies);
    } catch (error) {
      store.close();
      throw error;
    }
    port.on('message', (questions: readonly WorkerRequest[]) => {
      this.#waiting.push(...questions);
      this.#soon();
    });
  }

  /** An error that no code foresees ends this spool, and no other one. */
  #guarded(): void {
    if (this.#isClosed) return;
    try {
      this.#flush();
    } catch (error) {
      this.#port.postMessage({ answers: [], ended: String(error) } satisfies WorkerReplies);
      this.#close();
    }
  }

  #flush(): void {
    const begunMs = performance.now();
    const questions = this.#waiting;
    this.#waiting = [];
    const now = Date.now();
    for (const { op, args } of questions) if (op === 'note') this.#run(op, args);
    // Also before the end: nothing delivered stays in a directory that is not in use.
    const ending = questions.some((question) => question.op === 'close');
    const tidying =
      ending || performance.now() - this.#tidiedMs >= tidyEveryMs || this.#settings.eager === true;
    const jobs = this.#jobsOf(questions, { tidying, now });
    let written: readonly WorkerReply[];
    try {
      written = this.#commit(jobs);
    } catch (error) {
      if (!isDatabaseBusy(error)) throw error;
      this.#wait(questions);
      return;
    }
    if (ending) this.#store.boundWait(lockedMsMax);
    this.#growReserve(jobs);
    jobs.forEach(({ entry }, index) => {
      if (entry !== undefined)
        this.#follow(entry, written[index]?.result as Landed | undefined, now);
    });
    if (tidying) this.#noteDelivered(now, ending);
    const reads = questions.filter((question) => !isWrite(question) && question.op !== 'note');
    const read = reads.map((question) => this.#answer(question));
    const locked = reads.filter((_, index) => read[index] === null);
    const answered = read.filter((answer) => answer !== null);
    this.#unposted.push(...written.map(withMemory(questions)), ...answered);
    this.#isSlow ||= performance.now() - begunMs > slowMs;
    this.#post(ending);
    if (ending) this.#close();
    else if (locked.length > 0) this.#wait(locked);
    else this.#lockedSinceMs = null;
  }

  /** The writes of these requests, and those that no request names. */
  #jobsOf(
    questions: readonly WorkerRequest[],
    { tidying, now }: { readonly tidying: boolean; readonly now: number },
  ): readonly Job[] {
    const jobs: Job[] = questions.filter(isWrite).map(({ id, op, args }) => ({
      id,
      run: () => this.#run(op, args),
      ...(op === 'append' ? { entry: args[0] as Append } : {}),
    }));
    if (tidying) jobs.push({ id: 0, run: () => this.#notes.write(now) });
    // The time after the appends: a record of the future would be released at once.
    if (tidying && this.#reserve.held)
      jobs.push({ id: 0, run: () => this.#store.releaseWaiting(Date.now()) });
    if (jobs.length > 0) jobs.push({ id: 0, run: () => this.#store.prune(now) });
    return jobs;
  }

  /**
   * Runs all jobs in one transaction. If that fails, each gets its own, so that every possible write
   * succeeds: on a full disk a page may have no space while a position does, and passed pages can
   * still be deleted. Throws if all must wait for a lock; then nothing was written.
   */
  #commit(jobs: readonly Job[], mayWait = true): readonly WorkerReply[] {
    if (jobs.length === 0) return [];
    try {
      const before = this.#brokenSinceMs === null ? 0 : this.#store.changes;
      const written = this.#store.transaction(() =>
        jobs.map(({ id, run }) => ({ id, result: run() })),
      );
      // A transaction without a change writes nothing.
      if (this.#brokenSinceMs !== null && this.#store.changes > before) this.#brokenSinceMs = null;
      return written;
    } catch (error) {
      if (mayWait && this.#waitsAfter(error)) throw error;
      const failure = this.#described(error, 'writing to the state database');
      const isShort = failure.code === 'disk_full' && this.#reserve.held;
      if (isShort) this.#makeRoom();
      if (jobs.length > 1 || isShort) return jobs.flatMap((job) => this.#commit([job], false));
      this.#boundBroken(failure);
      return jobs.map(({ id }) => ({ id, error: failure }));
    }
  }

  /** A full disk recovers, and its events are delivered meanwhile. */
  #boundBroken(failure: ReportedError): void {
    if (this.#settings.isCache !== true) return;
    if (failure.code !== 'state_damaged' && failure.code !== 'state_unwritable') return;
    const nowMs = performance.now();
    this.#brokenSinceMs ??= nowMs;
    if (nowMs - this.#brokenSinceMs > brokenMsMax) this.#damage ??= failure;
  }

  /** True if another process has the lock, and not for too long: this thread serves other spools meanwhile. */
  #waitsAfter(error: unknown): boolean {
    if (!isDatabaseBusy(error)) return false;
    const nowMs = performance.now();
    this.#lockedSinceMs ??= nowMs;
    if (nowMs - this.#lockedSinceMs < lockedMsMax) return true;
    this.#lockedSinceMs = null;
    return false;
  }

  /** Runs these requests again, before later ones. */
  #wait(questions: readonly WorkerRequest[]): void {
    this.#waiting.unshift(...questions);
    this.#soon(lockedPauseMs);
  }

  /** Runs a flush, at once or after a pause. */
  #soon(pauseMs = 0): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const work = () => {
      this.#isScheduled = false;
      this.#guarded();
    };
    if (pauseMs === 0) setImmediate(work);
    else setTimeout(work, pauseMs);
  }

  /** Grows the reserve before the WAL reaches its limit; then both may grow. */
  #growReserve(jobs: readonly Job[]): void {
    for (const { entry } of jobs)
      for (const { body } of entry?.pages ?? []) this.#logged += body.byteLength;
    if (this.#logged > logBytesMax(this.#reserve) && this.#reserve.grow())
      this.#store.boundLog(logBytesMax(this.#reserve));
  }

  /** From now on pages are refused, and writes that free space succeed. */
  #makeRoom(): void {
    this.#reserve.release();
    this.#emptyLog();
  }

  #emptyLog(): void {
    try {
      this.#store.emptyLog();
    } catch {
      // Retried at the next tick.
    }
  }

  /** Polling does not pause for a removed sink, also if the disk is full. */
  #releaseForDisk(): void {
    try {
      this.#store.transaction(() => this.#store.makeDiskRoom(Date.now()));
      this.#store.shrink({ isFull: true });
    } catch (error) {
      this.#described(error, 'returning space to the disk');
    }
  }

  #accept(): void {
    if (this.#isGone) {
      const what = 'storing a page: state.dir was deleted, moved or replaced while sluice runs';
      throw new ExportError('state_unwritable', what, {
        next: 'Put the same directory back. Polling pauses meanwhile, and stored events are still delivered. If it is lost, restart sluice: it begins with an empty state.',
      });
    }
    if (!this.#reserve.held) {
      this.#refuses = true;
      throw new ExportError('disk_full', 'holding a page: the disk is full', {
        next: 'Make room in state.dir; polling pauses meanwhile and nothing is lost.',
      });
    }
    this.#refuses = false;
  }

  #tick(isPaused: boolean): void {
    const isGone = databaseFile(this.#settings.dir) !== this.#file;
    // Commands open a database by its path, so requests of operators would change another one.
    if (this.#settings.isCache === true && isGone) this.#damage ??= cacheGone;
    else this.#isGone = isGone;
    this.#store.holders.paused(isPaused);
    this.#store.shrink();
    if (!this.#reserve.held) {
      this.#releaseForDisk();
      this.#emptyLog();
      this.#reserve.retake();
    }
    this.#store.refresh();
  }

  /** Notes a stream's position once it is durable. */
  #follow(entry: Append, landed: Landed | undefined, now: number): void {
    if (landed === undefined) return;
    const { stream, checkpoint, entities, parent } = entry;
    if (parent !== undefined || checkpoint === undefined) return;
    if (entities !== undefined) this.#delivered.forget(stream);
    else {
      const place = { checkpoint, block: landed.block, at: now };
      this.#delivered.note(stream, this.#store.end, place);
    }
  }

  #noteDelivered(now: number, ending: boolean): void {
    this.#tidiedMs = performance.now();
    try {
      this.#delivered.advance(this.#store.passed());
      this.#delivered.save(this.#store.end, now, ending);
    } catch (error) {
      this.#described(error, 'reading the state database');
    }
  }

  /** Posts the replies. If the changes cannot be read from a cache, they wait: no reply is released before its changes are in the log. */
  #post(isEnding: boolean): void {
    const changed = this.#changed(isEnding);
    if (changed === null && this.#damage === null) return;
    // Of a damaged cache no change is read any more, so that these requests fail.
    const answers = changed === null ? [] : this.#unposted;
    this.#unposted = [];
    const replies: WorkerReplies = {
      answers,
      ...this.#measured(),
      ...changed,
      hasReleased: this.#store.holders.hasReleased(),
      diskFull: this.#refuses && !this.#reserve.held,
      ...(this.#isSlow ? { isSlow: true } : {}),
      ...(this.#damage === null ? {} : { damage: this.#damage }),
    };
    // No row of a log is used here any more.
    const moved = (changed?.changed ?? []).flatMap(({ value }) => ownBuffer(value));
    this.#port.postMessage(replies, [...answers.flatMap(transferable), ...moved]);
  }

  #measured(): Pick<WorkerReplies, 'gauge'> {
    try {
      return { gauge: this.#store.gauge() };
    } catch (error) {
      this.#described(error, 'reading the state database');
      return {};
    }
  }

  /** The changes of a cache; null: they cannot be read now. */
  #changed(isEnding: boolean): Pick<WorkerReplies, 'changed'> | null {
    if (this.#settings.isCache !== true) return {};
    const nowMs = performance.now();
    const isDue = isEnding || nowMs - this.#drainedMs > newsMsMax;
    try {
      const changed = this.#store.drain(isDue);
      if (changed.length > 0 || isDue) this.#drainedMs = nowMs;
      return { changed };
    } catch (error) {
      const failure = this.#described(error, 'reading the state database');
      if (failure.code === 'disk_full' && this.#reserve.held) this.#makeRoom();
      this.#boundBroken(failure);
      this.#soon(lockedPauseMs);
      return null;
    }
  }

  /** Reads see the commits of the same flush. Null: another process has the lock. */
  #answer({ id, op, args }: WorkerRequest): WorkerReply | null {
    try {
      return { id, result: this.#run(op, args) };
    } catch (error) {
      if (this.#waitsAfter(error)) return null;
      return { id, error: this.#described(error, 'reading the state database') };
    }
  }

  /** The caller's types guarantee valid operations and arguments. */
  #run(op: string, args: readonly unknown[]): unknown {
    const operation = this.#operations[op as keyof Operations];
    return (operation as (...of: readonly unknown[]) => unknown)(...args);
  }

  #described(error: unknown, doing: string): ReportedError {
    const { code, message, next } = withUsedUp(storeError(error, doing), this.#settings.dir);
    const reported: ReportedError = { code, message, next };
    if (isDamage(error)) this.#damage ??= reported;
    return reported;
  }

  /** The port closes after the database: then the directory may be unlocked. */
  #close(): void {
    this.#isClosed = true;
    try {
      this.#store.close();
    } finally {
      this.#port.close();
    }
  }
}

/**
 * The store in a new epoch. A failed one is closed: the thread outlives it, and its handle would later delete the WAL of the
 * next database in the directory.
 */
function begun(store: Store): Store {
  try {
    store.beginEpoch(Date.now());
    return store;
  } catch (error) {
    store.close();
    throw error;
  }
}

/** Device and inode of the directory's database; null: none is reachable. */
function databaseFile(dir: string): string | null {
  try {
    const { dev, ino } = statSync(join(dir, databaseName), { bigint: true });
    return `${dev} ${ino}`;
  } catch {
    return null;
  }
}

/** The log has the state of a cache. */
const cacheGone: ReportedError = {
  code: 'state_unwritable',
  message:
    'using the cache of the state: state.dir was deleted, moved or replaced while sluice runs',
  next: 'Nothing is lost: Kafka has the state, and the next start builds the cache again. With several shards, each of them starts again by itself.',
};

/** The WAL must fit into the reserve twice, to be checkpointed on a full disk. */
function logBytesMax({ bytes }: Reserve): number {
  return bytes / 2;
}

/** Returns the buffers of pages with the reply, if each page had its own. */
function withMemory(questions: readonly WorkerRequest[]): (answer: WorkerReply) => WorkerReply {
  const entries = questions.flatMap(({ id, op, args }) =>
    op === 'append' ? [[id, args[0] as Append] as const] : [],
  );
  const appended = new Map(entries);
  return (answer) => {
    const pages = appended.get(answer.id)?.pages;
    if (pages === undefined) return answer;
    return { ...answer, memory: pages.map(({ body }) => body.buffer as ArrayBuffer) };
  };
}

function transferable(answer: WorkerReply): ArrayBuffer[] {
  if (answer.memory !== undefined) return [...answer.memory];
  if (!Array.isArray(answer.result)) return [];
  const pages = answer.result as readonly Partial<HeldPage>[];
  return [...new Set(pages.flatMap(({ body }) => ownBuffer(body)))];
}

/** The memory of these bytes if nothing else is in it. */
function ownBuffer(bytes: Uint8Array | null | undefined): ArrayBuffer[] {
  const buffer = bytes?.buffer;
  return buffer instanceof ArrayBuffer && bytes?.byteLength === buffer.byteLength ? [buffer] : [];
}

// The main thread's connection to a spool in its thread (spool-threads.ts): requests, replies, and pages' bodies.
// Positions and notes, which no caller awaits, are delayed a little to share the message and commit
// of an append. Invariant: every request except a note gets its reply, or an error once the spool is closed.

import {
  type Acknowledgement,
  type Append,
  asExportError,
  ExportError,
  isFileLimit,
} from '../contracts/index.ts';
import { type CommitRows, HeldBack } from './held-back.ts';
import type {
  Operations,
  WorkerReplies,
  WorkerReply,
  WorkerRequest,
  WorkerSettings,
} from './spool-operations.ts';
import { openInThread, type ThreadPlace } from './spool-threads.ts';
import type { Landed } from './store.ts';

/**
 * How long positions and notes are delayed; after a power cut the events of this time are sent
 * again.
 */
const lingerMs = 50;
/** The same with a log, in which a position alone costs a transaction. */
const lingerLoggedMs = 250;
/** Number and maximum size of the buffers kept for pages on their way to the worker. */
const sparesMax = 4;
const spareBytesMax = 4 * 1024 * 1024;
const spareBytesMin = 128 * 1024;

/** A caller that awaits a reply. */
interface Waiter {
  readonly resolve: (result: unknown, memory: readonly ArrayBuffer[]) => void;
  readonly reject: (error: Error) => void;
}

/** Receives messages that were not requested. */
export interface ThreadListener {
  /** After each commit, once its replies are resolved. */
  readonly replied: (answers: WorkerReplies) => void;
  /** The spool is closed: no request is possible. */
  readonly failed: (error: Error) => void;
}

interface RequestOptions<T> {
  readonly transfer: ArrayBuffer[];
  /** Computes the result at the moment of the reply. */
  readonly onAnswer: (result: unknown, memory: readonly ArrayBuffer[]) => T;
}

/** An open spool in its thread. */
export class SpoolThread {
  readonly #place: ThreadPlace;
  readonly #isEager: boolean;
  /** Buffers for copies of pages on their way to the worker. */
  readonly #spare: ArrayBuffer[] = [];
  /** If the database is a cache: replies wait for the log. */
  readonly #heldBack: HeldBack | null;
  readonly #unanswered = new Map<number, Waiter>();
  /** Delayed requests. All can be cloned, so they never fail the others. */
  #lingering: WorkerRequest[] = [];
  #linger: NodeJS.Timeout | undefined;
  #listener: ThreadListener = { replied: () => undefined, failed: () => undefined };
  #lastId = 0;
  #opening: PromiseWithResolvers<WorkerReplies> | null = null;
  /** Why no request is possible any more. */
  #over: Error | null = null;

  /** `commit`: writes changes to the log that the database is a cache of. `sharesThread`: with other spools of this process. */
  constructor(
    settings: WorkerSettings,
    {
      commit,
      sharesThread,
    }: { readonly commit: CommitRows | null; readonly sharesThread: boolean },
  ) {
    this.#isEager = settings.eager === true;
    const release = (said: WorkerReplies) => this.#hear(said);
    const lost = (error: Error) => this.#fail(error);
    this.#heldBack = commit === null ? null : new HeldBack(commit, { release, lost });
    this.#place = openInThread(
      { ...settings, isCache: commit !== null },
      { sharesThread, ended: (error) => void this.#lose(error) },
    );
  }

  /**
   * Resolves with the first message: the database is open. Rejects with the reason if not.
   */
  async opened(): Promise<WorkerReplies> {
    const { port } = this.#place;
    const first = Promise.withResolvers<WorkerReplies>();
    this.#opening = first;
    port.once('message', first.resolve);
    if (this.#over !== null) first.reject(this.#over);
    try {
      const opened = await first.promise;
      for (const { error } of opened.answers) if (error !== undefined) throw revived(error);
      const heldBack = this.#heldBack;
      port.on('message', (said: WorkerReplies) =>
        (heldBack ?? { add: this.#hear.bind(this) }).add(said),
      );
      return opened;
    } catch (error) {
      await this.#place.leave();
      throw error;
    }
  }

  /** The spool or its thread has ended. */
  async #lose(error: Error): Promise<void> {
    await this.#heldBack?.empty();
    this.#fail(ended(error));
  }

  /** Sets the listener. */
  listen(listener: ThreadListener): void {
    this.#listener = listener;
  }

  /** Stores a note soon. It has no reply: a status note is not worth a wait, and the next one replaces it. */
  note(...args: Parameters<Operations['note']>): void {
    if (this.#over === null) this.#send({ id: 0, op: 'note', args });
  }

  ask<K extends keyof Operations>(
    op: K,
    ...args: Parameters<Operations[K]>
  ): Promise<ReturnType<Operations[K]>> {
    const onAnswer = (result: unknown) => result as ReturnType<Operations[K]>;
    return this.#ask(op, args, { transfer: [], onAnswer });
  }

  /**
   * Appends pages whose bodies stay in use here: large bodies move to the worker and come back.
   * `landed` is called with the bodies before any listener learns of the new end.
   */
  append(
    entry: Append,
    landed: (where: Landed, bodies: readonly Uint8Array[]) => void,
  ): Promise<number> {
    const pages = entry.pages.map(({ slices: _, ...page }) => ({
      ...page,
      body: travels(page.body) ? page.body : this.#lend(page.body),
    }));
    const bodies = entry.pages.map(({ body }) => (travels(body) ? body.length : body));
    return this.#ask('append', [{ ...entry, pages }], {
      transfer: pages.map((page) => page.body.buffer as ArrayBuffer),
      onAnswer: (result, memory) => {
        const back = bodies.map((body, index) =>
          typeof body === 'number'
            ? new Uint8Array(memory[index] ?? new ArrayBuffer(body), 0, body)
            : body,
        );
        this.#takeBack(memory.filter((_, index) => typeof bodies[index] !== 'number'));
        landed(result as Landed, back);
        return (result as Landed).block;
      },
    });
  }

  /** Finishes all requests, and closes the database. */
  async close(): Promise<void> {
    const closing = this.ask('close').catch(() => undefined);
    // After a failure nothing waits for replies, and the database is still open.
    if (this.#over !== null) this.#post([{ id: 0, op: 'close', args: [] }]);
    this.#over ??= new Error('the spool is closed');
    await closing;
    this.#fail(this.#over);
    await this.#place.leave();
  }

  #ask<T>(op: keyof Operations, args: readonly unknown[], how: RequestOptions<T>): Promise<T> {
    if (this.#over !== null) return Promise.reject(this.#over);
    this.#lastId += 1;
    const question: WorkerRequest = { id: this.#lastId, op, args };
    return new Promise((resolve, reject) => {
      this.#send(question, how.transfer);
      this.#unanswered.set(question.id, {
        resolve: (result, memory) => resolve(how.onAnswer(result, memory)),
        reject,
      });
    });
  }

  /** Posts a request, or delays it if no caller waits for its effect. */
  #send(question: WorkerRequest, transfer: ArrayBuffer[] = []): void {
    if (canLinger(question) && !this.#isEager) {
      this.#lingering.push(question);
      const ms = this.#heldBack === null ? lingerMs : lingerLoggedMs;
      this.#linger ??= setTimeout(() => this.#post([]), ms);
    } else this.#post([question], transfer);
  }

  /** Posts the delayed requests, and then these. Throws if one cannot be cloned. */
  #post(questions: readonly WorkerRequest[], transfer: ArrayBuffer[] = []): void {
    this.#place.port.postMessage([...this.#lingering, ...questions], transfer);
    this.#lingering = [];
    clearTimeout(this.#linger);
    this.#linger = undefined;
  }

  /**
   * A copy for the worker while the original stays in use here. It uses a buffer that the worker
   * has returned, because allocating costs more than copying.
   */
  #lend(body: Uint8Array): Uint8Array {
    const last = this.#spare.pop();
    const fits = last !== undefined && last.byteLength >= body.length;
    const memory = fits ? last : new ArrayBuffer(roundedUp(body.length));
    const copy = new Uint8Array(memory, 0, body.length);
    copy.set(body);
    return copy;
  }

  #takeBack(memory: readonly ArrayBuffer[]): void {
    const small = memory.filter(({ byteLength }) => byteLength <= spareBytesMax);
    this.#spare.push(...small.slice(0, sparesMax - this.#spare.length));
  }

  #hear(said: WorkerReplies): void {
    for (const { id, result, error, memory = [] } of said.answers) {
      const waiter = this.#unanswered.get(id);
      this.#unanswered.delete(id);
      if (error !== undefined) waiter?.reject(revived(error));
      else waiter?.resolve(result, memory);
    }
    if (said.isSlow === true) this.#place.isolate();
    this.#listener.replied(said);
    if (said.ended !== undefined) this.#fail(ended(new Error(said.ended)));
    if (said.damage !== undefined) this.#fail(revived(said.damage));
  }

  /** The spool is closed or of no use: rejects all pending and all later requests. */
  #fail(error: Error): void {
    this.#over ??= error;
    this.#opening?.reject(this.#over);
    for (const waiter of this.#unanswered.values()) waiter.reject(this.#over);
    this.#unanswered.clear();
    this.#listener.failed(this.#over);
  }
}

/** True if no caller's next step depends on the reply. Marks and dead letters are awaited. */
function canLinger({ op, args }: WorkerRequest): boolean {
  if (op === 'note') return true;
  if (op !== 'acknowledge') return false;
  const { mark, deadLetters, aside } = args[1] as Acknowledgement;
  return mark === undefined && deadLetters === undefined && aside === undefined;
}

/**
 * True for a body whose copy would be costly: it moves to the worker itself and comes back with the
 * reply. A body of this size has its own buffer.
 */
export function travels(body: Uint8Array): boolean {
  return body.length > spareBytesMax && body.byteOffset === 0;
}

function roundedUp(bytes: number): number {
  return Math.ceil(bytes / spareBytesMin) * spareBytesMin;
}

function revived(error: NonNullable<WorkerReply['error']>): ExportError {
  return new ExportError(error.code, error.message, { next: error.next });
}

function ended(cause: Error): ExportError {
  if (isFileLimit(cause)) return asExportError(cause, 'running the thread of the spool');
  return new ExportError('broken_invariant', `the spool's thread has ended: ${cause.message}`, {
    next: 'Start sluice again. All stored events are on disk and nothing is lost. If it recurs, report this message.',
    cause,
  });
}

// If the database is a cache of a log, each reply waits until all its changes are committed to the
// log, so that no caller acts on state that is not yet replicated. Replies that arrive during a
// commit share the next one. Invariants: replies are released in their order of arrival; no reply
// is released before its changes are in the log.

import type { OutboxRow } from './outbox.ts';
import type { WorkerReplies } from './spool-operations.ts';

/** Commits rows to the log, all or nothing; rejects if another process owns the log. */
export type CommitRows = (rows: readonly OutboxRow[]) => Promise<void>;

/** Receives the released replies. */
interface ReplyListener {
  readonly release: (said: WorkerReplies) => void;
  readonly lost: (error: Error) => void;
}

/** Target bytes of pages per commit: each transaction has a fixed cost. */
const commitBytesMax = 4 * 1024 * 1024;

/** The queue of replies. */
export class HeldBack {
  readonly #commit: CommitRows;
  readonly #listener: ReplyListener;
  #waiting: WorkerReplies[] = [];
  #isWorking = false;
  #work: Promise<void> = Promise.resolve();

  constructor(commit: CommitRows, listener: ReplyListener) {
    this.#commit = commit;
    this.#listener = listener;
  }

  add(said: WorkerReplies): void {
    this.#waiting.push(said);
    if (!this.#isWorking) this.#work = this.#hand();
  }

  /** Resolves when no reply waits. */
  async empty(): Promise<void> {
    await this.#work;
  }

  async #hand(): Promise<void> {
    this.#isWorking = true;
    try {
      while (this.#waiting.length > 0) {
        const { answers, rows } = this.#take();
        if (rows.length > 0) await this.#commit(rows);
        for (const said of answers) this.#listener.release(said);
      }
    } catch (error) {
      this.#waiting = [];
      this.#listener.lost(error as Error); // Commits reject with nothing else.
    } finally {
      this.#isWorking = false;
    }
  }

  /** The first waiting replies, and each row that they changed in its latest version. */
  #take() {
    const rows = new Map<string, OutboxRow>();
    let bytes = 0;
    let count = 0;
    for (const { changed = [] } of this.#waiting) {
      if (bytes > commitBytesMax) break;
      count += 1;
      for (const row of changed) {
        rows.set(JSON.stringify([row.table, ...row.key]), row);
        bytes += row.value?.length ?? 0;
      }
    }
    return { answers: this.#waiting.splice(0, count), rows: [...rows.values()] };
  }
}

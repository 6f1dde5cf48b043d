// Where the database is a cache of a log, what it answers waits until all that it held by then is
// in the log: so nobody acts on what another process would not find there. Answers that come while
// a commit is under way share the next one. What must stay true: answers are given in the order in
// which they came, and none is given whose changes are not in the log.

import type { OutboxRow } from './outbox.ts';
import type { WorkerReplies } from './spool-messages.ts';

/** Puts rows into the log, all or nothing; rejects when that is for others to do now. */
export type CommitRows = (rows: readonly OutboxRow[]) => Promise<void>;

/** Who is told. */
interface ReportSink {
  readonly release: (said: WorkerReplies) => void;
  readonly lost: (error: Error) => void;
}

/** Pages of one commit have about so many bytes; a transaction has a price whatever is in it. */
const commitBytesMax = 4 * 1024 * 1024;

/** Answers on their way. */
export class HeldBack {
  readonly #commit: CommitRows;
  readonly #told: ReportSink;
  #waiting: WorkerReplies[] = [];
  #isWorking = false;
  #work: Promise<void> = Promise.resolve();

  constructor(commit: CommitRows, reported: ReportSink) {
    this.#commit = commit;
    this.#told = reported;
  }

  add(said: WorkerReplies): void {
    this.#waiting.push(said);
    if (!this.#isWorking) this.#work = this.#hand();
  }

  /** Resolves when none waits. */
  async empty(): Promise<void> {
    await this.#work;
  }

  async #hand(): Promise<void> {
    this.#isWorking = true;
    try {
      while (this.#waiting.length > 0) {
        const { answers, rows } = this.#take();
        if (rows.length > 0) await this.#commit(rows);
        for (const said of answers) this.#told.release(said);
      }
    } catch (error) {
      this.#waiting = [];
      this.#told.lost(error as Error); // commits reject with nothing else
    } finally {
      this.#isWorking = false;
    }
  }

  /** The first ones that wait, and each row that they changed as it is by the last of them. */
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

// What was posted on one channel and is not acknowledged yet. Splunk counts its ids per channel and
// per indexer, and tells `true` once: an id is asked for until then. What must stay true: an id
// stands for one batch. Where Splunk gives one that still waits, either its `true` was lost or
// another indexer counts: nobody can know which batch a `true` would be for, so all are sent again.

import type { ExportError } from '../../../src/contracts/errors.ts';

/** How a batch that was posted ends: null: it is indexed; else why it is to be sent again. */
export type Acknowledged = ExportError | null;

interface Waiting {
  /** On the monotonic clock. */
  readonly sinceMs: number;
  /** Nobody waits for it any more where it is aborted. */
  readonly signal: AbortSignal;
  tell(end: Acknowledged): void;
}

/** The batches of one channel that wait. */
export class Acks {
  readonly channel: string;
  readonly #waiting = new Map<number, Waiting>();

  constructor(channel: string) {
    this.channel = channel;
  }

  /** Oldest first. */
  get ids(): readonly number[] {
    return [...this.#waiting.keys()];
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** When the oldest of them was posted; infinite: none waits. */
  get sinceMs(): number {
    return this.#waiting.values().next().value?.sinceMs ?? Number.POSITIVE_INFINITY;
  }

  has(id: number): boolean {
    return this.#waiting.has(id);
  }

  /** Resolves when it is known how the batch ends. */
  add(id: number, posted: Omit<Waiting, 'tell'>): Promise<Acknowledged> {
    return new Promise((report) => this.#waiting.set(id, { ...posted, tell: report }));
  }

  forgetAborted(): void {
    for (const [id, { signal }] of this.#waiting) if (signal.aborted) this.#waiting.delete(id);
  }

  /** These are indexed. */
  confirm(ids: readonly number[]): void {
    for (const id of ids) this.#end(id, null);
  }

  /** Those that were posted until then are to be sent again; whether there are such. */
  lose(cause: ExportError, untilMs = Number.POSITIVE_INFINITY): boolean {
    const lost = [...this.#waiting].filter(([, { sinceMs }]) => sinceMs <= untilMs);
    for (const [id] of lost) this.#end(id, cause);
    return lost.length > 0;
  }

  #end(id: number, end: Acknowledged): void {
    this.#waiting.get(id)?.tell(end);
    this.#waiting.delete(id);
  }
}

// Posted batches of one channel that are not acknowledged yet. Splunk counts its ids per channel
// and per indexer, and reports `true` once: an id is queried until then. Invariant: an id stands
// for one batch. If Splunk assigns an id that still waits, either its `true` was lost or another
// indexer counts: a `true` could belong to either batch, so all are sent again.

import type { ExportError } from '../../../src/contracts/index.ts';

/** The result of a posted batch. Null: indexed; otherwise the reason to send it again. */
export type Acknowledged = ExportError | null;

interface Waiting {
  /** On the monotonic clock. */
  readonly sinceMs: number;
  /** Aborted: no caller waits for it any more. */
  readonly signal: AbortSignal;
  report(end: Acknowledged): void;
}

/** The waiting batches of one channel. */
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

  /** Resolves when the batch's result is known. */
  add(id: number, posted: Omit<Waiting, 'report'>): Promise<Acknowledged> {
    return new Promise((report) => this.#waiting.set(id, { ...posted, report }));
  }

  forgetAborted(): void {
    for (const [id, { signal }] of this.#waiting) if (signal.aborted) this.#waiting.delete(id);
  }

  /** These are indexed. */
  confirm(ids: readonly number[]): void {
    for (const id of ids) this.#end(id, null);
  }

  /** Batches posted until then are sent again; returns whether there was any. */
  lose(cause: ExportError, untilMs = Number.POSITIVE_INFINITY): boolean {
    const lost = [...this.#waiting].filter(([, { sinceMs }]) => sinceMs <= untilMs);
    for (const [id] of lost) this.#end(id, cause);
    return lost.length > 0;
  }

  #end(id: number, end: Acknowledged): void {
    this.#waiting.get(id)?.report(end);
    this.#waiting.delete(id);
  }
}

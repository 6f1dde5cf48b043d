// The batches on one connection without a result, in the order of writing. Invariants: results are
// reported in that order, and none twice.

import type { Delivery, ExportError } from '../../../src/contracts/index.ts';

/** A caller that waits for a batch's result. */
export interface Waiter {
  /** Called once. */
  readonly report: (delivery: Delivery) => void;
  /** Aborted: the caller waits no longer. */
  readonly signal: AbortSignal;
}

/** A batch in flight. */
export interface UnsettledBatch {
  /** Bytes written up to and with this batch. */
  readonly end: number;
  readonly writtenMs: number;
  /** When this kernel had accepted the whole batch; infinite until then. */
  flushedMs: number;
  readonly waiter: Waiter;
}

/** The batches of one connection. */
export class Unsettled {
  readonly #batches: UnsettledBatch[] = [];

  /** The first written one; undefined: all have a result. */
  get oldest(): UnsettledBatch | undefined {
    return this.#batches[0];
  }

  /** True if no caller waits for any of them. */
  get isAbandoned(): boolean {
    return this.#batches.every(({ waiter }) => waiter.signal.aborted);
  }

  /** Adds a batch that is being written. */
  add(batch: Omit<UnsettledBatch, 'flushedMs'>): UnsettledBatch {
    const carried = { ...batch, flushedMs: Number.POSITIVE_INFINITY };
    this.#batches.push(carried);
    return carried;
  }

  /**
   * Reports batches as delivered: all, or those before the first for which `isSettled` is false.
   */
  settle(isSettled: (batch: UnsettledBatch) => boolean = () => true): void {
    const open = this.#batches.findIndex((batch) => !isSettled(batch));
    const count = open === -1 ? this.#batches.length : open;
    for (const { waiter } of this.#batches.splice(0, count))
      waiter.report({ outcome: 'delivered' });
  }

  /** Reports all of them to be sent again. */
  sendBack(cause: ExportError): void {
    for (const { waiter } of this.#batches.splice(0)) waiter.report({ outcome: 'retry', cause });
  }
}

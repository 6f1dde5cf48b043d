// The batches on one connection that have no fate yet, in the order of writing. What must stay
// true: fates are told in that order, and none is told twice.

import type { ExportError } from '../../../src/contracts/errors.ts';
import type { Delivery } from '../../../src/contracts/sink.ts';

/** Who waits for a batch's fate. */
export interface Waiter {
  /** Told once. */
  readonly tell: (delivery: Delivery) => void;
  /** Once aborted nobody waits any more. */
  readonly signal: AbortSignal;
}

/** A batch on its way. */
export interface UnsettledBatch {
  /** Bytes written up to and with this batch. */
  readonly end: number;
  readonly writtenMs: number;
  /** When our kernel had it whole; infinite until then. */
  flushedMs: number;
  readonly waiter: Waiter;
}

/** Those of one connection. */
export class Unsettled {
  readonly #batches: UnsettledBatch[] = [];

  /** The one written first; undefined: all have their fate. */
  get oldest(): UnsettledBatch | undefined {
    return this.#batches[0];
  }

  /** True where nobody waits for any of them. */
  get isForsaken(): boolean {
    return this.#batches.every(({ waiter }) => waiter.signal.aborted);
  }

  /** Adds one that is being written. */
  add(batch: Omit<UnsettledBatch, 'flushedMs'>): UnsettledBatch {
    const carried = { ...batch, flushedMs: Number.POSITIVE_INFINITY };
    this.#batches.push(carried);
    return carried;
  }

  /** Tells that they are delivered: all, or those before the first for which this does not hold. */
  settle(isSettled: (batch: UnsettledBatch) => boolean = () => true): void {
    const open = this.#batches.findIndex((batch) => !isSettled(batch));
    const count = open === -1 ? this.#batches.length : open;
    for (const { waiter } of this.#batches.splice(0, count)) waiter.tell({ outcome: 'delivered' });
  }

  /** Tells all of them to be sent again. */
  sendBack(cause: ExportError): void {
    for (const { waiter } of this.#batches.splice(0)) waiter.tell({ outcome: 'retry', cause });
  }
}

// The life cycle of the sink's producer: created on first use, kept until the first failure, then
// destroyed. Each use is bounded in time and ends at once when the engine aborts. Invariants: a
// producer that has failed is never used again (port.ts explains why); once fenced, no new one is
// created, because that would fence the other process, unless the creation confirms before and
// after that it is this process's turn, and the fencing producer's turn was over.

import { type Clock, invariant } from '../../../src/contracts/index.ts';
import type { KafkaProducer } from '../../../src/kafka/index.ts';
import { KafkaFailure } from '../../../src/kafka/index.ts';

const closeMsMax = 5_000;

/** Options of a connection. */
export interface ConnectionOptions {
  readonly make: () => KafkaProducer;
  /** The brokers rejected the account, or a right is missing. */
  readonly onDenied: () => void;
  readonly clock: Clock;
  /** Bound on one use, including connecting. */
  readonly timeoutMs: number;
  /**
   * The creation of a producer confirms that it is this process's turn
   * (`KafkaTransactions.confirm`).
   */
  readonly mayFence: boolean;
}

/** A producer on demand. One use at a time. */
export class ProducerConnection {
  readonly #options: ConnectionOptions;
  #producer: KafkaProducer | null = null;
  #fenced: KafkaFailure | null = null;
  #closed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /**
   * Runs `work` with a producer that has never failed. Rejects with a KafkaFailure, with the
   * ExportError of an unreadable secret, or with the signal's reason.
   */
  async use<T>(work: (producer: KafkaProducer) => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    invariant(!this.#closed, 'a closed Kafka connection is not used');
    if (this.#fenced !== null) throw this.#fenced;
    const producer = this.#producer ?? this.#options.make();
    this.#producer = producer;
    try {
      return await this.#within(work(producer), signal);
    } catch (error) {
      this.#producer = null;
      producer.destroy();
      if (error instanceof KafkaFailure && error.kind === 'denied') this.#options.onDenied();
      if (!(error instanceof KafkaFailure && error.kind === 'fenced')) throw error;
      if (this.#options.mayFence) {
        throw new KafkaFailure('passing', error.message, { answered: true, cause: error });
      }
      this.#fenced = error;
      throw error;
    }
  }

  /** Disconnects, within a few seconds whatever the broker does. */
  async close(): Promise<void> {
    this.#closed = true;
    const producer = this.#producer;
    this.#producer = null;
    if (producer === null) return;
    const over = new AbortController();
    const limit = this.#options.clock.sleep(closeMsMax, over.signal);
    await Promise.race([producer.close(), limit]).catch(() => {});
    producer.destroy();
    over.abort();
  }

  async #within<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
    const { clock, timeoutMs } = this.#options;
    const over = new AbortController();
    const limit = clock.sleep(timeoutMs, AbortSignal.any([signal, over.signal])).then(() => {
      throw new KafkaFailure('passing', `no answer within ${timeoutMs} ms`, { answered: false });
    });
    try {
      return await Promise.race([work, limit]);
    } finally {
      over.abort();
    }
  }
}

// The wait before a retry if the server requested none. Growing, so that a long outage is not
// hammered; jittered, so that a thousand streams that failed together do not return together; and
// never below a minimum, so that no path without progress becomes a hot loop.

import type { Clock } from '../contracts/index.ts';

/** Bounds in milliseconds; `random` gives [0, 1). */
export interface BackOffOptions {
  readonly minMs?: number;
  readonly maxMs?: number;
  readonly random: () => number;
}

/** Doublings after which the bound has reached any sensible maximum; keeps the power finite. */
const doublingsMax = 30;

/**
 * A growing wait with full jitter: the n-th one is between `minMs` (1 s) and `minMs` x 2^n or `maxMs` (5 min). One per
 * retried operation; `reset` it on success. A class, because each of thousands of streams has one.
 */
export class BackOff {
  readonly #options: BackOffOptions;
  #doublings = 0;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  /** Milliseconds to wait before the next attempt; each call without a reset may wait longer. */
  next(): number {
    const { minMs = 1_000, maxMs = 300_000, random } = this.#options;
    this.#doublings = Math.min(this.#doublings + 1, doublingsMax);
    const boundMs = Math.min(Math.max(minMs, maxMs), minMs * 2 ** this.#doublings);
    return minMs + random() * (boundMs - minMs);
  }

  /** Back to the first wait. */
  reset(): void {
    this.#doublings = 0;
  }
}

const lastingMsMin = 1_000;

interface LastingOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly random: () => number;
}

/**
 * A wait that grows with the duration of a condition, so that it is never much longer than that. Half jitter: between
 * half of the time since the first call, and the whole.
 */
export class LastingBackOff {
  readonly #options: LastingOptions;
  #since: number | null = null;

  constructor(options: LastingOptions) {
    this.#options = options;
  }

  /** How long the condition has lasted, and the wait before the next attempt, from 1 s to `maxMs`. */
  next(maxMs: number): { readonly lastedMs: number; readonly waitMs: number } {
    const { clock, random } = this.#options;
    const now = clock.monotonic();
    this.#since ??= now;
    const lastedMs = now - this.#since;
    const boundMs = Math.min(maxMs, Math.max(2 * lastingMsMin, lastedMs));
    const waitMs = Math.max(lastingMsMin, boundMs * (0.5 + random() / 2));
    return { lastedMs, waitMs };
  }

  /** The condition is over. */
  reset(): void {
    this.#since = null;
  }
}

// The wait before trying again when the far side gave none. Growing, so that a long outage is not hammered; jittered,
// so that a thousand streams that failed together do not return together; and never below a floor, so that no path
// without progress becomes a hot loop.

/** A growing wait. One per thing that is tried again; `reset` it on success. */
export interface BackOff {
  /** Milliseconds to wait before the next try; each call without a reset may wait longer. */
  next(): number;
  /** Back to the first wait. */
  reset(): void;
}

/** Bounds in milliseconds; `random` gives [0, 1). */
export interface BackOffOptions {
  readonly minMs?: number;
  readonly maxMs?: number;
  readonly random: () => number;
}

/** Doublings after which the bound is at any sensible maximum; keeps the power finite. */
const doublingsMax = 30;

/**
 * Full jitter over a doubling bound: the n-th wait is uniform between `minMs` (1 s) and min(`maxMs` (5 min),
 * `minMs` x 2^n).
 */
export function backOff(options: BackOffOptions): BackOff {
  const minMs = options.minMs ?? 1_000;
  const maxMs = Math.max(minMs, options.maxMs ?? 300_000);
  let doublings = 0;
  return {
    next() {
      doublings = Math.min(doublings + 1, doublingsMax);
      const boundMs = Math.min(maxMs, minMs * 2 ** doublings);
      return minMs + options.random() * (boundMs - minMs);
    },
    reset() {
      doublings = 0;
    },
  };
}

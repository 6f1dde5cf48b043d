// A clock that only a test moves. Sleepers wake in the order they are due, and after each waking the event loop runs
// for a few turns, so that the sleeper's next actions happen before time moves.

import type { Clock } from '../../src/contracts/tools.ts';

interface Sleeper {
  readonly dueMs: number;
  readonly wake: () => void;
}

/** A Clock whose time is the test's. */
export interface ManualClock extends Clock {
  /** How many are asleep now. */
  readonly sleepers: number;
  /** Milliseconds until the next sleeper is due; null: there is no sleeper. */
  readonly nextInMs: number | null;
  /** Moves time on by `ms`, waking each sleeper at its own moment, then settles. */
  advance(ms: number): Promise<void>;
  /** Moves time to the next sleeper and wakes it; returns the time moved, or null if there is no sleeper. */
  advanceToNext(): Promise<number | null>;
  /** Lets the wall clock jump by `ms`, which waits do not feel. */
  jump(ms: number): void;
  /** Gives promises and I/O callbacks a few turns of the event loop. */
  settle(): Promise<void>;
}

/** A clock that starts at `start` (epoch ms, default 2026-01-01T00:00:00Z) and moves only on request. */
export function manualClock(start: number = Date.UTC(2026, 0, 1)): ManualClock {
  let elapsedMs = 0;
  let offsetMs = 0;
  const asleep = new Set<Sleeper>();

  const next = (): Sleeper | null => {
    let first: Sleeper | null = null;
    for (const sleeper of asleep) {
      if (first === null || sleeper.dueMs < first.dueMs) first = sleeper;
    }
    return first;
  };
  const settle = async () => {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  const wake = async (sleeper: Sleeper) => {
    elapsedMs = Math.max(elapsedMs, sleeper.dueMs);
    sleeper.wake();
    await settle();
  };

  return {
    now: () => start + offsetMs + elapsedMs,
    monotonic: () => elapsedMs,
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const stop = () => {
          asleep.delete(sleeper);
          reject(signal?.reason);
        };
        const sleeper: Sleeper = {
          dueMs: elapsedMs + Math.max(0, ms),
          wake: () => {
            asleep.delete(sleeper);
            signal?.removeEventListener('abort', stop);
            resolve();
          },
        };
        asleep.add(sleeper);
        signal?.addEventListener('abort', stop, { once: true });
      });
    },
    get sleepers() {
      return asleep.size;
    },
    get nextInMs() {
      const sleeper = next();
      return sleeper === null ? null : sleeper.dueMs - elapsedMs;
    },
    async advance(ms) {
      const until = elapsedMs + ms;
      await settle();
      for (let sleeper = next(); sleeper !== null && sleeper.dueMs <= until; sleeper = next()) {
        await wake(sleeper);
      }
      elapsedMs = until;
    },
    async advanceToNext() {
      await settle();
      const sleeper = next();
      if (sleeper === null) return null;
      const step = sleeper.dueMs - elapsedMs;
      await wake(sleeper);
      return step;
    },
    jump(ms) {
      offsetMs += ms;
    },
    settle,
  };
}

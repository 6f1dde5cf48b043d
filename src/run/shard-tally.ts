// The shards of a process, and which of them run, for readiness, metrics and `status`. Invariants: a shard that has ended
// by itself counts as failing until it runs here again or another process owns it, also in the pause before the next attempt;
// a shard that is being stopped in order counts as running until its end.

import type { LastError, ShardShare } from '../watch/index.ts';

/** The turn of a shard, as far as the tally needs it. */
interface Worker {
  /** It has opened its part of the state, and works. */
  readonly runs: boolean;
  /** It was stopped in order. */
  readonly isStopped: boolean;
  /** Why it ended; null: not reported. */
  readonly error: LastError | null;
  /** Whether it took the shard from another process. */
  readonly takeovers: number;
}

interface Entry {
  readonly worker: Worker | null;
  readonly ends: number;
  readonly error: LastError | null;
}

/** The shards of one process. */
export class ShardTally {
  readonly #entries = new Map<number, Entry>();
  #takeovers = 0;

  /** The group has assigned it to this process. */
  gained(shard: number): void {
    this.#put(shard, { worker: null });
  }

  started(shard: number, worker: Worker): void {
    this.#put(shard, { worker });
  }

  /** A worker has ended with this exit code. */
  ended(shard: number, code: number): void {
    const { worker, ends = 0 } = this.#entries.get(shard) ?? {};
    this.#takeovers += worker?.takeovers ?? 0;
    const isFailed = code !== 0;
    const inRow = worker?.runs === true ? 1 : ends + 1;
    this.#put(shard, { worker: null, ends: isFailed ? inRow : 0, error: worker?.error ?? null });
  }

  /** The process has released it. */
  released(shard: number): void {
    if ((this.#entries.get(shard)?.ends ?? 0) === 0) this.#entries.delete(shard);
  }

  /** Another process owns it, or the config has no work for it. */
  given(shard: number): void {
    this.#entries.delete(shard);
  }

  get share(): ShardShare {
    const all = [...this.#entries].sort(([a], [b]) => a - b);
    const runs = all.filter(([, entry]) => isRunning(entry));
    return {
      owned: all.map(([shard]) => shard),
      running: runs.map(([shard]) => shard),
      failing: all
        .filter(([, entry]) => !isRunning(entry))
        .map(([shard, { ends, error }]) => ({ shard, sink: null, ends, error })),
    };
  }

  /** How often a worker took its shard from another process since the start. */
  get takeovers(): number {
    const now = [...this.#entries.values()].map(({ worker }) => worker?.takeovers ?? 0);
    return now.reduce((sum, count) => sum + count, this.#takeovers);
  }

  #put(shard: number, change: Partial<Entry>): void {
    const known = this.#entries.get(shard) ?? { worker: null, ends: 0, error: null };
    this.#entries.set(shard, { ...known, ...change });
  }
}

function isRunning({ worker }: Entry): boolean {
  return worker !== null && (worker.runs || worker.isStopped);
}

// Which shards a process has and which of their workers run, for readiness, metrics and `status`.
// What must stay true: a worker that has ended by itself counts as failing until it runs here again
// or another process has its shard, so also in the pause before the next attempt; and one that is
// being stopped in order counts as running until its end.

import type { LastError, ShardShare } from '../watch/standing.ts';

/** What a worker is for: a shard, or a sink of a shard that has a process of its own. */
export interface WorkerKey {
  readonly shard: number;
  readonly sink: string | null;
}

/** A worker, as far as the tally asks for it. */
interface Worker {
  /** It has opened its part of the state, and works. */
  readonly runs: boolean;
  /** It was asked to end. */
  readonly isStopped: boolean;
  /** Why it ended; null: it did not say. */
  readonly error: LastError | null;
  /** Whether it took the shard from another process. */
  readonly takeovers: number;
}

interface Entry {
  readonly key: WorkerKey;
  readonly worker: Worker | null;
  readonly ends: number;
  readonly error: LastError | null;
}

/** The workers of one process. */
export class ShardTally {
  readonly #entries = new Map<string, Entry>();
  /** Epoch milliseconds of the last answer of the group of each. */
  readonly #heardAt = new Map<string, number>();
  #takeovers = 0;

  /** The group has assigned it to this process. */
  gained(key: WorkerKey): void {
    this.#put(key, { worker: null });
  }

  started(key: WorkerKey, worker: Worker): void {
    this.#put(key, { worker });
  }

  /** A worker has ended with this exit code. */
  ended(key: WorkerKey, code: number): void {
    const { worker, ends = 0 } = this.#entries.get(keyOf(key)) ?? {};
    this.#takeovers += worker?.takeovers ?? 0;
    const isFailed = code !== 0;
    const inRow = worker?.runs === true ? 1 : ends + 1;
    this.#put(key, { worker: null, ends: isFailed ? inRow : 0, error: worker?.error ?? null });
  }

  /** The process has left its group. */
  released(key: WorkerKey): void {
    if ((this.#entries.get(keyOf(key))?.ends ?? 0) === 0) this.#entries.delete(keyOf(key));
  }

  /** Another process has it, or nothing needs it any more. */
  given(key: WorkerKey): void {
    this.#entries.delete(keyOf(key));
  }

  /** Its group has answered a request that was sent then; epoch milliseconds. */
  heard(key: WorkerKey, at: number): void {
    this.#heardAt.set(keyOf(key), at);
  }

  /** The process takes no more part in its group. */
  left(key: WorkerKey): void {
    this.#entries.delete(keyOf(key));
    this.#heardAt.delete(keyOf(key));
  }

  get share(): ShardShare {
    const all = [...this.#entries.values()];
    const shards = all.filter(({ key }) => key.sink === null);
    return {
      owned: shards.map(({ key }) => key.shard).sort((a, b) => a - b),
      running: shards
        .filter(isRunning)
        .map(({ key }) => key.shard)
        .sort((a, b) => a - b),
      failing: all
        .filter((entry) => !isRunning(entry))
        .map(({ key, ends, error }) => ({ ...key, ends, error })),
    };
  }

  /** How often a worker took its shard from another process since the start. */
  get takeovers(): number {
    const now = [...this.#entries.values()].map(({ worker }) => worker?.takeovers ?? 0);
    return now.reduce((sum, count) => sum + count, this.#takeovers);
  }

  /** When the group that was silent longest has answered; null: none has yet. */
  get heardAt(): number | null {
    return this.#heardAt.size === 0 ? null : Math.min(...this.#heardAt.values());
  }

  #put(key: WorkerKey, change: Partial<Entry>): void {
    const known = this.#entries.get(keyOf(key)) ?? { key, worker: null, ends: 0, error: null };
    this.#entries.set(keyOf(key), { ...known, ...change });
  }
}

function isRunning({ worker }: Entry): boolean {
  return worker !== null && (worker.runs || worker.isStopped);
}

/** A worker by name: the shard's number, and the sink behind it. */
export function keyOf({ shard, sink }: WorkerKey): string {
  return sink === null ? `${shard}` : `${shard} ${sink}`;
}

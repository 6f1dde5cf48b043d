// The conditions that the fetch stage has reported since the start: gaps, resets and others, once they are durable.
// Invariant: the size grows with kinds of conditions and streams, not with time.

import type { LiveStatus } from './status-facts.ts';

/** A condition as the fetch stage reports it. */
interface Found {
  readonly condition: string;
  readonly stream: string;
  readonly observed_at: string;
  readonly message: string;
}

/** How often a condition was reported for a stream since the start. */
export interface FoundCount {
  readonly condition: string;
  readonly stream: string;
  readonly count: number;
}

const latestMax = 50;

/** The conditions since the start. */
export class Findings {
  readonly #latest: LiveStatus['conditions'][number][] = [];
  readonly #counts = new Map<string, FoundCount>();

  /** Differences of the configs of other processes with this state, a sentence for each process. */
  configDifferences: readonly string[] = [];

  /** The latest few, newest first. */
  get latest(): LiveStatus['conditions'] {
    return this.#latest;
  }

  counts(): readonly FoundCount[] {
    return [...this.#counts.values()];
  }

  readonly add = ({ condition, stream, observed_at, message }: Found): void => {
    this.#latest.unshift({ condition, stream, observed_at, message });
    this.#latest.length = Math.min(this.#latest.length, latestMax);
    const key = JSON.stringify([condition, stream]);
    const known = this.#counts.get(key) ?? { condition, stream, count: 0 };
    this.#counts.set(key, { ...known, count: known.count + 1 });
  };
}

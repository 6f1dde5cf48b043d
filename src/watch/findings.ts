// What fetch has found about its sources since the start: gaps, resets and the like, as they became
// durable. What must stay true: it does not grow with time, but by kinds of findings and streams.

import type { LiveStatus } from './status-facts.ts';

/** A finding as fetch tells it. */
interface Found {
  readonly condition: string;
  readonly stream: string;
  readonly observed_at: string;
  readonly message: string;
}

/** How often a condition was found in a stream since the start. */
export interface FoundCount {
  readonly condition: string;
  readonly stream: string;
  readonly count: number;
}

const latestMax = 50;

/** What was found since the start. */
export class Findings {
  readonly #latest: LiveStatus['conditions'][number][] = [];
  readonly #counts = new Map<string, FoundCount>();

  /** How the configs of other processes with the state differ, a sentence for each process. */
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

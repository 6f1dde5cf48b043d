// The comparisons with upstream in the log: the last one of each stream, and earlier ones with differences. Memory is
// bounded by the number of streams.

import type { Compared } from './findings.ts';

/** Limit of reported comparisons with differences, newest first. */
const differingMax = 1_000;

/** Follows the comparisons of all streams. */
export class Comparisons {
  readonly #last = new Map<string, Compared>();
  #differing: Compared[] = [];

  /** In the order of the log. */
  get reported(): readonly Compared[] {
    const reported = new Set([...this.#differing, ...this.#last.values()]);
    return [...reported].toSorted((a, b) => a.index - b.index);
  }

  take(one: Compared): void {
    this.#last.set(one.stream, one);
    if (one.dropped + one.missing + one.changed === 0) return;
    this.#differing.push(one);
    if (this.#differing.length > 2 * differingMax)
      this.#differing = this.#differing.slice(-differingMax);
  }
}

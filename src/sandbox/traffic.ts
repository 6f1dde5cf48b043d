// Counts requests and responses per path, so a test can require "one request per idle poll" or "no second token
// request", and an operator can watch a rehearsal.

/** The requests of one path. `statuses` counts responses; cut and hung ones are only in `faults`. */
export interface PathTraffic {
  readonly requests: number;
  readonly statuses: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
}

interface Counts {
  requests: number;
  readonly statuses: Record<string, number>;
  readonly faults: Record<string, number>;
}

/** The request counters of a sandbox. */
export class Traffic {
  readonly #paths = new Map<string, Counts>();

  count(path: string, seen: { readonly status: number; readonly fault: string | null }): void {
    const counts = this.#paths.get(path) ?? { requests: 0, statuses: {}, faults: {} };
    this.#paths.set(path, counts);
    counts.requests += 1;
    counts.statuses[seen.status] = (counts.statuses[seen.status] ?? 0) + 1;
    if (seen.fault !== null) counts.faults[seen.fault] = (counts.faults[seen.fault] ?? 0) + 1;
  }

  /** A copy of the counters by path. */
  read(): Readonly<Record<string, PathTraffic>> {
    return structuredClone(Object.fromEntries(this.#paths));
  }

  reset(): void {
    this.#paths.clear();
  }
}

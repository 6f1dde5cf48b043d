// What fetch has found about its sources since the start: gaps, resets and the like, as they became
// durable. What must stay true: it does not grow with time, but by kinds of findings and streams.

import type { LiveStanding } from './standing.ts';

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

/** What was found since the start. */
export interface Findings {
  /** The latest few, newest first. */
  readonly latest: LiveStanding['conditions'];
  counts(): readonly FoundCount[];
  add(found: Found): void;
}

const latestMax = 50;

/** Nothing found yet. */
export function openFindings(): Findings {
  const latest: LiveStanding['conditions'][number][] = [];
  const counts = new Map<string, FoundCount>();
  return {
    latest,
    counts: () => [...counts.values()],
    add({ condition, stream, observed_at, message }) {
      latest.unshift({ condition, stream, observed_at, message });
      latest.length = Math.min(latest.length, latestMax);
      const key = JSON.stringify([condition, stream]);
      const known = counts.get(key) ?? { condition, stream, count: 0 };
      counts.set(key, { ...known, count: known.count + 1 });
    },
  };
}

// What fetch has found about its sources since the start: gaps, resets and the like, as they became durable. What must stay
// true: it does not grow with time, but by kinds of findings and streams.

import type { Watched, WatchedCondition } from './watched.ts';

/** A finding as fetch tells it. */
interface Found {
  readonly condition: string;
  readonly stream: string;
  readonly observed_at: string;
  readonly message: string;
}

/** What was found since the start. */
export interface Findings {
  /** The latest few, newest first. */
  readonly latest: readonly WatchedCondition[];
  counts(): Watched['conditionCounts'];
  add(found: Found): void;
}

const latestMax = 50;

/** Nothing found yet. */
export function openFindings(): Findings {
  const latest: WatchedCondition[] = [];
  const counts = new Map<string, { condition: string; stream: string; count: number }>();
  return {
    latest,
    counts: () => [...counts.values()],
    add({ condition, stream, observed_at: observedAt, message }) {
      latest.unshift({ condition, stream, observedAt, message });
      latest.length = Math.min(latest.length, latestMax);
      const key = JSON.stringify([condition, stream]);
      const known = counts.get(key) ?? { condition, stream, count: 0 };
      counts.set(key, { ...known, count: known.count + 1 });
    },
  };
}

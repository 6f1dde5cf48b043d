// Which of an upstream's rate limits apply to a stream's requests, for the status: the limits of its paths and of paths
// below them, and the limit of the credential.

import type { PathLimit } from './status-facts.ts';

/** The limits of an upstream, for look-up by stream. */
export type PathLimits = ReadonlyMap<string, PathLimit>;

/** The tightest limit at or below each path. */
export function budgetsOf(throttles: readonly PathLimit[]): PathLimits {
  const budgets = new Map<string, PathLimit>();
  for (const throttle of throttles) {
    let path = throttle.path;
    while (path !== '') {
      budgets.set(path, tighter(budgets.get(path), throttle));
      path = path.slice(0, Math.max(0, path.lastIndexOf('/')));
    }
  }
  return budgets;
}

/** The tightest limit of these paths; null: none is known. */
export function budgetOf(budgets: PathLimits, paths: readonly string[]): PathLimit | null {
  let tightest: PathLimit | undefined;
  for (const path of [...paths, '*']) {
    const budget = budgets.get(path);
    if (budget !== undefined) tightest = tighter(tightest, budget);
  }
  return tightest ?? null;
}

/** The limit with the longer wait, else the one with the smaller remaining share. */
function tighter(one: PathLimit | undefined, other: PathLimit): PathLimit {
  if (one === undefined) return other;
  if (one.wait_ms !== other.wait_ms) return one.wait_ms > other.wait_ms ? one : other;
  return shareLeft(one) <= shareLeft(other) ? one : other;
}

function shareLeft({ limit, remaining }: PathLimit): number {
  if (remaining === null) return Number.POSITIVE_INFINITY;
  return limit === null || limit === 0 ? remaining : remaining / limit;
}

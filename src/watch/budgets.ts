// Which of an upstream's limits a stream's requests pass, for the status: those of the paths that
// it asks and of what stands below them, and the credential's own, which all pass.

import type { PathLimit } from './status-facts.ts';

/** An upstream's limits, to be looked up for each of its streams. */
export type PathLimits = ReadonlyMap<string, PathLimit>;

/** By path, the tightest limit at or below it. */
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

/** Whose next request goes later, else of whose budget a smaller share is left. */
function tighter(one: PathLimit | undefined, other: PathLimit): PathLimit {
  if (one === undefined) return other;
  if (one.wait_ms !== other.wait_ms) return one.wait_ms > other.wait_ms ? one : other;
  return shareLeft(one) <= shareLeft(other) ? one : other;
}

function shareLeft({ limit, remaining }: PathLimit): number {
  if (remaining === null) return Number.POSITIVE_INFINITY;
  return limit === null || limit === 0 ? remaining : remaining / limit;
}

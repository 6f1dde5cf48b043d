// Which of an upstream's limits a stream's requests pass, for the status. Throttles are known by path and streams by what
// they read, so the two are brought together here: by the config's path, filled in for the company or as it stands; or by
// company and resource, for sources whose paths the API fixes; or as the credential's own limit, which all pass.

import { filledPath } from '../../connectors/shared/upstream-path.ts';
import type { Stream } from '../contracts/source.ts';
import type { WatchedBudget } from './watched.ts';

/** An upstream's limits, to be looked up for each of its streams. */
export type Budgets = ReadonlyMap<string, WatchedBudget>;

/** Ordered for `budgetOf`. */
export function budgetsOf(throttles: readonly WatchedBudget[]): Budgets {
  const budgets = new Map<string, WatchedBudget>();
  for (const throttle of throttles) {
    const [, ofCompany] = /\/companies\/([^/]+\/[^/]+)/.exec(throttle.path) ?? [];
    for (const key of [throttle.path, ofCompany]) {
      if (key !== undefined) budgets.set(key, tighter(budgets.get(key), throttle));
    }
  }
  return budgets;
}

/** The keys under which a stream's limits stand; `path` is its source's in the config, where it has one. */
export function budgetKeys(stream: Stream, path: unknown): readonly string[] {
  const company = stream.company ?? '';
  if (stream.kind === 'snapshot') {
    const filled = filledPath('{company_id}', { company_id: company }) ?? company;
    return [`${filled}/${stream.resource}`, `{company_id}/${stream.resource}`, '*'];
  }
  if (typeof path !== 'string') return ['*'];
  return [filledPath(path, { company_id: company }) ?? path, path, '*'];
}

/** The tightest limit under these keys; null: none is known. */
export function budgetOf(budgets: Budgets, keys: readonly string[]): WatchedBudget | null {
  let tightest: WatchedBudget | undefined;
  for (const key of keys) {
    const budget = budgets.get(key);
    if (budget !== undefined) tightest = tighter(tightest, budget);
  }
  return tightest ?? null;
}

/** Whose next request goes later, else of whose budget a smaller share is left. */
function tighter(one: WatchedBudget | undefined, other: WatchedBudget): WatchedBudget {
  if (one === undefined) return other;
  if (one.waitMs !== other.waitMs) return one.waitMs > other.waitMs ? one : other;
  return shareLeft(one) <= shareLeft(other) ? one : other;
}

function shareLeft({ limit, remaining }: WatchedBudget): number {
  if (remaining === null) return Number.POSITIVE_INFINITY;
  return limit === null || limit === 0 ? remaining : remaining / limit;
}

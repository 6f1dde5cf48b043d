// Events on which a route's filter failed. The first per route and source is logged, the others are
// counted.

import type { Log } from '../contracts/index.ts';
import { cleanText } from '../tools/index.ts';
import type { FilterFailure } from './route.ts';

/** Failures of one route and source. */
export interface FilterFailuresOf {
  readonly last: FilterFailure;
  readonly count: number;
}

/** All failures since the start. */
export class FilterFailures {
  readonly #log: Log;
  readonly #byWay = new Map<string, FilterFailuresOf>();

  constructor(log: Log) {
    this.#log = log;
  }

  get all(): readonly FilterFailuresOf[] {
    return [...this.#byWay.values()];
  }

  add(last: FilterFailure): void {
    const { route, source, why } = last;
    const way = `${route} ${source}`;
    const count = (this.#byWay.get(way)?.count ?? 0) + 1;
    this.#byWay.set(way, { last, count });
    if (count > 1) return;
    this.#log.warn('filter_failed', 'a filter cannot judge an event, and lets it pass', {
      ...{ route: `routes[${route}]`, source, why: cleanText(why, 300) },
    });
  }
}

// Finds the endpoint for a path and asks it. An endpoint is a function from a request to an answer;
// it knows nothing of tokens, limits or faults, which are settled before it is asked.
import { type Answer, type Ask, failed } from './answers.ts';
import type { ListBehaviour } from './behaviour.ts';
import type { Cursors } from './cursors.ts';
import type { Firewall } from './firewall.ts';
import type { GrowingList, PagedList } from './lists.ts';
import type { PageCache } from './page-cache.ts';
import { type Cut, cursorPage, offsetPage, type Paged } from './paging.ts';

/** What endpoints read from. */
export interface World {
  readonly seed: number;
  readonly companies: readonly string[];
  readonly lists: ReadonlyMap<string, GrowingList>;
  readonly firewalls: ReadonlyMap<string, Firewall>;
  readonly behaviour: (path: string) => ListBehaviour;
  readonly cursors: Cursors;
  readonly cache: PageCache;
  readonly limitMax: number;
  readonly now: () => number;
}

/** An endpoint. `params` are the path's placeholders, decoded. */
export interface Route {
  /** A path with `{name}` placeholders. */
  readonly path: string;
  /** The scope a unified token must hold. */
  readonly scope?: string;
  readonly answer: (ask: Ask, params: Readonly<Record<string, string>>, world: World) => Answer;
}

/** Finds routes by path. */
export type Router = (
  path: string,
) => { readonly route: Route; readonly params: Readonly<Record<string, string>> } | null;

/** A router over a table; the first route that matches is taken. */
export function routerOf(routes: readonly Route[]): Router {
  const table = routes.map((route) => {
    const source = route.path
      .split(/\{(\w+)\}/)
      .map((part, at) => (at % 2 === 1 ? `(?<${part}>[^/]+)` : RegExp.escape(part)));
    return { route, pattern: new RegExp(`^${source.join('')}$`) };
  });
  return (path) => {
    for (const { route, pattern } of table) {
      const match = pattern.exec(path);
      if (match !== null) return { route, params: decoded(match.groups ?? {}) };
    }
    return null;
  };
}

/** Answers with a page of a list in cursor style. */
export function cursorAnswer(ask: Ask, list: PagedList, world: World): Answer {
  return pageAnswer(ask, cursorPage(list, cutOf(ask, world)));
}

/** Answers with a page of a list in offset style. */
export function offsetAnswer(ask: Ask, list: PagedList, world: World): Answer {
  return pageAnswer(ask, offsetPage(list, cutOf(ask, world)));
}

function cutOf(ask: Ask, world: World): Cut {
  const { behaviour, cursors, cache, limitMax, now } = world;
  return {
    api: ask.api,
    query: ask.query,
    behaviour: behaviour(ask.path),
    cursors,
    cache,
    limitMax,
    nowMs: now(),
  };
}

function pageAnswer(ask: Ask, paged: Paged): Answer {
  if (paged.outcome === 'refused') return failed(ask.api, paged.failure);
  return { status: 200, headers: {}, content: { form: 'page', page: paged.page } };
}

function decoded(groups: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(groups).map(([name, value]) => [name, decodeOr(value)]));
}

function decodeOr(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

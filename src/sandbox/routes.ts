// Finds the endpoint of a path and calls it. An endpoint is a function from a request to a response; tokens, limits and
// faults are handled before it is called.
import { failed, type SandboxRequest, type SandboxResponse } from './answers.ts';
import type { ListBehaviour } from './behaviour.ts';
import type { Collection } from './collection.ts';
import type { Cursors } from './cursors.ts';
import type { Firewall } from './firewall.ts';
import { endless, type GrowingList, type PagedList } from './lists.ts';
import { oneSided } from './one-sided.ts';
import type { PageCache } from './page-cache.ts';
import { cursorPage, offsetPage, type PageCut, type Paged } from './paging.ts';

/** The data of endpoints. */
export interface World {
  readonly seed: number;
  readonly companies: readonly string[];
  readonly lists: ReadonlyMap<string, GrowingList>;
  readonly firewalls: ReadonlyMap<string, Firewall>;
  /** By path. */
  readonly collections: ReadonlyMap<string, Collection>;
  readonly behaviour: (path: string) => ListBehaviour;
  readonly cursors: Cursors;
  readonly cache: PageCache;
  readonly limitMax: number;
  /** Whether the services API is the successor of the earlier one. */
  readonly isSuccessor: boolean;
  readonly now: () => number;
}

/** An endpoint. `params` are the path's placeholders, decoded. */
export interface SandboxRoute {
  /** A path with `{name}` placeholders. */
  readonly path: string;
  /** Default GET. */
  readonly method?: 'GET' | 'POST';
  /** Its text in the OpenAPI description; null or undefined: it is not described. */
  readonly about?: string | null;
  /** Its query parameters, for the OpenAPI description. */
  readonly query?: readonly string[];
  readonly deprecated?: boolean;
  /** The scope that a unified token must have. */
  readonly scope?: string;
  readonly answer: (
    ask: SandboxRequest,
    params: Readonly<Record<string, string>>,
    world: World,
  ) => SandboxResponse;
}

/** Finds the routes of a path: one for each of its methods. */
export type Router = (path: string) => readonly RouteFound[];

/** A route and the values of its placeholders. */
interface RouteFound {
  readonly route: SandboxRoute;
  readonly params: Readonly<Record<string, string>>;
}

/** A router over a table. */
export function routerOf(routes: readonly SandboxRoute[]): Router {
  const table = routes.map((route) => {
    const source = route.path
      .split(/\{(\w+)\}/)
      .map((part, at) => (at % 2 === 1 ? `(?<${part}>[^/]+)` : RegExp.escape(part)));
    return { route, pattern: new RegExp(`^${source.join('')}$`) };
  });
  return (path) =>
    table.flatMap(({ route, pattern }) => {
      const match = pattern.exec(path);
      return match === null ? [] : [{ route, params: decoded(match.groups ?? {}) }];
    });
}

/** A route below a company; unknown companies are rejected. */
export function forCompany(route: SandboxRoute): SandboxRoute {
  return {
    ...route,
    answer: (ask, params, world) =>
      world.companies.includes(params.company_id ?? '')
        ? route.answer(ask, params, world)
        : failed(ask.api, { status: 404, message: 'no such company' }),
  };
}

/** The collection of a route. Throws if assemble.ts created none. */
export function sandboxCollectionOf({ collections }: World, path: string): Collection {
  const collection = collections.get(path);
  if (collection === undefined) throw new Error(`the sandbox has no collection ${path}`);
  return collection;
}

/** Answers with a page of a list in cursor style. */
export function cursorAnswer(ask: SandboxRequest, list: PagedList, world: World): SandboxResponse {
  return pageAnswer(ask, cursorPage(seen(ask, list, world), pageCutOf(ask, world)));
}

/** Answers with a page of a list in offset style. */
export function offsetAnswer(ask: SandboxRequest, list: PagedList, world: World): SandboxResponse {
  return pageAnswer(ask, offsetPage(seen(ask, list, world), pageCutOf(ask, world)));
}

/** Answers with the whole list and nothing else. */
export function plainAnswer(list: PagedList): SandboxResponse {
  const data: string[] = [];
  for (let index = list.first(); index < list.size(); index += 1) {
    if (list.visible(index)) data.push(list.textAt(index));
  }
  const page = {
    items: () => data,
    joined: () => Buffer.from(data.join(',')),
    fields: new Map<string, string>(),
    startCursor: () => 'null',
  };
  return { status: 200, headers: {}, content: { form: 'page', page } };
}

/** A list as the fault script shows it to a request. */
export function seen(ask: SandboxRequest, list: PagedList, world: World): PagedList {
  const behaviour = world.behaviour(ask.path);
  const own = oneSided(list, behaviour);
  return behaviour.endless === true ? endless(own) : own;
}

/** The parameters of a page, for a request. */
export function pageCutOf(ask: SandboxRequest, world: World): PageCut {
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

/** A page, or its rejection, as a response. */
export function pageAnswer(ask: SandboxRequest, paged: Paged): SandboxResponse {
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

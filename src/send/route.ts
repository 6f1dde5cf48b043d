// Routes: the events that a sink gets, and the fields that are masked or removed. Invariants: an
// event on which a filter (tools/filter.ts) fails passes and is counted, so that no filter loses an event;
// masks (mask.ts) and redaction work on a copy, after the filter. The record's own bytes cannot be
// changed, so a sink that writes them must not be on a route that masks or redacts (checked with the
// config). A masked event is never copied from its record: its lines take the ordinary path.

import {
  type Event,
  isObject,
  type JsonObject,
  type Masks,
  type OcsfEvent,
  type Route,
} from '../contracts/index.ts';
import { compileFilter, type Filter, pathsRead } from '../tools/index.ts';
import type { Choosing } from '../transcode/index.ts';
import { compileMask, type Mask } from './mask.ts';

/** The selection of one source's events for one sink. */
export interface Selection {
  /** Equal keys select and redact alike, so their results are shared. */
  readonly key: string;
  /** The event as the sink receives it; null if it is not for this sink. */
  select(event: Event): Event | null;
  /**
   * The same for a writer that creates no event objects. Default: every record is written
   * unchanged.
   */
  readonly choosing?: Choosing;
  /** True: events are masked, so every line is made by the format from the masked event. */
  readonly masks?: boolean;
}

/** Selects everything unchanged. */
export const everything: Selection = { key: '', select: (event) => event };

/** An event on which the filter of a route failed, so that it passed. */
export interface FilterFailure {
  /** Index among the config's routes. */
  readonly route: number;
  readonly source: string;
  readonly where: string;
  /** May contain text of the event. */
  readonly why: string;
}

/** Called for each failure. */
export type FilterFailed = (failure: FilterFailure) => void;

/** A route from one source to one sink. */
interface Way {
  readonly source: string;
  readonly sink: string;
}

/** True if an event of the source may go to the sink. */
export function leadsTo(routes: readonly Route[], { source, sink }: Way): boolean {
  return (
    routes.length === 0 || routes.some(({ from, to }) => from.includes(source) && to.includes(sink))
  );
}

/**
 * The selection for `sink` and `source`; null: no route leads there. Without routes, every sink
 * gets everything.
 */
export function selectionFor(
  routes: readonly Route[],
  way: Way,
  failed: FilterFailed,
): Selection | null {
  if (routes.length === 0) return everything;
  const ways = waysOf(routes, way);
  if (ways.length === 0) return null;
  if (ways.every(changesNothing)) return everything;
  // A trial evaluation, whose result goes to no sink, is not counted.
  let isTrial = false;
  let hasFailed = false;
  const masks = ways.map(maskOf);
  /** The error of a filter may repeat values of its event. */
  const cleaned = (why: string, event: Event) =>
    masks.reduce((text, mask) => mask?.clean(text, event.ocsf) ?? text, why);
  const steps = ways.map((route, index) => ({
    passes: passesOf(route, (where, why, event) => {
      hasFailed = true;
      if (isTrial) return;
      const source = way.source;
      failed({ route: routes.indexOf(route), source, where, why: cleaned(why, event) });
    }),
    change: compileChange(route.redact ?? [], masks[index] ?? null),
  }));
  const select = (event: Event): Event | null => {
    // The first route that passes an event decides its masks and its redaction.
    const step = steps.find(({ passes }) => passes(event));
    return step === undefined ? null : step.change(event);
  };
  const key = JSON.stringify(
    ways.map((route, index) => {
      const parts = [route.where ?? null, route.redact ?? []];
      const mask = masks[index];
      return mask ? [...parts, mask.print] : parts;
    }),
  );
  return {
    key,
    select,
    ...(masks.some((mask) => mask !== null) && { masks: true }),
    choosing: {
      seen: ways.flatMap(({ where }) => (where === undefined ? [] : pathsRead(where))),
      redacts: ways.some(({ redact = [] }) => redact.length > 0),
      choose(event) {
        isTrial = true;
        hasFailed = false;
        const chosen = select(event);
        isTrial = false;
        return hasFailed ? undefined : chosen;
      },
    },
  };
}

/** The routes of a way, in order, up to the first one that passes every event. */
function waysOf(routes: readonly Route[], { source, sink }: Way): readonly Route[] {
  const ways = routes.filter((r) => r.from.includes(source) && r.to.includes(sink));
  const last = ways.findIndex(({ where }) => !where);
  return last < 0 ? ways : ways.slice(0, last + 1);
}

/** If all routes of a way do so, its sink gets everything unchanged; the last one has no filter. */
function changesNothing({ redact, mask }: Route, _index: number, ways: readonly Route[]): boolean {
  const isWhole = !ways.at(-1)?.where;
  return isWhole && !redact?.length && Object.keys(mask ?? {}).length === 0;
}

function maskOf({ mask = {}, maskKey: key }: Route): Mask | null {
  return Object.keys(mask).length === 0 ? null : compileMask({ masks: mask, key });
}

function passesOf(
  { where }: Route,
  failed: (where: string, why: string, event: Event) => void,
): Filter {
  if (where === undefined) return () => true;
  let current: Event | null = null;
  const passes = compileFilter(where, (why) => {
    if (current !== null) failed(where, why, current);
  });
  return (event) => {
    current = event;
    return passes(event);
  };
}

function compileChange(paths: readonly string[], mask: Mask | null): (event: Event) => Event {
  if (paths.length === 0 && mask === null) return (event) => event;
  const split = paths.map((path) => path.split('.'));
  return (event) => {
    // The mask is first: it needs the values to find their copies.
    let ocsf: unknown = mask === null ? event.ocsf : mask.apply(event.ocsf);
    for (const path of split) ocsf = without(ocsf, path, 0);
    return {
      uid: event.uid,
      source: event.source,
      stream: event.stream,
      kind: event.kind,
      context: event.context,
      offset: event.offset,
      raw: event.raw,
      ocsf: ocsf as OcsfEvent,
    };
  };
}

/** The value without the parts at the path; arrays on the way are searched element by element. */
function without(value: unknown, path: readonly string[], depth: number): unknown {
  if (Array.isArray(value)) return value.map((element) => without(element, path, depth));
  const key = path[depth];
  if (key === undefined || !isObject(value) || !Object.hasOwn(value, key)) return value;
  const { [key]: found, ...rest } = value as JsonObject;
  if (depth === path.length - 1) return rest;
  return { ...rest, [key]: without(found, path, depth + 1) };
}

/** An event that a selection passes, redacted when its OCSF form is first read. */
export function redactedLate(event: Event, selection: Selection): Event {
  return selection.choosing?.redacts === true ? new LateRedacted(event, selection) : event;
}

class LateRedacted implements Event {
  readonly #event: Event;
  readonly #selection: Selection;

  constructor(event: Event, selection: Selection) {
    this.#event = event;
    this.#selection = selection;
  }

  get uid(): Event['uid'] {
    return this.#event.uid;
  }

  get source(): string {
    return this.#event.source;
  }

  get stream(): string {
    return this.#event.stream;
  }

  get kind(): Event['kind'] {
    return this.#event.kind;
  }

  get context(): Event['context'] {
    return this.#event.context;
  }

  get offset(): Event['offset'] {
    return this.#event.offset;
  }

  get raw(): Uint8Array {
    return this.#event.raw;
  }

  get ocsf(): Event['ocsf'] {
    return (this.#selection.select(this.#event) ?? this.#event).ocsf;
  }
}

/**
 * Routes for a reader beside the sinks, such as the live tail: each route masks what any route from
 * one of its sources masks.
 */
export function withAllMasks(routes: readonly Route[]): readonly Route[] {
  return routes.map((route) => {
    const others = routes.filter(({ from }) => from.some((name) => route.from.includes(name)));
    const mask: Masks = Object.assign({}, ...others.map((other) => other.mask ?? {}), route.mask);
    const maskKey = others.find((other) => other.maskKey !== undefined)?.maskKey;
    return Object.keys(mask).length === 0 ? route : { ...route, mask, maskKey };
  });
}

/** For a reader that is no sink: one route with all masks of a source; empty: it has none. */
export function maskRoutes(routes: readonly Route[]): (source: string) => readonly Route[] {
  return (source) => {
    const own = routes.filter(({ from }) => from.includes(source));
    const [first] = withAllMasks(own).filter(({ mask }) => mask !== undefined);
    if (first === undefined) return [];
    return [{ from: [source], to: [''], mask: first.mask, maskKey: first.maskKey }];
  };
}

// Routes: the events that a sink gets, and the fields that are removed. Invariants: an event on
// which a filter (filter.ts) fails passes and is counted, so that no filter loses an event;
// redaction works on a copy. The record's own bytes cannot be redacted, so a sink that writes them
// must not be on a route that redacts (checked with the config).

import { type Event, isObject, type JsonObject, type OcsfEvent } from '../contracts/index.ts';
import type { Choosing } from '../transcode/index.ts';
import { compileFilter, type Filter, pathsRead } from './filter.ts';

/** One entry of `routes`. */
export interface Route {
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly where?: string | undefined;
  readonly redact?: readonly string[] | undefined;
}

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
  const ways = routes.filter((r) => r.from.includes(way.source) && r.to.includes(way.sink));
  if (ways.length === 0) return null;
  if (ways.some((route) => !route.where && !route.redact?.length)) return everything;
  // A trial evaluation, whose result goes to no sink, is not counted.
  let isTrial = false;
  let hasFailed = false;
  const steps = ways.map((route) => ({
    passes: passesOf(route, (where, why) => {
      hasFailed = true;
      if (!isTrial) failed({ route: routes.indexOf(route), source: way.source, where, why });
    }),
    redact: compileRedaction(route.redact ?? []),
  }));
  const select = (event: Event): Event | null => {
    // The first route that passes an event decides its redaction.
    const step = steps.find(({ passes }) => passes(event));
    return step === undefined ? null : step.redact(event);
  };
  return {
    key: JSON.stringify(ways.map((route) => [route.where ?? null, route.redact ?? []])),
    select,
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

function passesOf({ where }: Route, failed: (where: string, why: string) => void): Filter {
  if (where === undefined) return () => true;
  return compileFilter(where, (why) => failed(where, why));
}

function compileRedaction(paths: readonly string[]): (event: Event) => Event {
  if (paths.length === 0) return (event) => event;
  const split = paths.map((path) => path.split('.'));
  return (event) => {
    let ocsf: unknown = event.ocsf;
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

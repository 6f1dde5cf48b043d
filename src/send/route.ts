// Routes: which events a sink gets, and without which fields. A filter is a CEL expression over the OCSF event
// (https://cel.dev), with the event's source and stream beside it. An expression that fails on an event (a field that is not there) lets the
// event pass and is counted: a filter must never be the way an event is lost. Redaction works on a copy; the
// record's own bytes cannot be redacted, so a sink that writes them may not be on a route that redacts (config check).

import { createRequire } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import type { ASTNode } from '@marcbachmann/cel-js';
import type { Event, OcsfEvent } from '../contracts/event.ts';
import { isObject, type JsonObject } from '../contracts/json.ts';

/** One entry of `routes`. */
export interface Route {
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly where?: string | undefined;
  readonly redact?: readonly string[] | undefined;
}

/** What one sink gets of one source. */
export interface Selection {
  /** Equal keys select and redact alike, so that what was computed for one serves the other. */
  readonly key: string;
  /** The event as the sink is to see it, or null where it is not for this sink. */
  select(event: Event): Event | null;
}

/** Told of each event on which a filter failed. */
export type FilterFailed = (expression: string) => void;

type Filter = (event: Event) => boolean;

const everything: Selection = { key: '', select: (event) => event };

/** Loaded by the first filter: most configs have none, and start sooner without it. */
const cel = () =>
  createRequire(import.meta.url)('@marcbachmann/cel-js') as typeof import('@marcbachmann/cel-js');

/**
 * Compiles a `where`. Throws with the place of the mistake in its message when it is not CEL, or when it holds a
 * regular expression that is not bounded.
 */
export function compileFilter(expression: string, failed: FilterFailed): Filter {
  const { Environment } = cel();
  const environment = new Environment({ unlistedVariablesAreDyn: true, enableOptionalTypes: true });
  const evaluate = environment.parse(expression);
  boundPatterns(evaluate.ast);
  return (event) => {
    try {
      const verdict: unknown = evaluate({
        event: event.ocsf,
        source: event.source,
        stream: event.stream,
      });
      if (typeof verdict === 'boolean') return verdict;
    } catch {
      // Falls through to the count below.
    }
    failed(expression);
    return true;
  };
}

/**
 * `matches` runs JavaScript's regular expressions, on which an event's text could go back and forth for hours. So V8 is told to go
 * on with its linear engine where one does, and a pattern that this engine cannot run (look-ahead, back references, vast
 * repetitions) is refused, as RE2 does, whose patterns CEL means. A pattern taken from an event is refused as well.
 */
function boundPatterns(node: ASTNode): void {
  if ((node.op === 'call' || node.op === 'rcall') && node.args[0] === 'matches') {
    checkPattern(node.args.at(-1));
  }
  for (const inner of nodesIn(node.args)) boundPatterns(inner);
}

function checkPattern(given: unknown): void {
  const pattern = Array.isArray(given) ? given.at(-1)?.args : undefined;
  if (typeof pattern !== 'string') throw new Error('matches() takes a pattern written in quotes');
  setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');
  setFlagsFromString('--enable-experimental-regexp-engine');
  try {
    // The flag that asks for the linear engine alone; only the check uses it.
    new RegExp(pattern, 'l');
  } catch {
    throw new Error(
      'matches() takes patterns that run in linear time (RE2): no look-ahead, no back references',
    );
  }
}

function nodesIn(args: unknown): readonly ASTNode[] {
  if (Array.isArray(args)) return args.flatMap(nodesIn);
  return typeof args === 'object' && args !== null && 'op' in args ? [args as ASTNode] : [];
}

/** What `sink` gets of `source`; null where no route leads there. Without routes every source goes to every sink. */
export function selectionFor(
  routes: readonly Route[],
  way: { readonly source: string; readonly sink: string },
  failed: FilterFailed,
): Selection | null {
  if (routes.length === 0) return everything;
  const ways = routes.filter((r) => r.from.includes(way.source) && r.to.includes(way.sink));
  if (ways.length === 0) return null;
  if (ways.some((route) => !route.where && !route.redact?.length)) return everything;
  const steps = ways.map((route) => ({
    passes: route.where === undefined ? () => true : compileFilter(route.where, failed),
    redact: compileRedaction(route.redact ?? []),
  }));
  return {
    key: JSON.stringify(ways.map((route) => [route.where ?? null, route.redact ?? []])),
    select(event) {
      // The first route that lets an event pass decides how it is redacted.
      const step = steps.find(({ passes }) => passes(event));
      return step === undefined ? null : step.redact(event);
    },
  };
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

/** The value without what stands at the path, arrays on the way searched element by element. */
function without(value: unknown, path: readonly string[], depth: number): unknown {
  if (Array.isArray(value)) return value.map((element) => without(element, path, depth));
  const key = path[depth];
  if (key === undefined || !isObject(value) || !Object.hasOwn(value, key)) return value;
  const { [key]: found, ...rest } = value as JsonObject;
  if (depth === path.length - 1) return rest;
  return { ...rest, [key]: without(found, path, depth + 1) };
}

// Filters: CEL expressions over the OCSF event (https://cel.dev), with the event's source and
// stream as further variables. They are compiled here, and analysed for the event paths that they
// use, so that a path that no event has is reported before a run: CEL fails on it, and an event on
// which a filter fails passes. Invariant: only this file knows the CEL library, which is loaded by
// the first filter; most configs have none and start faster without it.

import { createRequire } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import type { ASTNode } from '@marcbachmann/cel-js';
import type { Event } from '../contracts/index.ts';

/** True if the event passes. */
export type Filter = (event: Event) => boolean;

/** Names from the event down; null means any element of a list. */
export type EventPath = readonly (string | null)[];

/** A comparison of a path's value, or of the event's source, with a constant. */
export interface FilterComparison {
  readonly path: EventPath | 'source';
  readonly value: string | number | bigint | boolean;
}

/** The parts of an expression. */
export interface FilterParts {
  /** Each path used, and the paths that lead to it. */
  readonly paths: readonly EventPath[];
  /**
   * Paths that must be boolean: the whole expression, or an operand of a negation, a conjunction or
   * a condition.
   */
  readonly flags: readonly EventPath[];
  readonly comparisons: readonly FilterComparison[];
}

const cel = () =>
  createRequire(import.meta.url)('@marcbachmann/cel-js') as typeof import('@marcbachmann/cel-js');

/**
 * Compiles a `where`. Throws with a message about the flaw if it is not CEL, uses an unknown name,
 * is not boolean, or has an unbounded regular expression. `failed` receives the reason for each
 * event that it cannot evaluate.
 */
export function compileFilter(expression: string, failed: (why: string) => void): Filter {
  const evaluate = parsed(expression);
  return (event) => {
    try {
      const verdict: unknown = evaluate({
        event: event.ocsf,
        source: event.source,
        stream: event.stream,
      });
      if (typeof verdict === 'boolean') return verdict;
      failed('it is neither true nor false');
    } catch (error) {
      // The lines after the first repeat the expression.
      failed(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error));
    }
    return true;
  };
}

function parsed(expression: string) {
  const { Environment } = cel();
  const evaluate = new Environment({ unlistedVariablesAreDyn: false, enableOptionalTypes: true })
    .registerVariable('event', 'map')
    .registerVariable('source', 'string')
    .registerVariable('stream', 'string')
    .parse(expression);
  boundPatterns(evaluate.ast);
  const { valid, type, error } = evaluate.check();
  if (!valid) throw new Error(error?.message);
  if (type !== 'bool' && type !== 'dyn') throw new Error(`it gives ${type}, and not true or false`);
  return evaluate;
}

/** Analyses an expression. Throws as `compileFilter` does. */
export function filterParts(expression: string): FilterParts {
  const parts: Parts = { paths: [], flags: [], comparisons: [] };
  const { ast } = parsed(expression);
  flagAt(ast, new Map([['event', []]]), parts);
  return parts;
}

/** All event paths that an expression may read, by names from the event down. */
export function pathsRead(expression: string): readonly (readonly string[])[] {
  const seen: (readonly string[])[] = [];
  const walk = (node: ASTNode) => {
    const path = wayTo(node);
    if (path === null) for (const inner of nodesIn(node.args)) walk(inner);
    else seen.push(path);
  };
  walk(parsed(expression).ast);
  return seen;
}

/** The names of a value that is addressed from the event down; null: it is not. */
function wayTo(node: ASTNode): readonly string[] | null {
  if (node.op === 'id') return node.args === 'event' ? [] : null;
  if (node.op !== '.' && node.op !== '.?' && node.op !== '[]' && node.op !== '[?]') return null;
  const [whole, at] = node.args;
  const name = typeof at === 'string' ? at : at.op === 'value' ? String(at.args) : null;
  const way = wayTo(whole);
  return way === null || name === null ? null : [...way, name];
}

/**
 * Texts or numbers of which one must be at a path for the expression to be true, by dotted path;
 * other conditions are ignored. Throws as `compileFilter` does.
 */
export function valuesNeeded(
  expression: string,
): Readonly<Record<string, readonly (string | number)[]>> {
  const needed: Record<string, readonly (string | number)[]> = {};
  const scope = new Map([['event', []]]);
  const walk = (node: ASTNode) => {
    if (node.op === '&&') for (const inner of nodesIn(node.args)) walk(inner);
    if (node.op !== '==' && node.op !== 'in') return;
    const [left, right] = node.args;
    const sides =
      node.op === 'in'
        ? [[left, right]]
        : [
            [left, right],
            [right, left],
          ];
    for (const [one, other] of sides as [ASTNode, ASTNode][]) {
      const path = pathOf(one, scope, { paths: [], flags: [], comparisons: [] });
      const values = nodesIn(other.op === 'list' ? other.args : [other]).map((value) =>
        value.op === 'value' ? scalarOf(value.args) : null,
      );
      const isWhole = node.op === '==' || other.op === 'list';
      if (!isWhole || path === null || path.includes(null)) continue;
      if (values.every((value) => value !== null)) needed[path.join('.')] = values;
    }
  };
  walk(parsed(expression).ast);
  return needed;
}

/** CEL's whole numbers are bigints. */
function scalarOf(value: unknown): string | number | null {
  const given = typeof value === 'bigint' ? Number(value) : value;
  return typeof given === 'string' || typeof given === 'number' ? given : null;
}

interface Parts extends FilterParts {
  readonly paths: EventPath[];
  readonly flags: EventPath[];
  readonly comparisons: FilterComparison[];
}

/** Variables that stand for an event path. */
type Scope = ReadonlyMap<string, EventPath>;

/** The event path of a value; null: none. The paths it uses are added to `parts`. */
function pathOf(node: ASTNode, scope: Scope, parts: Parts): EventPath | null {
  const path = ownPath(node, scope, parts);
  if (path !== null) parts.paths.push(path);
  return path;
}

function ownPath(node: ASTNode, scope: Scope, parts: Parts): EventPath | null {
  switch (node.op) {
    case 'id':
      return scope.get(node.args) ?? null;
    case '.':
    case '.?':
      return below(pathOf(node.args[0], scope, parts), node.args[1]);
    case '[]':
    case '[?]': {
      const [whole, at] = node.args;
      const path = pathOf(whole, scope, parts);
      pathOf(at, scope, parts);
      if (at.op !== 'value') return null;
      return below(path, typeof at.args === 'string' ? at.args : null);
    }
    case 'rcall': {
      const [name, receiver, args] = node.args;
      const inner = new Map(scope);
      const path = pathOf(receiver, scope, parts);
      const [variable, ...rest] = args;
      if (variable?.op !== 'id' || !(name === 'bind' || loops.has(name))) {
        for (const arg of args) pathOf(arg, scope, parts);
        return null;
      }
      inner.delete(variable.args);
      const bound = name === 'bind' ? rest.shift() : undefined;
      const element = bound === undefined ? below(path, null) : pathOf(bound, scope, parts);
      if (element !== null) inner.set(variable.args, element);
      const last = rest.map((arg) => pathOf(arg, inner, parts)).at(-1) ?? null;
      if (name === 'bind') return last;
      return name === 'filter' ? path : null;
    }
    case '!_':
    case '&&':
    case '||':
      for (const inner of nodesIn(node.args)) flagAt(inner, scope, parts);
      return null;
    case '==':
    case '!=':
    case '<':
    case '<=':
    case '>':
    case '>=':
    case 'in': {
      const [left, right] = node.args;
      compare(left, right.op === 'list' ? right.args : [right], scope, parts);
      if (node.op !== 'in') compare(right, [left], scope, parts);
      return null;
    }
    case '?:': {
      const [condition, ...either] = node.args;
      flagAt(condition, scope, parts);
      for (const inner of either) pathOf(inner, scope, parts);
      return null;
    }
    default:
      for (const inner of nodesIn(node.args)) pathOf(inner, scope, parts);
      return null;
  }
}

function flagAt(node: ASTNode, scope: Scope, parts: Parts): void {
  const path = pathOf(node, scope, parts);
  if (path !== null) parts.flags.push(path);
}

function compare(one: ASTNode, others: readonly ASTNode[], scope: Scope, parts: Parts): void {
  const isSource = one.op === 'id' && one.args === 'source' && !scope.has('source');
  const path = isSource ? 'source' : pathOf(one, scope, parts);
  if (path === null) return;
  for (const { op, args: value } of others) {
    if (op !== 'value') continue;
    if (['string', 'number', 'bigint', 'boolean'].includes(typeof value)) {
      parts.comparisons.push({ path, value: value as FilterComparison['value'] });
    }
  }
}

/** CEL's macros: their first argument is a variable for each element. */
const loops: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'map', 'filter']);

function below(path: EventPath | null, step: string | null): EventPath | null {
  return path === null ? null : [...path, step];
}

/**
 * `matches` uses JavaScript's regular expressions, which could backtrack for hours on an event's
 * text. So V8 is set to use its linear engine where possible, and a pattern that this engine cannot
 * run (look-ahead, back references, vast repetitions) is refused, as by RE2, whose patterns CEL
 * specifies. A pattern from an event is refused too.
 */
function boundPatterns(node: ASTNode): void {
  if ((node.op === 'call' || node.op === 'rcall') && node.args[0] === 'matches') {
    checkPattern(node.args.at(-1));
  }
  for (const inner of nodesIn(node.args)) boundPatterns(inner);
}

function checkPattern(given: unknown): void {
  const pattern = Array.isArray(given) ? given.at(-1)?.args : undefined;
  if (typeof pattern !== 'string') throw new Error('matches() needs a pattern in quotes');
  setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');
  setFlagsFromString('--enable-experimental-regexp-engine');
  try {
    // The flag for the linear engine alone; used only for this check.
    new RegExp(pattern, 'l');
  } catch {
    throw new Error(
      'matches() accepts patterns that run in linear time (RE2): no look-ahead, no back references',
    );
  }
}

function nodesIn(args: unknown): readonly ASTNode[] {
  if (Array.isArray(args)) return args.flatMap(nodesIn);
  return typeof args === 'object' && args !== null && 'op' in args ? [args as ASTNode] : [];
}

// The rules in `sigma/rules` as conditions, for the targets that pySigma does not convert to: QRadar, Graylog, Google SecOps
// and Datadog. It reads the part of Sigma that our rules use (values, lists, `contains`, `startswith`, `endswith`, `gte`; and,
// or, not, "1 of"), and throws on anything else. Each target writes a condition in its own language.

import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** How a field is compared; texts are compared without regard to case. */
export type Comparison = 'is' | 'contains' | 'startswith' | 'endswith' | 'gte';

/** A comparison of a field, named as in OCSF, with values of which any may match. */
export interface Atom {
  readonly field: string;
  readonly comparison: Comparison;
  readonly values: readonly string[];
}

/** A condition of a rule. */
export type Condition =
  | { readonly all: readonly Condition[] }
  | { readonly any: readonly Condition[] }
  | { readonly not: Condition }
  | { readonly atom: Atom };

/** A rule. */
export interface Rule {
  readonly name: string;
  readonly id: string;
  readonly title: string;
  readonly level: string;
  readonly description: string;
  readonly falsepositives: readonly string[];
  readonly condition: Condition;
}

/** The words of a target's language. */
export interface Language {
  readonly and: string;
  readonly or: string;
  not(text: string): string;
  /** `isNegated`: the condition excludes events. */
  atom(atom: Atom, isNegated: boolean): string;
}

type Detection = Readonly<Record<string, unknown>>;

const here = new URL('sigma/rules/', import.meta.url);
const comparisons: readonly Comparison[] = ['is', 'contains', 'startswith', 'endswith', 'gte'];

/** All rules that are written in Sigma, by name. */
export function sigmaRules(): readonly Rule[] {
  return readdirSync(here)
    .toSorted()
    .map((file) => ruleOf(file.replace(/\.yml$/, ''), readFileSync(new URL(file, here), 'utf8')));
}

function ruleOf(name: string, text: string): Rule {
  const { id, title, level, description, falsepositives, detection } = parse(text);
  const { condition, ...searches } = detection as Detection;
  const tokens = String(condition).match(/\(|\)|1 of [\w*]+|[\w*]+/g) ?? [];
  const found = new Map(
    Object.entries(searches).map(([key, search]) => [key, searchOf(search as Detection)]),
  );
  const made = either(tokens, found);
  if (tokens.length > 0) throw new Error(`${name}: the condition continues with ${tokens[0]}`);
  return { name, id, title, level, description, falsepositives, condition: made };
}

type Searches = ReadonlyMap<string, Condition>;

function either(tokens: string[], searches: Searches): Condition {
  const any = [both(tokens, searches)];
  while (tokens[0] === 'or') {
    tokens.shift();
    any.push(both(tokens, searches));
  }
  return any.length === 1 && any[0] ? any[0] : { any };
}

function both(tokens: string[], searches: Searches): Condition {
  const all = [single(tokens, searches)];
  while (tokens[0] === 'and') {
    tokens.shift();
    all.push(single(tokens, searches));
  }
  return all.length === 1 && all[0] ? all[0] : { all };
}

function single(tokens: string[], searches: Searches): Condition {
  const token = tokens.shift() ?? '';
  if (token === 'not') return { not: single(tokens, searches) };
  if (token === '(') {
    const inner = either(tokens, searches);
    if (tokens.shift() !== ')') throw new Error('a bracket is not closed');
    return inner;
  }
  const pattern = token.replace(/^1 of /, '');
  const any = [...searches].flatMap(([name, search]) =>
    (pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern)
      ? [search]
      : [],
  );
  if (any.length === 0) throw new Error(`there is no search ${token}`);
  return any.length === 1 && any[0] ? any[0] : { any };
}

function searchOf(search: Detection): Condition {
  const all = Object.entries(search).map(([key, value]) => {
    const [field = '', comparison = 'is'] = key.split('|');
    const known = comparisons.find((one) => one === comparison);
    if (known === undefined) throw new Error(`a rule uses the unknown modifier ${comparison}`);
    return { atom: { field, comparison: known, values: [value].flat().map(String) } };
  });
  return all.length === 1 && all[0] ? all[0] : { all };
}

/** The condition in a target's language, with brackets around each group. */
export function written(condition: Condition, language: Language, isNegated = false): string {
  if ('atom' in condition) return language.atom(condition.atom, isNegated);
  if ('not' in condition) return language.not(written(condition.not, language, !isNegated));
  const [parts, word] =
    'all' in condition ? [condition.all, language.and] : [condition.any, language.or];
  const text = parts.map((one) => written(one, language, isNegated)).join(` ${word} `);
  return parts.length === 1 ? text : `(${text})`;
}

/** A regular expression for the values of an atom, without delimiters. */
export function patternOf({ comparison, values }: Atom): string {
  const any =
    values.length === 1 ? escaped(values[0] ?? '') : `(?:${values.map(escaped).join('|')})`;
  if (comparison === 'contains') return any;
  if (comparison === 'startswith') return `^${any}`;
  if (comparison === 'endswith') return `${any}$`;
  return `^${any}$`;
}

/**
 * The same for an entry `field=value` in a list with one entry per line. A list that was cut ends with `…`: it may hide the
 * entry, so it matches, except where a match would exclude the event.
 */
export function entryPatternOf(
  field: string,
  { comparison, values }: Atom,
  isNegated: boolean,
): string {
  const any = values.map(escaped).join('|');
  const rest = comparison === 'startswith' ? '.*' : '';
  const entry = `${escaped(field)}=(?:${any})${rest}`;
  return `(?:^|\n)${isNegated ? entry : `(?:${entry}|…)`}(?:\n|$)`;
}

/** The text as a regular expression that matches only itself, in Java, RE2 and JavaScript. */
function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** The last name of a field of the changed object, such as `enabled`; undefined for any other field. */
export function changedName(
  field: string,
): { readonly name: string; readonly isState: boolean } | undefined {
  const name = /^(?:resources\.data\.after|entity_result\.data)\.(\w+)$/.exec(field)?.[1];
  return name === undefined ? undefined : { name, isState: field.startsWith('entity_result') };
}

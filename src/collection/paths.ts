// The differing paths of two versions of an entity, and the merge of some of these differences. A list of objects is
// compared element by element, by an id that all have, or else by position, so a counter in one rule hides no change of
// another. Invariants: with every difference accepted, the merge is the newer version; with none, the older one; paths
// that are not compared always have their newer value.

import { createHash } from 'node:crypto';
import {
  type ComparisonRules,
  canonicalText,
  childPath,
  type ExactJson,
  isExactObject,
  parseExact,
} from '../poll/index.ts';
import { unescapedBytes } from '../tools/index.ts';

/** One differing value. */
export interface DifferingValue {
  /** Its path with the element of each list: `rules[7].action`. */
  readonly key: string;
  /** Its path without elements, as `ignore` names it: `rules.action`. */
  readonly path: string;
  /** The top-level member that contains it. */
  readonly top: string;
  /** Canonical texts, or a digest of a long one; empty: no value. */
  readonly before: string;
  readonly after: string;
}

/** Limit of tracked differences per entity; with more, the entity differs as a whole. */
const leavesMax = 64;

/** Members that may hold an element's id. */
const idNames = ['id', 'uid', 'uuid', 'rule_id', 'entry_id', 'key', 'name'];
const textMax = 64;
const keyMax = 200;

interface At {
  readonly path: string;
  readonly key: string;
  readonly top: string;
}

type Value = ExactJson | undefined;
const root: At = { path: '', key: '', top: '' };

/** The differing values; one for the whole entity if there are too many. */
export function differing(
  before: ExactJson,
  after: ExactJson,
  comparison: ComparisonRules,
): readonly DifferingValue[] {
  const leaves: DifferingValue[] = [];
  collect(before, after, root, { comparison, leaves });
  return leaves.length > leavesMax ? [leafOf(before, after, root, comparison)] : leaves;
}

interface Collecting {
  readonly comparison: ComparisonRules;
  readonly leaves: DifferingValue[];
}

function collect(before: Value, after: Value, at: At, deps: Collecting): void {
  const { comparison, leaves } = deps;
  if (leaves.length > leavesMax || isIgnored(at, comparison)) return;
  const members = membersOf(before, after);
  if (members !== null) {
    for (const name of members) {
      collect(memberOf(before, name), memberOf(after, name), inner(at, name), deps);
    }
    return;
  }
  if (textOf(before, at, comparison) === textOf(after, at, comparison)) return;
  const elements = pairsOf(before, after, at, comparison);
  if (elements === null) {
    leaves.push(leafOf(before, after, at, comparison));
    return;
  }
  const { ids, pairs } = elements;
  if (ids !== null && ids.before !== ids.after) {
    const texts = { before: shortText(ids.before), after: shortText(ids.after) };
    leaves.push({ ...at, key: orderKey(at), ...texts });
  }
  for (const { name, before: old, after: now } of pairs) {
    if (old !== undefined && now !== undefined) collect(old, now, element(at, name), deps);
  }
}

/** The newer version with the older value at each difference that is not accepted; JSON texts. */
export function merged(
  before: string,
  after: string,
  comparison: ComparisonRules,
  accepts: (key: string) => boolean,
): string {
  const old = parseExact(before);
  const text = JSON.stringify(merge(old, parseExact(after), root, { comparison, accepts }) ?? old);
  return before.isWellFormed() && after.isWellFormed() ? text : unescapedBytes(text);
}

interface Merging {
  readonly comparison: ComparisonRules;
  readonly accepts: (key: string) => boolean;
}

function merge(before: Value, after: Value, at: At, deps: Merging): Value {
  const { comparison, accepts } = deps;
  if (isIgnored(at, comparison)) return after;
  const members = membersOf(before, after);
  if (members !== null) {
    const values = members.flatMap((name): [string, ExactJson][] => {
      const value = merge(memberOf(before, name), memberOf(after, name), inner(at, name), deps);
      return value === undefined ? [] : [[name, value]];
    });
    const isBoth = before !== undefined && after !== undefined;
    return isBoth || values.length > 0 ? Object.fromEntries(values) : undefined;
  }
  if (textOf(before, at, comparison) === textOf(after, at, comparison)) return after;
  const elements = pairsOf(before, after, at, comparison);
  if (elements === null) return accepts(shortKey(at.key)) ? after : before;
  const { ids, pairs } = elements;
  const isNew = ids === null || ids.before === ids.after || accepts(orderKey(at));
  const chosen = pairs.filter((pair) => (isNew ? pair.after : pair.before) !== undefined);
  const rank = (pair: Pair) => (isNew ? pair.afterAt : pair.beforeAt);
  return chosen
    .toSorted((a, b) => rank(a) - rank(b))
    .flatMap(({ name, before: old, after: now }) => {
      const both = old !== undefined && now !== undefined;
      const value = both ? merge(old, now, element(at, name), deps) : (now ?? old);
      return value === undefined ? [] : [value];
    });
}

/** The members to compare one by one; null: the values are compared as a whole. */
function membersOf(before: Value, after: Value): readonly string[] | null {
  const isInside = (value: Value) => value === undefined || isExactObject(value);
  if (!isInside(before) || !isInside(after)) return null;
  const names = [after, before].flatMap((value) =>
    isExactObject(value) ? Object.keys(value) : [],
  );
  // An empty object on one side only is a difference itself.
  if (names.length === 0) return before === undefined || after === undefined ? null : [];
  return [...new Set(names)];
}

function memberOf(value: Value, name: string): Value {
  return isExactObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** An element in both versions, or in one. */
interface Pair {
  readonly name: string;
  readonly before: Value;
  readonly after: Value;
  readonly beforeAt: number;
  readonly afterAt: number;
}

/** The elements of two lists. `ids`: their order, as text. Null: these are no lists of objects. */
function pairsOf(
  before: Value,
  after: Value,
  at: At,
  comparison: ComparisonRules,
): { readonly ids: { before: string; after: string } | null; readonly pairs: Pair[] } | null {
  if (!Array.isArray(before) || !Array.isArray(after)) return null;
  const [old, now] = [before as readonly ExactJson[], after as readonly ExactJson[]];
  if (![...old, ...now].every(isExactObject) || old.length + now.length === 0) return null;
  const isUnordered = comparison.unordered.includes(at.path);
  const named = idNames
    .map((name) => [idsIn(old, name), idsIn(now, name)] as const)
    .find(([one, other]) => one !== null && other !== null);
  if (named !== undefined) {
    const [oldIds, nowIds] = [named[0] ?? [], named[1] ?? []];
    const text = (ids: readonly string[]) => JSON.stringify(isUnordered ? ids.toSorted() : ids);
    const pairs = [...new Set([...nowIds, ...oldIds])].map((name) => {
      const [beforeAt, afterAt] = [oldIds.indexOf(name), nowIds.indexOf(name)];
      return { name, before: old[beforeAt], after: now[afterAt], beforeAt, afterAt };
    });
    return { ids: { before: text(oldIds), after: text(nowIds) }, pairs };
  }
  if (old.length !== now.length) return null;
  const [olds, nows] = isUnordered ? [bySkeleton(old), bySkeleton(now)] : [old, now];
  const pairs = olds.map((one, index) => {
    const places = { beforeAt: index, afterAt: index };
    return { name: `#${index}`, before: one, after: nows[index], ...places };
  });
  return { ids: null, pairs };
}

/** A unique id for each element; null: there is none. */
function idsIn(elements: readonly ExactJson[], name: string): readonly string[] | null {
  const ids = elements.map((one) => {
    const id = memberOf(one, name);
    const isId = typeof id === 'string' ? id !== '' : isNumber(id);
    return isId ? canonicalText(id as ExactJson, plain) : null;
  });
  if (ids.includes(null) || new Set(ids).size !== ids.length) return null;
  return ids as readonly string[];
}

const plain: ComparisonRules = { ignore: [], unordered: [] };

/** Elements without ids and order, sorted by their content without numbers. */
function bySkeleton(elements: readonly ExactJson[]): readonly ExactJson[] {
  const keyed = elements.map((one) => {
    const text = canonicalText(one, plain);
    const skeleton = text.replace(/:("[-\dT:.Z+]*"|-?\d[\d.eE+-]*)/g, ':0');
    return [`${skeleton}\n${text}`, one] as const;
  });
  return keyed.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
}

function isNumber(value: Value): boolean {
  return value !== undefined && value !== null && typeof value === 'object' && 'rawJSON' in value;
}

function isIgnored({ path }: At, { ignore }: ComparisonRules): boolean {
  return path !== '' && ignore.includes(path);
}

function inner({ path, key, top }: At, name: string): At {
  return { path: childPath(path, name), key: childPath(key, name), top: top === '' ? name : top };
}

function element(at: At, name: string): At {
  return { ...at, key: `${at.key}[${name}]` };
}

function orderKey({ key }: At): string {
  return shortKey(`${key}[]`);
}

function shortKey(key: string): string {
  return key.length <= keyMax ? key : `${key.slice(0, keyMax / 2)}#${digestOf(key)}`;
}

function leafOf(before: Value, after: Value, at: At, comparison: ComparisonRules): DifferingValue {
  const [old, now] = [textOf(before, at, comparison), textOf(after, at, comparison)];
  return { ...at, key: shortKey(at.key), before: shortText(old), after: shortText(now) };
}

function textOf(value: Value, { path }: At, comparison: ComparisonRules): string {
  return value === undefined ? '' : canonicalText(value, comparison, path);
}

/** No canonical text begins like the digest. */
function shortText(text: string): string {
  return text.length <= textMax ? text : `sha256:${digestOf(text)}`;
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 24);
}

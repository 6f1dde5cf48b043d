// Matches the elements of a list with the known ones if upstream sends no ids. An element keeps the key of its first
// seen content, so a counter in it neither creates nor deletes an entity. Elements are paired by four rules, in this
// order:
//
// 1. in order, if their texts are equal and most of their numbers have changed
// 2. by content without volatile and ignored paths; by the key of the content itself
// 3. by content without numbers and times, if that is unique, or if a number is equal
// 4. by position between two paired elements, in a list with known order
//
// Invariants: no key is given to two elements; an element that cannot be paired is new.

import {
  type ComparisonRules,
  canonicalText,
  childPath,
  type ExactJson,
  isExactObject,
  parseExact,
} from '../poll/index.ts';
import { shownText } from '../tools/index.ts';
import { pointOf } from './volatile.ts';

/** An element as last reported. */
export interface KnownElement {
  readonly key: string;
  /** JSON text. */
  readonly text: string;
  /** Its index in the list; null: unknown. */
  readonly place: number | null;
  /** This reading has already shown it. */
  readonly isSeen: boolean;
}

/** An element of this reading, in list order. */
export interface SeenElement {
  /** The key of its content. */
  readonly ownKey: string;
  readonly text: string;
}

/** The pairs: keys of known elements by index of the seen element. */
export interface Matched {
  readonly keys: ReadonlyMap<number, string>;
  /** Pairs of rule 2, which are certain without other elements. */
  readonly sure: ReadonlySet<number>;
}

/** Limit of pairs compared one by one in a group; a larger group is paired in order. */
const pairsMax = 40_000;

/** Pairs the elements of one list. */
export function matchElements(
  known: readonly KnownElement[],
  seen: readonly SeenElement[],
  comparison: ComparisonRules,
): Matched {
  const matching = new Matching(known, seen, comparison);
  matching.byMoved();
  const moved = new Set(matching.keys.keys());
  matching.byContent();
  matching.byOwnKey();
  const sure = new Set([...matching.keys.keys()].filter((at) => !moved.has(at)));
  matching.byTexts();
  matching.byPlace();
  return { keys: matching.keys, sure };
}

/** An element's content: whole, without numbers and times, and the numbers and times alone. */
interface Shape {
  readonly whole: string;
  readonly texts: string;
  readonly points: readonly string[];
}

class Matching {
  readonly keys = new Map<number, string>();
  readonly #known: readonly KnownElement[];
  readonly #seen: readonly SeenElement[];
  readonly #shapes = new Map<string, Shape>();
  readonly #seenShapes: readonly Shape[];
  readonly #free: Map<string, KnownElement>;

  constructor(
    known: readonly KnownElement[],
    seen: readonly SeenElement[],
    comparison: ComparisonRules,
  ) {
    const placeOf = ({ place }: KnownElement) => place ?? Number.MAX_SAFE_INTEGER;
    this.#known = known.toSorted((a, b) => placeOf(a) - placeOf(b));
    this.#seen = seen;
    for (const { key, text } of known) this.#shapes.set(key, shapeOf(text, comparison));
    this.#seenShapes = seen.map(({ text }) => shapeOf(text, comparison));
    const free = this.#known.filter(({ isSeen }) => !isSeen);
    this.#free = new Map(free.map((one) => [one.key, one]));
  }

  byContent(): void {
    this.#eachOpen(({ ownKey }, { whole }) =>
      this.#free.has(ownKey) && this.#shapes.get(ownKey)?.whole === whole ? ownKey : undefined,
    );
    const free = this.#freeBy('whole');
    this.#eachOpen((_, { whole }) => free.get(whole)?.shift());
  }

  byOwnKey(): void {
    this.#eachOpen(({ ownKey }) => (this.#free.has(ownKey) ? ownKey : undefined));
  }

  /** Elements with equal texts whose numbers have mostly changed: there, an equal number is chance. */
  byMoved(): void {
    const known = this.#freeBy('texts');
    const shown = Map.groupBy(this.#open, (at) => this.#seenShapes[at]?.texts ?? '');
    for (const [texts, seen] of shown) {
      const keys = known.get(texts) ?? [];
      if (keys.length < 2 || keys.length !== seen.length) continue;
      const wholes = new Set(keys.map((key) => this.#shapes.get(key)?.whole));
      const same = seen.filter((at) => wholes.has(this.#seenShapes[at]?.whole ?? ''));
      if (2 * same.length >= keys.length) continue;
      const isPlaced = keys.every((key) => this.#free.get(key)?.place !== null);
      const ofKey = (key: string) => this.#shapes.get(key)?.points ?? [];
      const ofSeen = (at: number) => this.#seenShapes[at]?.points ?? [];
      if (isPlaced) this.#pair(keys, seen, Number.POSITIVE_INFINITY);
      else {
        const ranked = keys.toSorted((a, b) => inOrder(ofKey(a), ofKey(b)));
        const rankedSeen = seen.toSorted((a, b) => inOrder(ofSeen(a), ofSeen(b)));
        const isOne = seen.every((at) => ofSeen(at).length === 1);
        this.#pair(ranked, rankedSeen, isOne ? Number.POSITIVE_INFINITY : 0);
      }
    }
  }

  byTexts(): void {
    const all = Map.groupBy(this.#shapes.values(), ({ texts }) => texts);
    const allSeen = Map.groupBy(this.#seenShapes, ({ texts }) => texts);
    const free = this.#freeBy('texts');
    const open = Map.groupBy(this.#open, (at) => this.#seenShapes[at]?.texts ?? '');
    for (const [texts, seen] of open) {
      const keys = free.get(texts) ?? [];
      // With only numbers, no element is distinguishable.
      const isOnly = all.get(texts)?.length === 1 && allSeen.get(texts)?.length === 1;
      const isPlaced = keys.some((key) => this.#free.get(key)?.place !== null);
      if (isOnly || !isPlaced) this.#pair(keys, seen, isOnly ? 0 : 1);
    }
  }

  /** Pairs the elements with the most numbers and times in common, at least `least`; infinite: in order. */
  #pair(keys: readonly string[], seen: readonly number[], least: number): void {
    if (least === Number.POSITIVE_INFINITY || keys.length * seen.length > pairsMax) {
      if (least === 1) return;
      for (const [index, at] of seen.entries()) this.#take(at, keys[index]);
      return;
    }
    const scored = seen.flatMap((at) =>
      keys.map((key) => ({ at, key, score: this.#score(at, key) })),
    );
    for (const { at, key, score } of scored.toSorted((a, b) => b.score - a.score)) {
      if (score >= least && !this.keys.has(at) && this.#free.has(key)) this.#take(at, key);
    }
  }

  #score(at: number, key: string): number {
    const points = this.#shapes.get(key)?.points ?? [];
    return (
      this.#seenShapes[at]?.points.filter((point, index) => point === points[index]).length ?? 0
    );
  }

  byPlace(): void {
    const order = this.#known.flatMap(({ key, place }) => (place === null ? [] : [key]));
    let gap: number[] = [];
    let from = 0;
    for (let at = 0; at <= this.#seen.length; at += 1) {
      const key = this.keys.get(at);
      if (at < this.#seen.length && key === undefined) {
        gap.push(at);
        continue;
      }
      const to = key === undefined ? order.length : order.indexOf(key);
      if (to >= from) this.#fill(gap, order.slice(from, to));
      if (to >= 0) from = to + 1;
      gap = [];
    }
  }

  /** Pairs the elements between the same two paired ones: first by texts, then, if equally many remain, in order. */
  #fill(gap: readonly number[], between: readonly string[]): void {
    if (gap.length === 0) return;
    const free = between.filter((key) => this.#free.has(key));
    const byTexts = Map.groupBy(free, (key) => this.#shapes.get(key)?.texts ?? '');
    for (const at of gap) this.#take(at, byTexts.get(this.#seenShapes[at]?.texts ?? '')?.shift());
    const left = free.filter((key) => this.#free.has(key));
    const open = gap.filter((at) => !this.keys.has(at));
    if (left.length !== open.length) return;
    for (const [index, at] of open.entries()) this.#take(at, left[index]);
  }

  get #open(): readonly number[] {
    return this.#seen.flatMap((_, at) => (this.keys.has(at) ? [] : [at]));
  }

  #freeBy(what: 'whole' | 'texts'): Map<string, string[]> {
    return Map.groupBy(this.#free.keys(), (key) => this.#shapes.get(key)?.[what] ?? '');
  }

  #eachOpen(keyFor: (element: SeenElement, shape: Shape) => string | undefined): void {
    for (const at of this.#open) {
      const [element, shape] = [this.#seen[at], this.#seenShapes[at]];
      if (element !== undefined && shape !== undefined) this.#take(at, keyFor(element, shape));
    }
  }

  #take(at: number, key: string | undefined): void {
    if (key !== undefined && this.#free.delete(key)) this.keys.set(at, key);
  }
}

/** Comparator for sorting: compares numbers and times in sequence. */
function inOrder(some: readonly string[], others: readonly string[]): number {
  for (const [index, one] of some.entries()) {
    const [a, b] = [pointOf(one) ?? 0, pointOf(others[index] ?? '') ?? 0];
    if (a !== b) return a < b ? -1 : 1;
  }
  return 0;
}

function shapeOf(text: string, comparison: ComparisonRules): Shape {
  const points: string[] = [];
  // A different byte makes no different element.
  const value = parseExact(shownText(text));
  const texts = withoutPoints(value, '', { comparison, points });
  return { whole: canonicalText(value, comparison), texts, points };
}

function withoutPoints(
  value: ExactJson,
  path: string,
  deps: { readonly comparison: ComparisonRules; readonly points: string[] },
): string {
  if (Array.isArray(value)) {
    const elements = value.map((one: ExactJson) => withoutPoints(one, path, deps));
    return `[${elements.join(',')}]`;
  }
  if (isExactObject(value)) {
    const members = Object.keys(value)
      .sort()
      .flatMap((name) => {
        const [inner, member] = [childPath(path, name), value[name]];
        if (member === undefined || deps.comparison.ignore.includes(inner)) return [];
        return [`${JSON.stringify(name)}:${withoutPoints(member, inner, deps)}`];
      });
    return `{${members.join(',')}}`;
  }
  const text = canonicalText(value, deps.comparison, path);
  if (text !== 'null' && pointOf(text) === null) return text;
  deps.points.push(text);
  return '0';
}

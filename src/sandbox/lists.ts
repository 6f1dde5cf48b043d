// The lists behind the endpoints. A growing list (audit events, logs) computes its records by index and stores none; a
// fixed list (sites, firewall objects, tickets) is read from the present state. Both have one interface for the pager:
// a number of records, and the text of each. The ledger uses it too, so tests compare with the served text.
import type { RecordContext } from './audit-records.ts';
import type { ListBehaviour } from './behaviour.ts';
import type { SandboxGrowth } from './growth.ts';

/** The growing log lists of a company, by the last part of their path. */
export const LOG_LISTS = ['events', 'web', 'all'] as const;

/** The path of a company's log list. */
export function logPath(company: string, list: (typeof LOG_LISTS)[number]): string {
  return `/api/logs/v1/companies/${encodeURIComponent(company)}/${list}`;
}

/** The pager's interface to a list. Indices count from 0 and keep their meaning during a walk. */
export interface PagedList {
  readonly path: string;
  /** One more than the highest existing index. */
  size(): number;
  /** The lowest index still kept. */
  first(): number;
  /** Whether a record is visible yet; late ones exist before they are visible. */
  visible(index: number): boolean;
  /** Whether every record is visible as soon as it exists, so positions can be counted. */
  dense(): boolean;
  /** The exact JSON text of a record. */
  textAt(index: number): string;
  /** Keys for cursors in place of indices, ascending: a removal does not change them. */
  readonly keys?: readonly number[];
}

/** The parameters of a growing list. `prefix` starts each id; null: ids are digits alone. */
export interface GrowingPlan {
  readonly path: string;
  readonly prefix: string | null;
  readonly seed: number;
  readonly growth: SandboxGrowth;
  readonly record: (place: RecordContext) => string;
  readonly now: () => number;
  readonly behaviour: (path: string) => ListBehaviour;
}

/** Integer ids begin here, far above the exact range of a JavaScript number. */
const INTEGER_ID_BASE = 9_007_199_254_740_993_000n;

/** Ids of digits alone begin here, so that all have the same length for long. */
const DIGITS_ID_BASE = 10_000_000;

/** A list that grows with the clock. */
export class GrowingList implements PagedList {
  readonly path: string;
  readonly #plan: GrowingPlan;
  #trimmed = 0;

  constructor(plan: GrowingPlan) {
    this.path = plan.path;
    this.#plan = plan;
  }

  size(): number {
    return this.#plan.growth.sizeAt(this.#plan.now());
  }

  first(): number {
    const { retain } = this.#plan.behaviour(this.path);
    const size = this.size();
    return Math.min(size, Math.max(this.#trimmed, retain === undefined ? 0 : size - retain));
  }

  visible(index: number): boolean {
    const { late } = this.#plan.behaviour(this.path);
    if (late === undefined || index % late.every !== late.every - 1) return true;
    const { growth, now } = this.#plan;
    if (late.seconds !== undefined) return now() >= growth.timeOf(index) + late.seconds * 1000;
    return this.size() > index + (late.positions ?? 0);
  }

  dense(): boolean {
    return this.#plan.behaviour(this.path).late === undefined;
  }

  textAt(index: number): string {
    const { behaviour, growth, record, seed } = this.#plan;
    const { twins_every: every } = behaviour(this.path);
    const twin = every !== undefined && index > 0 && index % every === 0;
    const source = twin ? index - 1 : index;
    return record({
      seed,
      index: source,
      id: this.idTextAt(source),
      timeMs: growth.timeOf(source),
    });
  }

  /** A record's id as JSON text, or null if the record has none. */
  idTextAt(index: number): string | null {
    const { ids, twins_every: every } = this.#plan.behaviour(this.path);
    if (ids === 'none') return null;
    if (every !== undefined) {
      const first = index % every === 0 && index > 0;
      if (first || (index + 1) % every === 0) return null;
    }
    if (ids === 'integer') return String(INTEGER_ID_BASE + BigInt(index));
    const { prefix } = this.#plan;
    if (prefix === null) return `"${DIGITS_ID_BASE + index}"`;
    return `"${prefix}_${String(index).padStart(9, '0')}"`;
  }

  /** The index of an id, or null if no record has it. */
  indexOf(id: string): number | null {
    const { ids } = this.#plan.behaviour(this.path);
    const digits = /^(?:[a-z]+_)?(\d+)$/.exec(id)?.[1];
    if (digits === undefined) return null;
    const base = this.#plan.prefix === null ? DIGITS_ID_BASE : 0;
    const index =
      ids === 'integer' ? Number(BigInt(digits) - INTEGER_ID_BASE) : Number(digits) - base;
    const known = Number.isSafeInteger(index) && index >= 0 && index < this.size();
    const text = known ? this.idTextAt(index) : null;
    return text === id || text === `"${id}"` ? index : null;
  }

  /** The records of a span of time, its end excluded. */
  within(fromMs: number, toMs: number): PagedList {
    const [first, end] = [this.#indexAt(fromMs), this.#indexAt(toMs)];
    return {
      path: this.path,
      size: () => Math.max(first, end),
      first: () => Math.max(first, this.first()),
      visible: (index) => this.visible(index),
      dense: () => this.dense(),
      textAt: (index) => this.textAt(index),
    };
  }

  // The first record that is not before a time.
  #indexAt(timeMs: number): number {
    let [low, high] = [0, this.size()];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.#plan.growth.timeOf(middle) < timeMs) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  grow(count: number): void {
    this.#plan.growth.grow(count, this.#plan.now());
  }

  setRate(ratePerS: number): void {
    this.#plan.growth.setRate(ratePerS, this.#plan.now());
  }

  /** Drops the oldest records, as retention does, so that this many remain. */
  trimTo(count: number): void {
    this.#trimmed = Math.max(this.#trimmed, this.size() - count);
  }
}

/** A list that never ends: its records repeat, each under a new id. */
export function endless(list: PagedList): PagedList {
  const real = Array.from(
    { length: list.size() - list.first() },
    (_, n) => list.first() + n,
  ).filter((index) => list.visible(index));
  if (real.length === 0) return list;
  return {
    path: list.path,
    size: () => Number.MAX_SAFE_INTEGER,
    first: () => 0,
    visible: () => true,
    dense: () => true,
    textAt(index) {
      const text = list.textAt(real[index % real.length] ?? 0);
      if (index < real.length) return text;
      return text.replace(/^\{"(\w+)":"([^"]*)"/, `{"$1":"$2~${index}"`);
    },
  };
}

/** A list of the present state: read once per request. */
export function fixedList(path: string, values: readonly unknown[]): PagedList {
  return {
    path,
    size: () => values.length,
    first: () => 0,
    visible: () => true,
    dense: () => true,
    textAt: (index) => JSON.stringify(values[index]),
  };
}

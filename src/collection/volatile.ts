// Volatile paths: counters, clocks and other values that differ at each reading and are no change of the entity. A path
// is learned from the entities whose value moved in one reading, by either rule:
//
// - a: numbers or times that moved in one direction in four readings in a row, on three entities, or on all that have
//   the path if these are fewer
// - b: any numbers or times on more than half of the entities that have the path, at least three; texts on at least
//   ten, with no value that returns
//
// Invariants: one entity never hides a path of the others; a path that `never_ignore` names is not learned.

import type { CollectionReading } from '../contracts/config.ts';
import { childPath, type Finding } from '../poll/index.ts';

import { cleanText } from '../tools/index.ts';
import type { KnownEntities } from './known.ts';
import type { PendingPath, VolatilePath } from './state.ts';

/** Readings in a row in which a value moved. */
export const learnedAfter = 4;
const fewest = 3;
const fewestTexts = 10;

/** A path of a kind of entities, and its movements in one reading. */
export interface Moving {
  readonly kind: string;
  readonly path: string;
  /** Number of entities whose value moved in at least n readings in a row; index 0 is unused. */
  readonly up: number[];
  readonly down: number[];
  readonly scale: number[];
  readonly texts: number[];
  /** Values of the entity that moved the longest. */
  values: readonly string[];
}

/** True once more than `limit` entities of a kind have a path. */
export type HaveMore = (kind: string, path: string, limit: number) => Promise<boolean>;

/** The paths that moved in one reading. */
class VolatileTally {
  readonly #moving = new Map<string, Moving>();
  readonly #verdicts = new Map<string, Promise<boolean>>();

  /** All paths that moved. */
  get paths(): Iterable<Moving> {
    return this.#moving.values();
  }

  /** Adds one entity: its values that moved in this reading, by path. */
  note(kind: string, moved: readonly (readonly [path: string, pending: PendingPath])[]): void {
    for (const [path, all] of Map.groupBy(moved, ([own]) => own)) {
      const series = all.map(([, { values }]) => values);
      const times = Math.min(learnedAfter, Math.max(...series.map((values) => values.length - 1)));
      const moving = this.#of(kind, path);
      const ways = new Set(series.map(directionOf));
      const [way] = ways;
      const isScale = series.every(isOnScale);
      const isDistinct = series.every((values) => new Set(values).size === values.length);
      for (let run = 1; run <= times; run += 1) {
        if (ways.size === 1 && way === 'up') add(moving.up, run);
        if (ways.size === 1 && way === 'down') add(moving.down, run);
        if (isScale) add(moving.scale, run);
        else if (isDistinct) add(moving.texts, run);
      }
      const longest = series.toSorted((a, b) => b.length - a.length)[0] ?? [];
      if (longest.length > moving.values.length) moving.values = longest;
    }
  }

  /** Number of entities that moved in `run` readings in a row. */
  movers({ up, down, scale, texts }: Moving, run: number): number {
    return Math.max(up[run] ?? 0, down[run] ?? 0, scale[run] ?? 0, texts[run] ?? 0);
  }

  /** True if enough entities moved in `run` readings in a row for the path to be volatile. */
  isVolatile(kind: string, path: string, run: number, haveMore: HaveMore): Promise<boolean> {
    const moving = this.#moving.get(keyOf(kind, path));
    if (moving === undefined) return Promise.resolve(false);
    const key = JSON.stringify([kind, path, run]);
    return this.#verdicts.getOrInsertComputed(key, () => this.#judge(moving, run, haveMore));
  }

  async #judge(moving: Moving, run: number, haveMore: HaveMore): Promise<boolean> {
    const { kind, path, up, down, scale, texts } = moving;
    const oneWay = Math.max(up[run] ?? 0, down[run] ?? 0);
    if (oneWay >= fewest) return true;
    if (oneWay > 0 && !(await haveMore(kind, path, oneWay))) return true;
    const isMost = async (count: number, least: number) =>
      count >= least && !(await haveMore(kind, path, 2 * count - 1));
    return (await isMost(scale[run] ?? 0, fewest)) || (await isMost(texts[run] ?? 0, fewestTexts));
  }

  #of(kind: string, path: string): Moving {
    const key = keyOf(kind, path);
    const nothing = { up: [], down: [], scale: [], texts: [], values: [] };
    return this.#moving.getOrInsertComputed(key, () => ({ kind, path, ...nothing }));
  }
}

/** Limit of learned paths, so a hostile upstream cannot grow the state without bound. */
const learnedMax = 256;
/** Entities per batch when counting those that have a path. */
const countedAtOnce = 200;

/** The volatile paths of one collection: learned before, and in the reading under way. */
export class Volatile {
  readonly #reading: CollectionReading;
  readonly #stream: string;
  #learned: readonly VolatilePath[];
  #tally = new VolatileTally();
  /** Paths that almost moved often enough in the previous reading to become volatile. */
  #likely: ReadonlySet<string> = new Set();
  /** Cached counts: more entities than this have the path. */
  readonly #counted = new Map<string, number>();
  readonly #rules = new Map<string, CollectionReading>();

  constructor(stream: string, reading: CollectionReading, learned: readonly VolatilePath[]) {
    const { neverIgnore = [], ignore } = reading;
    this.#stream = stream;
    this.#reading = reading;
    this.#learned = learned.filter(
      ({ path }) => !isWithin(path, neverIgnore) && !isWithin(path, ignore),
    );
  }

  get learned(): readonly VolatilePath[] {
    return this.#learned;
  }

  /** Starts a reading. */
  begin(): void {
    this.#tally = new VolatileTally();
  }

  /** The comparison rules for a kind, without volatile paths. */
  rulesOf(kind: string): CollectionReading {
    return this.#rules.getOrInsertComputed(kind, () => this.#rulesFor(kind));
  }

  #rulesFor(kind: string): CollectionReading {
    const own = this.#learned.filter((one) => one.kind === kind).map(({ path }) => path);
    return own.length === 0
      ? this.#reading
      : { ...this.#reading, ignore: [...this.#reading.ignore, ...own] };
  }

  note(kind: string, moved: readonly (readonly [path: string, pending: PendingPath])[]): void {
    const { neverIgnore = [] } = this.#reading;
    const own = moved.filter(([path]) => !isWithin(path, neverIgnore));
    if (own.length > 0) this.#tally.note(kind, own);
  }

  isLikely(kind: string, path: string): boolean {
    return this.#likely.has(keyOf(kind, path));
  }

  /**
   * True for a value that is not reported now: its path is volatile, or as many entities moved there as this value has
   * differed, and the next reading decides.
   */
  async leavesOut(
    kind: string,
    path: string,
    { readings, values }: PendingPath,
    known: KnownEntities,
  ): Promise<boolean> {
    if (this.#learned.some((one) => one.kind === kind && one.path === path)) return true;
    const times = Math.max(readings, values.length - 1);
    if (times < 2 || times >= learnedAfter) return false;
    return await this.#tally.isVolatile(kind, path, times, this.#counting(known));
  }

  /** Learns from the reading; returns a condition for each new path. */
  async learn(known: KnownEntities, now: number): Promise<readonly Finding[]> {
    const findings: Finding[] = [];
    const likely = new Set<string>();
    for (const { kind, path, values, ...moving } of this.#tally.paths) {
      const counts = { kind, path, values, ...moving };
      if (this.#tally.movers(counts, 2) > 0) likely.add(keyOf(kind, path));
      const entities = this.#tally.movers(counts, learnedAfter);
      if (entities === 0 || this.#learned.length >= learnedMax) continue;
      if (!(await this.#tally.isVolatile(kind, path, learnedAfter, this.#counting(known))))
        continue;
      const [first = '', last = ''] = [values[0], values.at(-1)].map(shown);
      this.#learned = [...this.#learned, { kind, path, entities, first, last, at: now }];
      this.#rules.clear();
      findings.push(this.#finding({ kind, path, entities, first, last }));
    }
    this.#likely = likely;
    return findings;
  }

  #finding({ kind, path, ...details }: Omit<VolatilePath, 'at'>): Finding {
    const ignored = [...this.#reading.ignore, ...new Set(this.#learned.map((one) => one.path))];
    const ignore = `ignore: [${ignored.map((one) => JSON.stringify(one)).join(', ')}]`;
    return {
      condition: 'source.volatile_fields',
      message: `${path} of ${this.#stream} differs at each reading: it is no longer compared, and every other update writes its current value. To confirm this, set ${ignore}; to have it compared, name it in never_ignore`,
      details: { path, kind, ...details, ignore },
    };
  }

  #counting(known: KnownEntities): HaveMore {
    return async (kind, path, limit) => {
      if ((known.kinds.get(kind) ?? 0) <= limit) return false;
      const key = keyOf(kind, path);
      if ((this.#counted.get(key) ?? 0) > limit) return true;
      const keys = known.keysOf(kind);
      let count = 0;
      for (let from = 0; from < keys.length; from += countedAtOnce) {
        for (const { text } of (
          await known.states(keys.slice(from, from + countedAtOnce))
        ).values()) {
          if (!hasPath(JSON.parse(text), path)) continue;
          count += 1;
          if (count <= limit) continue;
          this.#counted.set(key, count);
          return true;
        }
      }
      return false;
    };
  }
}

/** A value for a message: short, and without line breaks. */
function shown(text = ''): string {
  return text === '' ? 'none' : cleanText(text, shownMax);
}

const shownMax = 80;

/** True for a path that is one of these, or within one. */
function isWithin(path: string, paths: readonly string[]): boolean {
  return paths.some((one) => path === one || path.startsWith(childPath(one, '')));
}

/** True if an entity has a value at a path; elements of a list have the list's path. */
function hasPath(value: unknown, path: string): boolean {
  if (path === '') return true;
  if (Array.isArray(value)) return value.some((one) => hasPath(one, path));
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(
    ([name, member]) =>
      name === path ||
      (path.startsWith(`${name}.`) && hasPath(member, path.slice(name.length + 1))),
  );
}

function keyOf(kind: string, path: string): string {
  return JSON.stringify([kind, path]);
}

function add(counts: number[], at: number): void {
  counts[at] = (counts[at] ?? 0) + 1;
}

/** The direction of numbers or times; null: none, or both. */
function directionOf(values: readonly string[]): 'up' | 'down' | null {
  const points = pointsOf(values);
  if (points === null || points.length < 2) return null;
  const pairs = points.slice(1).map((point, index) => [points[index] ?? point, point] as const);
  if (pairs.every(([one, next]) => next > one)) return 'up';
  return pairs.every(([one, next]) => next < one) ? 'down' : null;
}

function isOnScale(values: readonly string[]): boolean {
  return pointsOf(values) !== null;
}

/** Values as numbers; an absent or null first value is skipped. */
function pointsOf(values: readonly string[]): readonly (bigint | number)[] | null {
  const [first] = values;
  const known = first === '' || first === 'null' ? values.slice(1) : values;
  const points = known.map(pointOf);
  return points.includes(null) ? null : (points as readonly (bigint | number)[]);
}

const timeForm =
  /^"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?\s?(Z|[+-]\d{2}:?\d{2})?)?"$/i;

/** A number, a number in quotes, or a time. */
export function pointOf(text: string): bigint | number | null {
  const bare = /^"-?\d+(\.\d+)?"$/.test(text) ? text.slice(1, -1) : text;
  if (/^-?\d+$/.test(bare)) return BigInt(bare);
  if (/^-?\d[\d.eE+-]*$/.test(bare)) return Number(bare);
  if (!timeForm.test(text)) return null;
  const at = Date.parse(text.slice(1, -1).replace(',', '.'));
  return Number.isNaN(at) ? null : at;
}

// What a reading says about entities that are known. Pure: the last reported version and the one
// read now go in, and what may be reported comes out. What must stay true: a difference is reported
// only where an entity was really seen, and an absence only where complete readings agree on it for
// long enough. A value is confirmed by itself, whatever else of the entity differs: a counter that
// moves at each reading hides no change beside it.

import type { CollectionReading } from '../../contracts/definition.ts';
import { shownText } from '../../tools/lossless-text.ts';
import { contentHash, parseExact } from './canonical.ts';
import { addedFields } from './diff.ts';
import type { Entity } from './entities.ts';
import { type DifferingValue, differing, merged } from './paths.ts';
import { type EntityState, isOfOldText, type PendingPath } from './state.ts';
import { learnedAfter } from './volatile.ts';

/** Entities as they were last reported, by key. */
export type KnownEntities = ReadonlyMap<string, EntityState>;

/** How the entities of a kind are compared. */
export type EntityRules = Pick<
  CollectionReading,
  'confirmAfterMs' | 'settleMs' | 'ignore' | 'unordered'
>;

/** An entity whose content is not the last reported one. */
export interface Difference {
  readonly entity: Entity;
  readonly before: EntityState;
  readonly leaves: readonly DifferingValue[];
  /** The values that wait to be confirmed, or have just been. */
  readonly pending: readonly PendingPath[];
  /** The values that may be reported: confirmed, or another one in each of some readings. */
  readonly due: readonly DifferingValue[];
  /** The values that are other ones than in the reading before, by path. */
  readonly moved: readonly (readonly [path: string, pending: PendingPath])[];
  /** A second look may confirm something. */
  readonly isUnsure: boolean;
}

/** A reading beside what is known. */
export interface ScanComparison {
  readonly created: readonly Entity[];
  readonly differences: readonly Difference[];
  /** States whose waiting is over or has changed, without anything to report. */
  readonly settled: readonly (readonly [key: string, state: EntityState])[];
  /** Values that went back to a reported one. */
  readonly flaps: number;
}

/** Compares what was seen with what is known. Entities that were not seen are not looked at. */
export function compare(
  known: KnownEntities,
  seen: readonly Entity[],
  { rulesOf, now }: { readonly rulesOf: (kind: string) => EntityRules; readonly now: number },
): ScanComparison {
  const created: Entity[] = [];
  const differences: Difference[] = [];
  const settled: [string, EntityState][] = [];
  let flaps = 0;
  for (const entity of seen) {
    const held = known.get(entity.key);
    if (held === undefined) {
      created.push(entity);
      continue;
    }
    const rules = rulesOf(entity.kind);
    const before = isOfOldText(held) ? withBytes(held, entity.text, rules) : held;
    const leaves =
      entity.text === before.text
        ? []
        : differing(parseExact(before.text), parseExact(entity.text), rules);
    const found = track({ entity, before, leaves }, rules, now);
    flaps += found.flaps;
    if (leaves.length > 0) {
      differences.push(found);
      continue;
    }
    const { listed } = entity;
    const isSettled = before.pending === null && before.absent === null;
    if (
      !isSettled ||
      before !== held ||
      before.listed !== listed ||
      before.deniedAt !== undefined
    ) {
      const { deniedAt: _, ...state } = before;
      settled.push([entity.key, { ...state, pending: null, absent: null, listed }]);
    }
  }
  return { created, differences, settled, flaps };
}

/**
 * A state of an older version with the bytes of the entity, wherever that shows the same text; it
 * lost them, and only the text can differ.
 */
function withBytes(before: EntityState, text: string, rules: EntityRules): EntityState {
  const shown = parseExact(shownText(text));
  const keys = new Set(differing(parseExact(before.text), shown, rules).map(({ key }) => key));
  // An empty key is the whole entity.
  const known = keys.has('')
    ? before.text
    : merged(text, before.text, rules, (key) => keys.has(key));
  return { ...before, text: known, lossless: true };
}

/** Readings that show another value each, after which one is reported without being confirmed. */
const unconfirmedMax = 3;

/** Follows each value that differs from reading to reading. */
function track(
  found: Pick<Difference, 'entity' | 'before' | 'leaves'>,
  rules: EntityRules,
  now: number,
): Difference & { readonly flaps: number } {
  const { entity, before, leaves } = found;
  const waiting = before.pending !== null && 'paths' in before.pending ? before.pending.paths : [];
  const byKey = new Map(waiting.map((one) => [one.key, one]));
  const isConfirmedWhole = isOfOldVersion(found, rules, now);
  const isFlapping = flapOf(found, rules, now);
  const pending: PendingPath[] = [];
  const due: DifferingValue[] = [];
  const moved: [string, PendingPath][] = [];
  let flaps = 0;
  let isUnsure = false;
  for (const leaf of leaves) {
    const prior = byKey.get(leaf.key);
    byKey.delete(leaf.key);
    const isMoved = prior === undefined || prior.values.at(-1) !== leaf.after;
    const values = isMoved
      ? [...(prior?.values ?? [leaf.before]), leaf.after].slice(-learnedAfter - 1)
      : prior.values;
    const readings = (prior?.readings ?? 0) + 1;
    const at = isMoved ? now : Math.min(prior.at, now);
    const isStillUnstable = isMoved && prior?.unstable === true;
    const { key, path } = leaf;
    const one = { key, path, at, readings, values, ...(isStillUnstable && { unstable: true }) };
    pending.push(one);
    if (isFlapping(leaf)) {
      if (prior === undefined) flaps += 1;
      continue;
    }
    if (isMoved && leaf.key !== '') moved.push([leaf.path, one]);
    const isOver = now - at >= rules.confirmAfterMs && (!isMoved || rules.confirmAfterMs === 0);
    if (isOver || isConfirmedWhole || readings >= unconfirmedMax) due.push(leaf);
    isUnsure ||= values.length <= learnedAfter;
  }
  // What differed and does not any more has gone back to the reported value.
  flaps += [...byKey.values()].filter(
    ({ path, readings }) => readings > 0 && !rules.ignore.includes(path),
  ).length;
  return { entity, before, leaves, pending, due, moved, isUnsure, flaps };
}

/** True where a version before 0.3 has seen this content as a whole, long enough ago. */
function isOfOldVersion(
  { entity, before: { pending } }: Pick<Difference, 'entity' | 'before'>,
  rules: EntityRules,
  now: number,
): boolean {
  if (pending === null || 'paths' in pending) return false;
  return (
    now - pending.at >= rules.confirmAfterMs && pending.hash === contentHash(entity.text, rules)
  );
}

/** Selects the values that went back to the ones reported before the last, within `settle`. */
function flapOf(
  { entity, before: { previous }, leaves }: Pick<Difference, 'entity' | 'before' | 'leaves'>,
  rules: EntityRules,
  now: number,
): (leaf: DifferingValue) => boolean {
  // A clock that was set back would make all wait until it is that late again.
  const isRecent = (at: number) => now >= at && now - at < rules.settleMs;
  if (previous === null || leaves.length === 0) return () => false;
  const { hash, at, paths } = previous;
  if (paths === undefined) {
    const isAll = isRecent(at) && hash === contentHash(entity.text, rules);
    return () => isAll;
  }
  return ({ key, after }) =>
    paths.some((one) => one.key === key && one.value === after && isRecent(one.at));
}

/** An absence of so many at once may be upstream's fault: it needs so many whole readings. */
const suspectReadings = 3;

/** How the absences of a complete reading are judged. */
export interface AbsenceRule {
  /** So much is missing that it is not believed yet. */
  readonly suspect: boolean;
  /** An absence that was counted so often, and lasted so long, is a removal. */
  isDue(absent: EntityState['absent'], now: number): boolean;
}

/** The rule where so many of those known are missing. */
export function absenceRule(
  missing: number,
  known: number,
  { brake, removalsAfter, settleMs }: CollectionReading,
): AbsenceRule {
  const many = missing > Math.max(brake.count, brake.share * known);
  const suspect = missing > 0 && (many || missing === known);
  const readings = suspect ? Math.max(suspectReadings, removalsAfter) : removalsAfter;
  return {
    suspect,
    isDue: (absent, now) =>
      absent !== null && absent.count >= readings && now - absent.since >= settleMs,
  };
}

/** Fewer entities than this with the same new field are changes of their own. */
const driftMin = 3;

/** Which fields entities have that they had not, and the other way round, by kind. */
export class FieldTally {
  readonly #added = new Map<string, Map<string, number>>();
  readonly #gone = new Map<string, Map<string, number>>();
  /** Each counts once, however often a reading shows it. */
  readonly #keys = new Set<string>();

  /** Counts what differs, whether it is told now or once it is confirmed. */
  note({ entity: { key, kind, text }, before }: Pick<Difference, 'entity' | 'before'>): void {
    if (this.#keys.has(key)) return;
    this.#keys.add(key);
    count(this.#added, kind, addedFields(before.text, text));
    count(this.#gone, kind, addedFields(text, before.text));
  }

  /**
   * Fields that appeared on more than half of a kind's entities at once: the server's form has
   * changed, not they. Where there are such, those that have gone from as many are of the old form:
   * a field that was renamed. `kinds`: how many entities of each kind are there.
   */
  drifted(kinds: ReadonlyMap<string, number>): ReadonlyMap<string, ReadonlySet<string>> {
    const drifted = new Map<string, ReadonlySet<string>>();
    for (const [kind, added] of this.#added) {
      const least = Math.max(driftMin, Math.floor((kinds.get(kind) ?? 0) / 2) + 1);
      const common = (fields: ReadonlyMap<string, number> = new Map()) =>
        [...fields].flatMap(([field, times]) => (times >= least ? [field] : []));
      const news = common(added);
      if (news.length > 0) drifted.set(kind, new Set([...news, ...common(this.#gone.get(kind))]));
    }
    return drifted;
  }
}

function count(
  counts: Map<string, Map<string, number>>,
  kind: string,
  fields: readonly string[],
): void {
  const own = counts.get(kind) ?? new Map<string, number>();
  counts.set(kind, own);
  for (const field of fields) own.set(field, (own.get(field) ?? 0) + 1);
}

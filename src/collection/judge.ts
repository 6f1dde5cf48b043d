// Compares a reading with the known entities. Pure: the last reported version and the version just read go in; the
// reportable differences come out. Invariants: a difference is reported only if the entity was really seen; an absence
// is reported only if complete readings agree on it for long enough. Each value is confirmed by itself, so a counter
// that differs at each reading hides no change beside it.

import type { CollectionReading } from '../contracts/config.ts';
import { addedFields, contentHash, parseExact } from '../poll/index.ts';

import { shownText } from '../tools/index.ts';
import type { Entity } from './entities.ts';
import { type DifferingValue, differing, merged } from './paths.ts';
import { type EntityState, isOfOldText, type PendingPath } from './state.ts';
import { learnedAfter } from './volatile.ts';

/** Last reported entities, by key. */
export type EntityStates = ReadonlyMap<string, EntityState>;

/** The comparison rules for a kind of entity. */
export type EntityRules = Pick<
  CollectionReading,
  'confirmAfterMs' | 'settleMs' | 'ignore' | 'unordered'
>;

/** An entity whose content differs from the last reported one. */
export interface Difference {
  readonly entity: Entity;
  readonly before: EntityState;
  readonly leaves: readonly DifferingValue[];
  /** Values that wait for confirmation, or were just confirmed. */
  readonly pending: readonly PendingPath[];
  /** Values that may be reported: confirmed, or different in each of some readings. */
  readonly due: readonly DifferingValue[];
  /** Values that differ from the previous reading, by path. */
  readonly moved: readonly (readonly [path: string, pending: PendingPath])[];
  /** A second look may confirm a value. */
  readonly isUnsure: boolean;
}

/** A reading compared with the known entities. */
export interface ScanComparison {
  readonly created: readonly Entity[];
  readonly differences: readonly Difference[];
  /** States whose wait is over or has changed, with nothing to report. */
  readonly settled: readonly (readonly [key: string, state: EntityState])[];
  /** Number of values that returned to a reported one. */
  readonly flaps: number;
}

/** Compares the seen entities with the known ones. Unseen entities are not judged. */
export function compare(
  known: EntityStates,
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
 * A state of an older version, with the entity's bytes wherever the two show the same text. The older version lost the
 * bytes, so only the text can differ.
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

/** After this many readings with a different value each, the value is reported unconfirmed. */
const unconfirmedMax = 3;

/** Tracks each differing value from reading to reading. */
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
  // A value that no longer differs has returned to the reported one.
  flaps += [...byKey.values()].filter(
    ({ path, readings }) => readings > 0 && !rules.ignore.includes(path),
  ).length;
  return { entity, before, leaves, pending, due, moved, isUnsure, flaps };
}

/** True if a version before 0.3 has seen this content as a whole, long enough ago. */
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

/** Selects the values that returned to the ones reported before the last, within `settle`. */
function flapOf(
  { entity, before: { previous }, leaves }: Pick<Difference, 'entity' | 'before' | 'leaves'>,
  rules: EntityRules,
  now: number,
): (leaf: DifferingValue) => boolean {
  // If the clock was set back, do not make all values wait until it catches up.
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

/** Complete readings needed if suspiciously many entities are absent, because upstream may be at fault. */
const suspectReadings = 3;

/** How the absences of a complete reading are judged. */
export interface AbsenceRule {
  /** So many entities are missing that the absence is not believed yet. */
  readonly suspect: boolean;
  /** True if an absence was counted often enough, for long enough, to be a removal. */
  isDue(absent: EntityState['absent'], now: number): boolean;
}

/** The rule for this share of missing entities. */
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

/** With fewer entities than this, a new field is a change of each entity. */
const driftMin = 3;

/** Fields that entities gained and lost in a reading, by kind. */
export class FieldTally {
  readonly #added = new Map<string, Map<string, number>>();
  readonly #gone = new Map<string, Map<string, number>>();
  /** An entity counts once, however often the reading shows it. */
  readonly #keys = new Set<string>();

  /** Counts an entity's differences, whether they are reported now or after confirmation. */
  note({ entity: { key, kind, text }, before }: Pick<Difference, 'entity' | 'before'>): void {
    if (this.#keys.has(key)) return;
    this.#keys.add(key);
    count(this.#added, kind, addedFields(before.text, text));
    count(this.#gone, kind, addedFields(text, before.text));
  }

  /**
   * Fields that appeared on more than half of a kind's entities at once: the server's schema has changed, not the
   * entities. If there are any, fields that disappeared from as many entities belong to the old schema (a renamed
   * field). `kinds`: number of entities of each kind.
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
  const own = counts.getOrInsertComputed(kind, () => new Map<string, number>());
  for (const field of fields) own.set(field, (own.get(field) ?? 0) + 1);
}

// What a reading says about entities that are known. Pure: what was told last and what was read now
// go in, and what may be told comes out. What must stay true: a difference is told only where an
// entity was really seen, and an absence only where complete readings agree on it for long enough.

import type { CollectionReading } from '../../contracts/definition.ts';
import { contentHash } from './canonical.ts';
import { addedFields } from './diff.ts';
import type { Entity } from './entities.ts';
import type { EntityState } from './state.ts';

/** Entities as they were told last, by key. */
export type Known = ReadonlyMap<string, EntityState>;

/** An entity whose content is not the one told last. */
export interface Difference {
  readonly entity: Entity;
  readonly before: EntityState;
  /** Of the content seen. */
  readonly hash: string;
}

/** A reading beside what is known. */
export interface Comparing {
  readonly created: readonly Entity[];
  /** Differences that a reading before this one has shown already, long enough ago. */
  readonly confirmed: readonly Difference[];
  /** Differences seen for the first time. */
  readonly unconfirmed: readonly Difference[];
  /** States whose waiting is over or has changed, without anything to tell. */
  readonly settled: readonly (readonly [key: string, state: EntityState])[];
  /** Entities that went back to what they had just been. */
  readonly flaps: number;
}

/** Compares what was seen with what is known. Entities that were not seen are not looked at. */
export function compare(
  known: Known,
  seen: readonly Entity[],
  { reading, now }: { readonly reading: CollectionReading; readonly now: number },
): Comparing {
  const created: Entity[] = [];
  const confirmed: Difference[] = [];
  const unconfirmed: Difference[] = [];
  const settled: [string, EntityState][] = [];
  let flaps = 0;
  for (const entity of seen) {
    const before = known.get(entity.key);
    if (before === undefined) {
      created.push(entity);
      continue;
    }
    const hash = entity.text === before.text ? null : contentHash(entity.text, reading);
    if (hash === null || hash === contentHash(before.text, reading)) {
      const { listed } = entity;
      const isSettled = before.pending === null && before.absent === null;
      if (!isSettled || before.listed !== listed || before.deniedAt !== undefined) {
        const { deniedAt: _, ...state } = before;
        settled.push([entity.key, { ...state, pending: null, absent: null, listed }]);
      }
      continue;
    }
    const { pending, previous } = before;
    // A clock that was set back would make all wait until it is that late again.
    const left = previous?.hash === hash ? now - previous.at : -1;
    if (left >= 0 && left < reading.settleMs) {
      flaps += 1;
    } else if (pending?.hash === hash && now - pending.at >= reading.confirmAfterMs) {
      confirmed.push({ entity, before, hash });
      continue;
    } else {
      unconfirmed.push({ entity, before, hash });
      continue;
    }
    if (before.absent !== null) settled.push([entity.key, { ...before, absent: null }]);
  }
  return { created, confirmed, unconfirmed, settled, flaps };
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
  note({ entity: { key, kind, text }, before }: Difference): void {
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

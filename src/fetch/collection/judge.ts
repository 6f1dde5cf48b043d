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
      if (before.pending !== null || before.absent !== null) {
        settled.push([entity.key, { ...before, pending: null, absent: null }]);
      }
      continue;
    }
    const { pending, previous } = before;
    if (previous !== null && previous.hash === hash && now - previous.at < reading.settleMs) {
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

/**
 * An absence of so many at once that it may be upstream's fault needs this many complete readings.
 */
const suspectReadings = 3;

/** What a complete reading says about entities that are not in it. */
export interface Absences {
  readonly counted: readonly (readonly [key: string, state: EntityState])[];
  /** Those that were missing often and long enough to be removals. */
  readonly due: readonly (readonly [key: string, state: EntityState])[];
  readonly suspect: boolean;
}

/** Counts the absences of a complete reading. */
export function countAbsences(
  known: Known,
  seen: ReadonlySet<string>,
  { reading, now }: { readonly reading: CollectionReading; readonly now: number },
): Absences {
  const counted: [string, EntityState][] = [];
  for (const [key, state] of known) {
    if (seen.has(key)) continue;
    const { since, count } = state.absent ?? { since: now, count: 0 };
    counted.push([key, { ...state, absent: { since, count: count + 1 } }]);
  }
  const { brake, removalsAfter, settleMs } = reading;
  const many = counted.length > Math.max(brake.count, brake.share * known.size);
  const suspect = counted.length > 0 && (many || counted.length === known.size);
  const readings = suspect ? Math.max(suspectReadings, removalsAfter) : removalsAfter;
  const due = counted.filter(
    ([, { absent }]) =>
      absent !== null && absent.count >= readings && now - absent.since >= settleMs,
  );
  return { counted, due, suspect };
}

/** Fewer entities than this with the same new field are changes of their own. */
const driftMin = 3;

/**
 * Fields that appeared on more than half of a kind's entities at once: the server's form has
 * changed, not they.
 */
export function driftedFields(
  known: Known,
  differences: readonly Difference[],
): ReadonlyMap<string, ReadonlySet<string>> {
  const kinds = new Map<string, number>();
  for (const { kind } of known.values()) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  const counts = new Map<string, Map<string, number>>();
  for (const { entity, before } of differences) {
    const fields = counts.get(entity.kind) ?? new Map<string, number>();
    counts.set(entity.kind, fields);
    for (const field of addedFields(before.text, entity.text)) {
      fields.set(field, (fields.get(field) ?? 0) + 1);
    }
  }
  const drifted = new Map<string, ReadonlySet<string>>();
  for (const [kind, fields] of counts) {
    const half = (kinds.get(kind) ?? 0) / 2;
    const common = [...fields].filter(([, count]) => count >= driftMin && count > half);
    if (common.length > 0) drifted.set(kind, new Set(common.map(([field]) => field)));
  }
  return drifted;
}

// What one reading of a configuration leads to: the changes and conditions to tell, and the entities as they are then told.
// Nothing is written here; the poller commits it all at once. The rules by which an entity counts as changed or gone are
// in snapshot-judge.ts; this is where a second look is taken, and upstream is asked for what is missing.

import type { SnapshotReading } from '../contracts/definition.ts';
import type { Entity, Reading, SnapshotStream } from '../contracts/source.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import { contentHash } from './canonical.ts';
import type { Finding } from './own-pages.ts';
import {
  compare,
  countAbsences,
  type Difference,
  driftedFields,
  type Known,
} from './snapshot-judge.ts';
import type { Change } from './snapshot-records.ts';
import type { EntityState } from './snapshot-state.ts';

/** What a generation is made with. */
export interface GenerationMeans {
  readonly stream: SnapshotStream;
  readonly clock: Clock;
  readonly log: Log;
  readonly reading: SnapshotReading;
}

/** A reading that gave something. */
export type Seen = Extract<Reading, { outcome: 'reading' }>;

/** One generation; empty until one of its `look` methods was called. */
export class Generation {
  readonly changes: Change[] = [];
  readonly findings: Finding[] = [];
  readonly put = new Map<string, EntityState>();
  readonly drop: string[] = [];
  /** So much is missing that it is not believed yet. */
  suspect = false;
  readonly #means: GenerationMeans;
  readonly #known: Known;

  constructor(means: GenerationMeans, known: Known) {
    this.#means = means;
    this.#known = known;
  }

  /**
   * Takes a reading before there is a baseline: until one was complete, nobody can tell a new entity from one that was
   * missed. `told` closes the baseline with what is known by then.
   */
  lookFirst(seen: Seen, told: boolean): void {
    const { stream, reading: rules } = this.#means;
    const states = new Map(seen.complete ? [] : this.#known);
    for (const entity of seen.entities) states.set(entity.key, this.#firstState(entity));
    for (const [key, state] of states) this.put.set(key, state);
    for (const key of this.#known.keys()) if (!states.has(key)) this.drop.push(key);
    if (!told) return;
    if (rules.baseline === 'full') {
      for (const [key, state] of states) {
        this.changes.push({ change: 'state', key, state, after: state.text });
      }
      return;
    }
    const summary = { kind: stream.resource, id: stream.resource, version: 1, hash: '' };
    this.changes.push({ change: 'baseline', key: '', state: summary, count: states.size });
  }

  /** Compares a reading with what is known. `wasSuspect`: so much was missing the last time already. */
  async look(reading: Seen, wasSuspect: boolean, signal: AbortSignal): Promise<void> {
    const { reading: rules, clock, log } = this.#means;
    const now = clock.now();
    const seen = byKey(reading.entities);
    const compared = compare(this.#known, [...seen.values()], { reading: rules, now });
    for (const [key, state] of compared.settled) this.put.set(key, state);
    const again = await this.#readAgain(compared.unconfirmed, signal);
    const flaps = compared.flaps + again.flaps;
    if (flaps > 0) {
      log.info('entities went back to what they had been, which is not told', { flaps });
    }
    for (const entity of compared.created) {
      const state = this.#firstState(entity);
      this.put.set(entity.key, state);
      this.changes.push({ change: 'created', key: entity.key, state, after: entity.text });
    }
    this.#tellDifferences([...compared.confirmed, ...again.confirmed]);
    this.suspect = wasSuspect;
    if (reading.complete) await this.#tellAbsences(new Set(seen.keys()), { now, signal });
  }

  /** Reads may trail a write: what differs is read a second time, and told only if it is still so. */
  async #readAgain(
    differences: readonly Difference[],
    signal: AbortSignal,
  ): Promise<{ confirmed: readonly Difference[]; flaps: number }> {
    const { reading: rules, clock, stream } = this.#means;
    if (differences.length === 0 || rules.confirmAfterMs === 0) {
      return { confirmed: differences, flaps: 0 };
    }
    const firstAt = clock.now();
    await clock.sleep(rules.confirmAfterMs, signal);
    const reading = await stream.readEverything(signal);
    const seen = byKey(reading.outcome === 'reading' ? reading.entities : []);
    const confirmed: Difference[] = [];
    let flaps = 0;
    for (const difference of differences) {
      const { before, hash } = difference;
      const entity = seen.get(difference.entity.key);
      const now = entity === undefined ? null : contentHash(entity.text, rules);
      if (entity !== undefined && now === hash) {
        confirmed.push({ ...difference, entity });
        continue;
      }
      const back = now === contentHash(before.text, rules);
      if (back) flaps += 1;
      const pending = now === null ? { hash, at: firstAt } : { hash: now, at: clock.now() };
      this.put.set(difference.entity.key, {
        ...before,
        absent: null,
        pending: back ? null : pending,
      });
    }
    return { confirmed, flaps };
  }

  #tellDifferences(differences: readonly Difference[]): void {
    const { reading: rules, stream, clock } = this.#means;
    const drifted = driftedFields(this.#known, differences);
    let rebased = 0;
    for (const { entity, before, hash } of differences) {
      const fields = drifted.get(entity.kind);
      const without = { ...rules, ignore: [...rules.ignore, ...(fields ?? [])] };
      const onlyDrift =
        fields !== undefined &&
        contentHash(entity.text, without) === contentHash(before.text, without);
      const state: EntityState = {
        ...this.#firstState(entity),
        version: onlyDrift ? before.version : before.version + 1,
        previous: onlyDrift ? before.previous : { hash: before.hash, at: clock.now() },
      };
      this.put.set(entity.key, { ...state, hash });
      if (onlyDrift) rebased += 1;
      else {
        const texts = { before: before.text, after: entity.text };
        this.changes.push({ change: 'updated', key: entity.key, state, ...texts });
      }
    }
    if (drifted.size === 0) return;
    const fields = [...new Set([...drifted.values()].flatMap((names) => [...names]))].sort();
    this.findings.push({
      condition: 'schema_drift',
      message: `most entities of ${stream.name} have new fields; they are taken as they are and not told as changed`,
      details: { fields: fields.slice(0, 100), entities: rebased },
    });
  }

  /** Tells what is gone, once that is sure. */
  async #tellAbsences(
    seen: ReadonlySet<string>,
    { now, signal }: { readonly now: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const { reading: rules, stream, log } = this.#means;
    const absences = countAbsences(this.#known, seen, { reading: rules, now });
    for (const [key, state] of absences.counted) this.put.set(key, state);
    if (absences.suspect && !this.suspect) {
      log.warn('so many entities are missing that removals are held until more readings agree', {
        missing: absences.counted.length,
        known: this.#known.size,
      });
    }
    this.suspect = absences.suspect;
    const gone = new Set<string>();
    for (const [key, state] of absences.due) {
      const withParent = state.parentId !== undefined && gone.has(state.parentId);
      const there = withParent
        ? 'gone'
        : ((await stream.stillThere?.({ key, id: state.id }, signal)) ?? 'gone');
      if (there === 'there') this.put.set(key, { ...state, absent: null });
      if (there !== 'gone') continue;
      if (state.parentId === undefined) gone.add(state.id);
      this.put.delete(key);
      this.drop.push(key);
      const last = { ...state, version: state.version + 1 };
      this.changes.push({ change: 'deleted', key, state: last, before: state.text });
    }
  }

  #firstState(entity: Entity): EntityState {
    return {
      kind: entity.kind,
      id: entity.id,
      ...(entity.name === undefined ? {} : { name: entity.name }),
      ...(entity.parentId === undefined ? {} : { parentId: entity.parentId }),
      version: 1,
      hash: contentHash(entity.text, this.#means.reading),
      text: entity.text,
      pending: null,
      previous: null,
      absent: null,
    };
  }
}

function byKey(entities: readonly Entity[]): ReadonlyMap<string, Entity> {
  return new Map(entities.map((entity) => [entity.key, entity]));
}

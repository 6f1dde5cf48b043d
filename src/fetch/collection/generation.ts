// What one reading of a configuration leads to: the changes and conditions to tell, and the
// entities as they are then told. Nothing is written here; the poller commits it all at once. The
// rules by which an entity counts as changed or gone are in judge.ts; this is where a second look
// is asked for, and upstream for what is missing.

import type { CollectionReading } from '../../contracts/definition.ts';
import type { CollectionStream } from '../../contracts/source.ts';
import type { Clock, Log } from '../../contracts/tools.ts';
import type { Finding } from '../own-pages.ts';
import { contentHash } from './canonical.ts';
import type { Entity } from './entities.ts';
import { compare, countAbsences, type Difference, driftedFields, type Known } from './judge.ts';
import type { Reading } from './reader.ts';
import type { Change } from './records.ts';
import type { EntityState } from './state.ts';

/** Asks upstream for one entity that is missing, where it can be asked. */
type StillThere = (key: string) => Promise<'there' | 'gone' | 'unknown'>;

/** What a generation is made with. */
export interface GenerationMeans {
  readonly stream: CollectionStream;
  readonly clock: Clock;
  readonly log: Log;
  readonly reading: CollectionReading;
}

/** One generation; empty until one of its `look` methods was called. */
export class Generation {
  readonly changes: Change[] = [];
  readonly findings: Finding[] = [];
  readonly put = new Map<string, EntityState>();
  readonly drop: string[] = [];
  /** So much is missing that it is not believed yet. */
  suspect = false;
  /** Something differs that a second look is to confirm. */
  unsure = false;
  readonly #means: GenerationMeans;
  readonly #known: Known;

  constructor(means: GenerationMeans, known: Known) {
    this.#means = means;
    this.#known = known;
  }

  /**
   * Takes a reading before there is a baseline: until one was complete, nobody can tell a new
   * entity from one that was missed. `told` closes the baseline with what is known by then.
   */
  lookFirst(seen: Reading, told: boolean): void {
    const { stream, reading: rules } = this.#means;
    const states = new Map(seen.flaw === null ? [] : this.#known);
    for (const entity of seen.entities) states.set(entity.key, this.#firstState(entity));
    for (const [key, state] of states) this.put.set(key, state);
    for (const key of this.#known.keys()) if (!states.has(key)) this.drop.push(key);
    if (!told) return;
    if (rules.baseline === 'full') {
      const places = new Map(seen.entities.map(({ key, place }) => [key, place]));
      for (const [key, state] of states) {
        const place = places.get(key);
        this.changes.push({ change: 'state', key, state, place, after: state.text });
      }
      return;
    }
    const summary = { kind: stream.resource, id: stream.resource, version: 1, hash: '' };
    this.changes.push({ change: 'baseline', key: '', state: summary, count: states.size });
  }

  /**
   * Compares a reading with what is known. `wasSuspect`: so much was missing the last time already;
   * `isSecondLook`: it is there for what was seen to differ the last time, so soon after that it
   * says nothing more of what is missing.
   */
  async look(
    reading: Reading,
    { wasSuspect, isSecondLook }: { readonly wasSuspect: boolean; readonly isSecondLook: boolean },
    stillThere: StillThere,
  ): Promise<void> {
    const { reading: rules, clock, log } = this.#means;
    const now = clock.now();
    const seen = byKey(reading.entities);
    const compared = compare(this.#known, [...seen.values()], { reading: rules, now });
    for (const [key, state] of compared.settled) this.put.set(key, state);
    if (compared.flaps > 0) {
      const { flaps } = compared;
      log.info('entities went back to what they had been, which is not told', { flaps });
    }
    for (const entity of compared.created) {
      const state = this.#firstState(entity);
      this.put.set(entity.key, state);
      const { key, place, text } = entity;
      this.changes.push({ change: 'created', key, state, place, after: text });
    }
    const isSure = rules.confirmAfterMs === 0;
    this.#tellDifferences([...compared.confirmed, ...(isSure ? compared.unconfirmed : [])]);
    if (!isSure) this.#await(compared.unconfirmed, now);
    this.suspect = wasSuspect;
    if (reading.flaw === null && !isSecondLook) {
      await this.#tellAbsences(new Set(seen.keys()), { now, stillThere });
    }
  }

  /**
   * Reads may trail a write: what differs is told only if a reading some time later shows it as
   * well.
   */
  #await(differences: readonly Difference[], now: number): void {
    for (const { entity, before, hash } of differences) {
      const pending = before.pending?.hash === hash ? before.pending : { hash, at: now };
      this.put.set(entity.key, { ...before, absent: null, pending });
    }
    this.unsure = differences.length > 0;
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
        const { key, place } = entity;
        this.changes.push({ change: 'updated', key, state, place, ...texts });
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
    { now, stillThere }: { readonly now: number; readonly stillThere: StillThere },
  ): Promise<void> {
    const { reading: rules, stream, log } = this.#means;
    const absences = countAbsences(this.#known, seen, { reading: rules, now });
    for (const [key, state] of absences.counted) this.put.set(key, state);
    if (absences.suspect && !this.suspect) {
      const details = { missing: absences.counted.length, known: this.#known.size };
      log.warn(
        'so many entities are missing that removals are held until more readings agree',
        details,
      );
      this.findings.push({
        condition: 'removals_held',
        message: `so much of ${stream.name} is missing that nothing is told as deleted until more readings agree`,
        details,
      });
    }
    this.suspect = absences.suspect;
    const gone = new Set<string>();
    for (const [key, state] of absences.due) {
      const withParent = state.parentId !== undefined && gone.has(state.parentId);
      const there = withParent ? 'gone' : await stillThere(key);
      if (there === 'there') this.put.set(key, { ...state, absent: null });
      if (there !== 'gone') continue;
      if (state.parentId === undefined) gone.add(state.id);
      this.put.delete(key);
      this.drop.push(key);
      if (!rules.removals) continue;
      const last = { ...state, version: state.version + 1 };
      this.changes.push({ change: 'deleted', key, state: last, before: state.text });
    }
  }

  /** Its key and place are no part of it. */
  #firstState({ key: _, place: __, ...entity }: Entity): EntityState {
    return {
      ...entity,
      version: 1,
      hash: contentHash(entity.text, this.#means.reading),
      pending: null,
      previous: null,
      absent: null,
    };
  }
}

function byKey(entities: readonly Entity[]): ReadonlyMap<string, Entity> {
  return new Map(entities.map((entity) => [entity.key, entity]));
}

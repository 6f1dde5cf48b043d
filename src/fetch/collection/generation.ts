// What one reading of a configuration leads to: the changes and conditions to tell, and the
// entities as they are then told. Entities come as the reading goes; what shows itself at once,
// that one is new or waits, may be committed on the way, what rests on the whole reading comes last.
// Nothing is written here; the poller commits it. The rules by which an entity counts as changed or
// gone are in judge.ts; this is where a second look is asked for, and upstream for what is missing.

import type { Failure } from '../../contracts/answer.ts';
import type { CollectionReading } from '../../contracts/definition.ts';
import type { CollectionStream } from '../../contracts/source.ts';
import type { Clock, Log } from '../../contracts/tools.ts';
import type { Finding } from '../own-pages.ts';
import { contentHash } from './canonical.ts';
import { type Entity, keyParts } from './entities.ts';
import { absenceRule, compare, type Difference, FieldTally } from './judge.ts';
import type { KnownEntities } from './known.ts';
import type { EntityTaker } from './listed.ts';
import type { Reading } from './reader.ts';
import type { Change } from './records.ts';
import { askedOnce, type StillThere } from './rotation.ts';
import type { EntityState } from './state.ts';

/** What a generation is made with. */
export interface GenerationMeans {
  readonly stream: CollectionStream;
  readonly clock: Clock;
  readonly log: Log;
  readonly reading: CollectionReading;
}

/** What is known before a generation, and what is to be done on its way. */
export interface GenerationStart {
  readonly known: KnownEntities;
  /** There is no baseline yet. */
  readonly isFirst: boolean;
  /** So much was missing the last time already. */
  readonly wasSuspect: boolean;
  /** Commits what there is so far. */
  save(): Promise<void>;
}

/** Text of entities, and changes, that are held on the way. */
const heldBytesMax = 1024 * 1024;
const heldChangesMax = 1_000;
/** Denied entities named in one condition. */
const namedMax = 20;

/** One generation. */
export class Generation implements EntityTaker {
  readonly changes: Change[] = [];
  readonly findings: Finding[] = [];
  readonly known: KnownEntities;
  /** So much is missing that it is not believed yet. */
  suspect: boolean;
  /** Something differs that a second look is to confirm. */
  unsure = false;
  readonly #means: GenerationMeans;
  readonly #start: GenerationStart;
  /** How many were known before it. */
  readonly #before: number;
  /** How many changes and conditions were committed. */
  committed = 0;
  #differences = new Map<string, Difference>();
  readonly #fields = new FieldTally();
  #flaps = 0;

  constructor(means: GenerationMeans, start: GenerationStart) {
    this.#means = means;
    this.#start = start;
    this.known = start.known;
    this.suspect = start.wasSuspect;
    this.#before = start.known.size;
  }

  async take(entities: readonly Entity[]): Promise<void> {
    const seen = [...new Map(entities.map((entity) => [entity.key, entity])).values()];
    const states = await this.known.states(seen.map(({ key }) => key));
    if (this.#start.isFirst) this.#takeFirst(seen, states);
    else this.#compare(seen, states);
    await this.#spill();
  }

  /** What was seen is as true where the rest of the reading comes to nothing. */
  async #spill(): Promise<void> {
    const isMuch = this.known.bytes > heldBytesMax || this.changes.length > heldChangesMax;
    if (isMuch) await this.#start.save();
  }

  /** All there is so far is committed. */
  settle(): void {
    this.committed += this.changes.length + this.findings.length;
    this.changes.length = 0;
    this.findings.length = 0;
    this.known.settle();
  }

  /** Until there is a baseline, nobody can tell a new entity from one that was missed. */
  #takeFirst(seen: readonly Entity[], states: ReadonlyMap<string, EntityState>): void {
    for (const entity of seen) {
      const before = states.get(entity.key);
      const first = this.#firstState(entity);
      const isSame = before?.hash === first.hash;
      const state = { ...first, version: (before?.version ?? 0) + (isSame ? 0 : 1) };
      this.known.put(entity.key, this.#isFull ? state : first);
      if (!isSame && this.#isFull) {
        const { key, place, text } = entity;
        this.changes.push({ change: 'state', key, state, place, after: text });
      }
    }
  }

  #compare(seen: readonly Entity[], states: ReadonlyMap<string, EntityState>): void {
    const { reading: rules, clock } = this.#means;
    const now = clock.now();
    const compared = compare(states, seen, { reading: rules, now });
    for (const { key } of seen) this.#differences.delete(key);
    for (const [key, state] of compared.settled) this.known.put(key, state);
    this.#flaps += compared.flaps;
    for (const entity of compared.created) {
      const state = this.#firstState(entity);
      const { key, place, text } = entity;
      this.known.put(key, state);
      this.changes.push({ change: 'created', key, state, place, after: text });
    }
    const isSure = rules.confirmAfterMs === 0;
    // Where the form changed while it was read, some are confirmed before the others are.
    for (const one of [...compared.confirmed, ...compared.unconfirmed]) this.#fields.note(one);
    const sure = [...compared.confirmed, ...(isSure ? compared.unconfirmed : [])];
    for (const difference of sure) this.#differences.set(difference.entity.key, difference);
    if (!isSure) this.#await(compared.unconfirmed, now);
  }

  /** Reads may trail a write: what differs is told only if a later reading shows it too. */
  #await(differences: readonly Difference[], now: number): void {
    for (const { entity, before, hash } of differences) {
      const first = before.pending?.hash === hash ? before.pending.at : now;
      const pending = { hash, at: Math.min(first, now) };
      this.known.put(entity.key, { ...before, absent: null, pending, deniedAt: undefined });
    }
    this.unsure ||= differences.length > 0;
  }

  /** What was told of them stays; new ones are taken as the list shows them. */
  async deny(entities: readonly Entity[], { cause }: Failure): Promise<void> {
    const { clock, stream } = this.#means;
    const deniedAt = clock.now();
    const states = await this.known.states(entities.map(({ key }) => key));
    await this.take(entities.filter(({ key }) => !states.has(key)));
    const fresh = entities.filter(({ key }) => !this.known.isDenied(key));
    for (const { key, listed } of entities) {
      const state = states.get(key) ?? (await this.known.states([key])).get(key);
      if (state !== undefined) {
        this.known.put(key, { ...state, listed: state.listed ?? listed, absent: null, deniedAt });
      }
    }
    if (fresh.length === 0) return;
    const ids = fresh.slice(0, namedMax).map(({ id }) => id);
    this.findings.push({
      condition: 'source.scope_lost',
      message: `${fresh.length} of ${stream.name} cannot be read by their ids: denied, or listed and not found; what is known of them stays as it is`,
      details: { ids, denied: fresh.length, reason: cause.message },
    });
  }

  /**
   * Takes a first reading's end. `told` closes the baseline with what is known by then. What was
   * told as it was met, and is gone, is an absence like any other.
   */
  async finishFirst(reading: Reading, told: boolean): Promise<void> {
    const { stream } = this.#means;
    if (reading.flaw === null && !this.#isFull) {
      for (const key of this.#missing(reading)) this.known.drop(key);
    }
    if (!told || this.#isFull) return;
    const summary = { kind: stream.resource, id: stream.resource, version: 1, hash: '' };
    this.changes.push({ change: 'baseline', key: '', state: summary, count: this.known.size });
  }

  /**
   * Takes a reading's end. `isSecondLook`: it is there for what was seen to differ the last time, so
   * soon after that it says nothing more of what is missing.
   */
  async finish(reading: Reading, isSecondLook: boolean, stillThere: StillThere): Promise<void> {
    const { log } = this.#means;
    if (this.#flaps > 0) {
      const flaps = this.#flaps;
      log.info('entities went back to what they had been, which is not told', { flaps });
    }
    const missing = this.#missing(reading);
    const gone = reading.flaw === null ? missing : [];
    this.#tellDifferences([...this.#differences.values()], gone);
    // Also of one that is listed again and was not asked by its id, or in vain.
    for await (const [key, state] of this.known.each(this.known.returned)) {
      this.known.put(key, { ...state, absent: null });
      await this.#spill();
    }
    if (reading.flaw === null && !isSecondLook) {
      await this.#tellAbsences(missing, stillThere);
    }
  }

  get #isFull(): boolean {
    return this.#means.reading.baseline === 'full';
  }

  /** Known entities that a complete reading does not show; parts of one not asked are not judged. */
  #missing({ asked }: Reading): readonly string[] {
    const { kind } = this.#means.stream.entity;
    return this.known.unseen.filter((key) => {
      const { id, list } = keyParts(key);
      const parent = JSON.stringify([kind, id]);
      return list === null || asked?.has(parent) !== false || !this.known.isSeen(parent);
    });
  }

  /** Of what is gone no field can be new. */
  #tellDifferences(differences: readonly Difference[], gone: readonly string[]): void {
    if (differences.length === 0) return;
    const { reading: rules, stream, clock } = this.#means;
    const there = new Map(this.known.kinds);
    for (const { kind } of gone.map(keyParts)) there.set(kind, (there.get(kind) ?? 0) - 1);
    const drifted = this.#fields.drifted(there);
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
      this.known.put(entity.key, { ...state, hash });
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
  async #tellAbsences(missing: readonly string[], stillThere: StillThere): Promise<void> {
    const { reading: rules, stream, log, clock } = this.#means;
    const now = clock.now();
    const rule = absenceRule(missing.length, this.#before, rules);
    if (rule.suspect && !this.suspect) {
      const details = { missing: missing.length, known: this.#before };
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
    this.suspect = rule.suspect;
    const isGone = askedOnce(stillThere);
    for await (const [key, before] of this.known.each(missing)) {
      const { since, count } = before.absent ?? { since: now, count: 0 };
      const state = { ...before, absent: { since: Math.min(since, now), count: count + 1 } };
      this.known.put(key, state);
      const there = rule.isDue(state.absent, now) ? await isGone(key, state) : null;
      if (there === 'there') this.known.put(key, { ...state, absent: null });
      if (there === 'gone') this.#tellGone(key, state);
      await this.#spill();
    }
  }

  #tellGone(key: string, state: EntityState): void {
    this.known.drop(key);
    if (!this.#means.reading.removals) return;
    const last = { ...state, version: state.version + 1 };
    this.changes.push({ change: 'deleted', key, state: last, before: state.text });
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

// The result of one reading (generation) of a configuration: the changes and conditions to report, and the new
// last-reported state of the entities. Entities arrive during the reading. Results that depend on one entity only may
// be committed meanwhile; results that depend on the whole reading come last. Nothing is written here; the poller
// commits. The rules for changes and removals are in judge.ts; this file decides on second looks and on queries for
// missing entities.

import type { CollectionReading } from '../contracts/config.ts';
import type { Clock, CollectionStream, Failure, Log } from '../contracts/index.ts';
import { contentHash, type Finding } from '../poll/index.ts';

import { shownText } from '../tools/index.ts';
import { type Entity, keyParts } from './entities.ts';
import { absenceRule, compare, type Difference, type EntityRules, FieldTally } from './judge.ts';
import type { KnownEntities } from './known.ts';
import type { EntityTaker } from './listed.ts';
import { type DifferingValue, merged } from './paths.ts';
import type { FullScan } from './reader.ts';
import type { FoundChange } from './records.ts';
import { askedOnce, type StillThere } from './rotation.ts';
import { type EntityState, isOfOldText, type PendingPath } from './state.ts';
import type { Volatile } from './volatile.ts';

/** Dependencies of a generation. */
export interface GenerationDeps {
  readonly stream: CollectionStream;
  readonly clock: Clock;
  readonly log: Log;
  readonly reading: CollectionReading;
}

/** The state before a generation, and its callback. */
export interface GenerationStart {
  readonly known: KnownEntities;
  /** The volatile paths. */
  readonly volatile: Volatile;
  /** There is no baseline yet. */
  readonly isFirst: boolean;
  /** The previous reading also missed suspiciously many entities. */
  readonly wasSuspect: boolean;
  /** Commits the results so far. */
  save(): Promise<void>;
}

/** Limits for uncommitted entity text, and for uncommitted changes. */
const heldBytesMax = 1024 * 1024;
const heldChangesMax = 1_000;
/** Limit of changes that wait until their path is known to be volatile or not. */
const undecidedMax = 1_000;
/** A value that differed in this many readings in a row is unstable. */
const unstableAfter = 3;
/** Limit of unstable entities that are named. */
const examplesMax = 10;
/** Limit of denied entities named in one condition. */
const namedMax = 20;

/** One generation. */
export class Generation implements EntityTaker {
  readonly changes: FoundChange[] = [];
  readonly findings: Finding[] = [];
  readonly known: KnownEntities;
  /** So many entities are missing that the absence is not believed yet. */
  suspect: boolean;
  /** A difference needs a second look. */
  unsure = false;
  readonly #deps: GenerationDeps;
  readonly #start: GenerationStart;
  /** Number of entities known before. */
  readonly #before: number;
  /** Number of committed changes and conditions. */
  committed = 0;
  /** Entities with a value that differs at each reading although its path cannot be volatile. */
  readonly unstable: { readonly kind: string; readonly id: string; readonly path: string }[] = [];
  #differences = new Map<string, Difference>();
  readonly #fields = new FieldTally();
  #flaps = 0;

  constructor(deps: GenerationDeps, start: GenerationStart) {
    this.#deps = deps;
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

  /** Seen entities stay valid even if the rest of the reading fails. */
  async #spill(): Promise<void> {
    const isMuch = this.known.bytes > heldBytesMax || this.changes.length > heldChangesMax;
    if (isMuch) await this.#start.save();
  }

  /** All results so far are committed. */
  settle(): void {
    this.committed += this.changes.length + this.findings.length;
    this.changes.length = 0;
    this.findings.length = 0;
    this.known.settle();
  }

  /** Until there is a baseline, a new entity and a missed one look the same. */
  #takeFirst(seen: readonly Entity[], states: ReadonlyMap<string, EntityState>): void {
    for (const entity of seen) {
      const before = states.get(entity.key);
      const first = this.#firstState(entity);
      const isSame = before !== undefined && this.#isSame(entity, before, first.hash);
      const state = { ...first, version: (before?.version ?? 0) + (isSame ? 0 : 1) };
      this.known.put(entity.key, this.#isFull ? state : first);
      if (!isSame && this.#isFull) {
        const { key, place, text } = entity;
        this.changes.push({ change: 'state', key, state, place, after: text });
      }
    }
  }

  #isSame({ text, kind }: Entity, before: EntityState, hash: string): boolean {
    if (before.hash === hash || !isOfOldText(before)) return before.hash === hash;
    return before.hash === contentHash(shownText(text), this.rulesOf(kind));
  }

  #compare(seen: readonly Entity[], states: ReadonlyMap<string, EntityState>): void {
    const { volatile } = this.#start;
    const rulesOf = (kind: string) => this.rulesOf(kind);
    const compared = compare(states, seen, { rulesOf, now: this.#deps.clock.now() });
    for (const { key } of seen) this.#differences.delete(key);
    for (const [key, state] of compared.settled) this.known.put(key, state);
    this.#flaps += compared.flaps;
    for (const entity of compared.created) {
      const state = this.#firstState(entity);
      const { key, place, text } = entity;
      this.known.put(key, state);
      this.changes.push({ change: 'created', key, state, place, after: text });
    }
    for (const difference of compared.differences) {
      const { entity, due, moved } = difference;
      // If the schema changed during the reading, some entities are confirmed before others.
      this.#fields.note(difference);
      volatile.note(entity.kind, moved);
      this.unsure ||= difference.isUnsure && due.length < difference.leaves.length;
      const isLikely = due.every(({ path }) => volatile.isLikely(entity.kind, path));
      const isStored = due.length > 0 && !(isLikely && this.#differences.size >= undecidedMax);
      if (isStored) this.#differences.set(entity.key, difference);
      else this.#keepWaiting(difference);
    }
  }

  /** A reading may show a state from before a write: a difference is reported only if a later reading shows it too. */
  #keepWaiting({ entity, before, pending: all }: Difference): void {
    const { ignore } = this.rulesOf(entity.kind);
    const paths = all.filter(({ path }) => !ignore.includes(path));
    const pending = paths.length === 0 ? null : { paths };
    this.known.put(entity.key, { ...before, absent: null, pending, deniedAt: undefined });
  }

  rulesOf(kind: string): EntityRules {
    return this.#start.volatile.rulesOf(kind);
  }

  /** The last reported state of a denied entity stays; a new one is created from its list element. */
  async deny(entities: readonly Entity[], { cause }: Failure): Promise<void> {
    const { clock, stream } = this.#deps;
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
      message: `${fresh.length} of ${stream.name} cannot be read by their ids: denied, or listed and not found; their stored state is unchanged`,
      details: { ids, denied: fresh.length, reason: cause.message },
    });
  }

  /**
   * Ends a first reading. `closesBaseline`: closes the baseline with the entities known by then. An entity that was
   * reported when seen, and is gone now, is an ordinary absence.
   */
  async finishFirst(reading: FullScan, closesBaseline: boolean): Promise<void> {
    const { stream } = this.#deps;
    if (reading.flaw === null && !this.#isFull) {
      for (const key of this.#missing(reading)) this.known.drop(key);
    }
    if (!closesBaseline || this.#isFull) return;
    const summary = { kind: stream.resource, id: stream.resource, version: 1, hash: '' };
    this.changes.push({ change: 'baseline', key: '', state: summary, count: this.known.size });
  }

  /**
   * Ends a reading. `isSecondLook`: the reading confirms earlier differences and comes too soon to say anything new
   * about absences.
   */
  async finish(reading: FullScan, isSecondLook: boolean, stillThere: StillThere): Promise<void> {
    const { log } = this.#deps;
    if (this.#flaps > 0) {
      log.info('values_flapped', 'values changed back before confirmation; not reported', {
        flaps: this.#flaps,
      });
    }
    const missing = this.#missing(reading);
    const gone = reading.flaw === null ? missing : [];
    await this.#reportDifferences(gone);
    // Also for an entity that is listed again and was not requested by its id, or in vain.
    for await (const [key, state] of this.known.each(this.known.returned)) {
      this.known.put(key, { ...state, absent: null });
      await this.#spill();
    }
    if (reading.flaw === null && !isSecondLook) {
      await this.#emitAbsences(missing, stillThere);
    }
  }

  get #isFull(): boolean {
    return this.#deps.reading.baseline === 'full';
  }

  /** Known entities that a complete reading does not show. Parts of an entity that was not requested are not judged. */
  #missing({ asked }: FullScan): readonly string[] {
    const { kind } = this.#deps.stream.entity;
    return this.known.unseen.filter((key) => {
      const { id, list } = keyParts(key);
      const parent = JSON.stringify([kind, id]);
      return list === null || asked?.has(parent) !== false || !this.known.isSeen(parent);
    });
  }

  /** Values that returned to an already reported one in this reading. */
  get flaps(): number {
    return this.#flaps;
  }

  /** Reports the due differences, once the whole reading has shown which paths are volatile. */
  async #reportDifferences(gone: readonly string[]): Promise<void> {
    const { volatile } = this.#start;
    this.findings.push(...(await volatile.learn(this.known, this.#deps.clock.now())));
    const accepted = new Map<Difference, readonly DifferingValue[]>();
    for (const difference of this.#differences.values()) {
      const leaves: DifferingValue[] = [];
      for (const leaf of difference.due) {
        const one = difference.pending.find(({ key }) => key === leaf.key);
        const { kind } = difference.entity;
        const isLeft = one && (await volatile.leavesOut(kind, leaf.path, one, this.known));
        if (isLeft === false) leaves.push(leaf);
      }
      if (leaves.length > 0) accepted.set(difference, leaves);
      else this.#keepWaiting(difference);
    }
    this.#emitDifferences(accepted, gone);
  }

  /** An entity that is gone has no new fields. */
  #emitDifferences(
    differences: ReadonlyMap<Difference, readonly DifferingValue[]>,
    gone: readonly string[],
  ) {
    if (differences.size === 0) return;
    const { stream } = this.#deps;
    const there = new Map(this.known.kinds);
    for (const { kind } of gone.map(keyParts)) there.set(kind, (there.get(kind) ?? 0) - 1);
    const drifted = this.#fields.drifted(there);
    let rebased = 0;
    for (const [difference, leaves] of differences) {
      const { entity, before } = difference;
      const fields = drifted.get(entity.kind);
      const onlyDrift = fields !== undefined && leaves.every(({ top }) => fields.has(top));
      const state = this.#changedState(difference, leaves, onlyDrift);
      this.known.put(entity.key, state);
      if (onlyDrift) rebased += 1;
      else {
        const texts = { before: before.text, after: state.text };
        const { key, place } = entity;
        this.changes.push({ change: 'updated', key, state, place, ...texts });
      }
    }
    if (drifted.size === 0) return;
    const fields = [...new Set([...drifted.values()].flatMap((names) => [...names]))].sort();
    this.findings.push({
      condition: 'schema_drift',
      message: `most entities of ${stream.name} have new fields; the fields are stored and not reported as changes`,
      details: { fields: fields.slice(0, 100), entities: rebased },
    });
  }

  /** The entity's state with these differences reported; the others keep waiting. */
  #changedState(
    { entity, before, leaves: all, pending, moved }: Difference,
    leaves: readonly DifferingValue[],
    onlyDrift: boolean,
  ): EntityState {
    const { clock } = this.#deps;
    const now = clock.now();
    const rules = this.rulesOf(entity.kind);
    const keys = new Set(leaves.map(({ key }) => key));
    const isWhole = leaves.length === all.length;
    const text = isWhole
      ? entity.text
      : merged(before.text, entity.text, rules, (key) => keys.has(key));
    const moving = new Set(moved.map(([, one]) => one));
    const waiting = pending.flatMap((one) => {
      if (rules.ignore.includes(one.path)) return [];
      return keys.has(one.key) ? this.#followed(one, moving.has(one), entity) : [one];
    });
    const reported = leaves.map(({ key, before: value }) => ({ key, value, at: now }));
    const recent = (before.previous?.paths ?? []).filter(
      ({ key, at }) => !keys.has(key) && now - at < rules.settleMs,
    );
    const paths = [...recent, ...reported];
    return {
      ...this.#firstState({ ...entity, text }),
      version: onlyDrift ? before.version : before.version + 1,
      pending: waiting.length === 0 ? null : { paths: waiting },
      previous: onlyDrift ? before.previous : { hash: before.hash, at: now, paths },
    };
  }

  /** A value that was reported although it differs at each reading is tracked further. */
  #followed(one: PendingPath, isMoving: boolean, { kind, id }: Entity): PendingPath[] {
    if (!isMoving) return [];
    const isUnstable = one.values.length > unstableAfter;
    if (isUnstable && this.unstable.length < examplesMax) {
      this.unstable.push({ kind, id, path: one.key });
    }
    return [{ ...one, readings: 0, ...(isUnstable && { unstable: true }) }];
  }

  /** Reports removals that are certain. */
  async #emitAbsences(missing: readonly string[], stillThere: StillThere): Promise<void> {
    const { reading: rules, stream, log, clock } = this.#deps;
    const now = clock.now();
    const rule = absenceRule(missing.length, this.#before, rules);
    if (rule.suspect && !this.suspect) {
      const details = { missing: missing.length, known: this.#before };
      log.warn(
        'removals_held',
        'many entities are missing; removals wait until more readings agree',
        details,
      );
      this.findings.push({
        condition: 'removals_held',
        message: `so much of ${stream.name} is missing that nothing is reported as deleted until more readings agree`,
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
      if (there === 'gone') this.#emitGone(key, state);
      await this.#spill();
    }
  }

  #emitGone(key: string, state: EntityState): void {
    this.known.drop(key);
    if (!this.#deps.reading.removals) return;
    const last = { ...state, version: state.version + 1 };
    this.changes.push({ change: 'deleted', key, state: last, before: state.text });
  }

  /** The state without the entity's key and position. */
  #firstState({ key: _, place: __, ...entity }: Entity): EntityState {
    return {
      ...entity,
      ...(entity.text.includes('\ufffd') && { lossless: true }),
      version: 1,
      hash: contentHash(entity.text, this.rulesOf(entity.kind)),
      pending: null,
      previous: null,
      absent: null,
    };
  }
}

// The required reports about a collection, and whether they were made. The rule, if polls have read all entities
// without a fault:
//
//   a new entity must be reported after one poll;
//   an update after two that are `confirm_after` apart; one that reverts to the earlier content, once
//   that has also lasted for `settle`;
//   a removal after the number of polls in the rules and `settle`, and of many at once after three;
//   when all has been well for long, the reported content is the true content.

import type { PollResult } from '../../../src/poll/outcome.ts';
import { type ModelCollection, rowIdOf, type Span } from './model.ts';
import { type Poll, ToldCollection } from './reported.ts';
import type { ModelServer } from './server.ts';
import type { Traits } from './traits.ts';

/** Polls in a row that may fail while nothing goes wrong any more. */
const failuresMax = 12;
/** An absence of many needs so many readings, and one more where the first was the last of others. */
const readingsToTell = 3;
const removalReadings = 4;
/** Readings in which one row may pass unseen. */
const missedMax = 3;
/** The longest poll that can report a content that has just gone. */
const pollMs = 10_000;
/** Of so many entities most show a new field, also where some are new themselves. */
const commonMin = 8;
/** Most of them are not reported one by one. */
const hollowShare = 0.5;

/** Watches one world. */
export class Oracle {
  readonly told: ToldCollection;
  readonly #traits: Traits;
  readonly #collection: ModelCollection;
  readonly #conditions: readonly string[];
  /** Entities that were denied by their ids are requested again when their turn comes. */
  readonly #deniedUntil: ReadonlyMap<string, number>;
  #well: Poll[] = [];
  #isSecondLook = false;
  /** Since when each poll has reported that the company is denied or gone, and whether one was killed. */
  #deniedSince: number | null = null;
  #denials = 0;
  /** Times that the company may have been lost, each begun by a reading. */
  #losses = 0;
  #mayLose = true;
  /** So many entities have had a new field at once. */
  #drifting = Number.POSITIVE_INFINITY;

  constructor(
    traits: Traits,
    collection: ModelCollection,
    {
      conditions,
      deniedUntil,
    }: { conditions: readonly string[]; deniedUntil: ReadonlyMap<string, number> },
  ) {
    this.#traits = traits;
    this.#collection = collection;
    this.#deniedUntil = deniedUntil;
    this.#conditions = conditions;
    this.told = new ToldCollection(traits, collection, deniedUntil);
  }

  get findings(): string[] {
    return this.told.findings;
  }

  /** Records a finished poll with its reports, and checks. */
  observe(
    result: PollResult | 'killed',
    ended: Omit<Poll, 'isDone' | 'isSecondLook'>,
    texts: readonly string[],
  ): void {
    const isDone = result !== 'killed' && result.outcome === 'done';
    const poll = { ...ended, isDone, isSecondLook: this.#isSecondLook };
    this.told.take(texts, poll);
    this.#lookAtScope(result, poll);
    // It stays due where one fails, and is forgotten in a kill.
    if (isDone && !poll.isPart) this.#isSecondLook = result.againMs !== undefined;
    else if (result === 'killed') this.#isSecondLook = false;
    if (isDone && !poll.troubles.any && !poll.isPart) {
      this.#well.push(poll);
      if (this.told.isBegun && !this.#traits.jumps) this.#lookForLost();
    } else this.#well = [];
  }

  /** What was seen before looks otherwise from now on. */
  changeSchema(entities: number): void {
    this.#well = [];
    this.#drifting = entities >= commonMin ? entities : Number.POSITIVE_INFINITY;
  }

  /** All reported content is forgotten, and is reported again. */
  loseState(): void {
    this.told.loseState();
    this.#mayLose = true;
    this.#denials = 0;
    this.#isSecondLook = false;
  }

  /** The end, long after anything went wrong. */
  finish({ hasExtra }: ModelServer): void {
    const { findings } = this.told;
    if (this.#well.length < failuresMax) findings.push('polls fail though all is well');
    if (!this.told.isBegun) findings.push('there is no baseline');
    for (const [key, content] of this.#standing()) {
      if (!this.told.isReported(key, content)) findings.push(`not as it is at the end: ${key}`);
    }
    const { trouble, crash, lagMs, flaps, blocked, rules, named, parts } = this.#traits;
    // Where one row is never shown no reading is whole, and what is gone counts as there.
    const isQuiet = trouble === 0 && crash === 0 && lagMs === 0 && flaps === 0 && !blocked;
    const isPlain = isQuiet && rules.confirmAfterMs > 0 && named && !parts;
    if (isPlain && this.told.hollow > hollowShare * this.#drifting) {
      findings.push(`${this.told.hollow} updates that are but a new field`);
    }
    if (!hasExtra && this.told.hollow > 0) findings.push('an update of nothing');
  }

  #standing(): ReadonlyMap<string, Span | null> {
    const current = new Map<string, Span | null>();
    for (const [key, spans] of this.#collection.spans) {
      const last = spans.at(-1);
      current.set(key, last?.to === Number.POSITIVE_INFINITY ? last : null);
    }
    return current;
  }

  #lookForLost(): void {
    for (const [key, content] of this.#standing()) {
      if (this.told.isReported(key, content) || !this.#isOwed(key, content)) continue;
      const what = content === null ? 'deleted' : JSON.stringify(content);
      this.findings.push(`lost: ${key}, ${what}`);
    }
  }

  #isOwed(key: string, content: Span | null): boolean {
    const { rules, lagMs, moves } = this.#traits;
    // Where others move or replicas differ, a row may pass unseen between two pages.
    const mayMiss = moves || lagMs > 0;
    const deniedUntil = this.#deniedUntil.get(rowIdOf(key)) ?? 0;
    const spans = this.#collection.spans.get(key) ?? [];
    const since = content === null ? (spans.at(-1)?.to ?? 0) : content.from;
    const seen = this.#well.filter(
      ({ begunAt, endedAt }) =>
        begunAt - lagMs > since &&
        endedAt > deniedUntil &&
        !this.#collection.hasMoved(key, begunAt - lagMs, endedAt),
    );
    const [first] = seen;
    const last = seen.at(-1);
    if (first === undefined || last === undefined) return false;
    if (content === null) {
      const readings = seen.filter(({ isSecondLook }) => !isSecondLook);
      return (
        readings.length >= Math.max(removalReadings, rules.removalsAfter + 1) &&
        (readings.at(-2)?.begunAt ?? 0) - (readings[0]?.endedAt ?? 0) > rules.settleMs
      );
    }
    if (this.told.isAbsent(key)) return !mayMiss || seen.length >= missedMax;
    const isReturn = spans.some(
      (other) =>
        other !== content &&
        (other.listed === content.listed || other.detailed === content.detailed),
    );
    const from = isReturn ? since + rules.settleMs + pollMs : since;
    const sures = seen.filter(({ begunAt }) => begunAt - lagMs > from);
    const [sure] = sures;
    // Reported at the latest two readings after the one that has seen it first (cases.md, R3).
    if (sure === undefined || sures.length < readingsToTell) return false;
    return rules.confirmAfterMs === 0 || last.begunAt - sure.endedAt >= rules.confirmAfterMs;
  }

  /** Reported once while it lasts, and with its scope. */
  #lookAtScope(result: PollResult | 'killed', { endedAt, troubles }: Poll): void {
    const reported = this.#conditions.filter(
      (condition) => condition === 'source.scope_lost',
    ).length;
    if (troubles.scope && this.#mayLose) {
      this.#losses += 1;
      this.#mayLose = false;
    }
    if (troubles.listed) this.#mayLose = true;
    const { detail, trouble, denied } = this.#traits;
    // An entity that is denied by its id is reported as denied, too.
    const mayDeny = detail && (trouble > 0 || denied);
    if (reported > this.#losses && !mayDeny)
      this.findings.push('the company was told as lost too often');
    const isDenied = result !== 'killed' && result.outcome === 'denied' && troubles.scope;
    if (!isDenied) this.#denials = 0;
    else if (this.#denials++ === 0) this.#deniedSince = endedAt;
    const isLasting = this.#denials > 1 && endedAt - (this.#deniedSince ?? endedAt) > 6_000;
    if (isLasting && reported === 0) {
      this.findings.push('the company is lost, and nobody was told');
    }
  }
}

// Whether the result of a pair is the required one (model.ts), checked after each commit. In addition, by rules that
// need no model:
//
//   in the end each record that a side has shown is delivered as often as it exists, and none
//   waits unless the brake is on;
//   all records that a side that is up shows in the end are stored, except those that a successor's first walk
//   showed from before the comparison;
//   the brake is on only if too few match, and never because the other side is missing;
//   counts and examples of one-sided records are those of the ledger;
//   without force a pair is moved only if the old API can be read, and to its end.

import type { HeldPage } from '../../../src/contracts/spool.ts';
import type { PairReport } from '../../../src/contracts/succession.ts';
import type { Tell } from '../verdict.ts';
import { type Brake, mayBrake, mustBrake } from './brake.ts';
import type { Entry, Shown } from './ledger.ts';
import { type Marked, marksIn } from './marks.ts';
import { type Delivery, PairModel } from './model.ts';
import type { Change } from './process.ts';
import { flawsOf } from './reported.ts';
import type { ModelApi } from './server.ts';
import type { SideStream } from './sources.ts';
import type { Side, Traits } from './traits.ts';
import { flawsOfVersions } from './versions.ts';

/** What it looks at. */
export interface OracleMeans {
  readonly traits: Traits;
  readonly apis: Readonly<Record<Side, ModelApi>>;
  readonly streams: Readonly<Record<Side, readonly SideStream[]>>;
  readonly now: () => number;
  readonly tell: Tell;
  /** The ledger. */
  readonly records: readonly Entry[];
  /** The report of the pair as an operator gets it. */
  readonly report: () => PairReport | null;
}

/** Watches one world. */
export class Oracle {
  readonly findings: string[] = [];
  readonly model: PairModel;
  readonly #deps: OracleMeans;
  /** By stream: up to when it is known to be read. */
  readonly #notes = new Map<string, number>();
  /** By stream of the new side: when its first walk was over. */
  readonly #walked = new Map<string, number>();
  /** By stream: when it was read first. */
  readonly #asked = new Map<string, number>();
  readonly #stored: Readonly<Record<Side, Map<string, number>>> = {
    old: new Map(),
    new: new Map(),
  };
  readonly #delivered = new Map<string, number>();
  /** When a cutover or rollback began that is under way. */
  turnedFrom = 0;

  constructor(deps: OracleMeans) {
    this.#deps = deps;
    this.model = new PairModel(deps.traits.patienceMs);
  }

  /** Looks at a commit. */
  changed(change: Change, held: readonly HeldPage[], brake: Brake): void {
    const due = this.#due(change, brake);
    const came = held.flatMap((page) =>
      marksIn(page).map(({ mark, side }): Delivery => ({ key: this.#keyOf(mark, side), side })),
    );
    for (const { key } of came) this.#delivered.set(key, (this.#delivered.get(key) ?? 0) + 1);
    if (!this.#deps.traits.versions) this.#compare(change.what, due, came);
    const who = change.what === 'append' ? change.entry.stream : change.what;
    if (change.what !== 'tick' || came.length > 0) this.#deps.tell(said(who, came, this.model));
  }

  #compare(what: string, due: readonly Delivery[], came: readonly Delivery[]): void {
    const left = [...came];
    for (const one of due) {
      const at = left.findIndex(({ key, side }) => key === one.key && side === one.side);
      if (at < 0) this.findings.push(`not delivered by ${what}: ${one.key} of ${one.side}`);
      else left.splice(at, 1);
    }
    for (const { key, side } of left) {
      this.findings.push(`delivered by ${what} and not owed: ${key} of ${side}`);
    }
  }

  #due(change: Change, brake: Brake): readonly Delivery[] {
    const { now } = this.#deps;
    switch (change.what) {
      case 'settle':
        return [];
      case 'append':
        return change.entry.pages.flatMap((page) =>
          marksIn(page).flatMap((one) => {
            const { stream } = page.context;
            const key = this.#keyOf(one.mark, one.side);
            const stored = this.#stored[one.side];
            stored.set(one.mark, (stored.get(one.mark) ?? 0) + 1);
            if (this.#isLateWithoutId(one, stream)) this.model.forgetBefore(key);
            return this.model.show({ ...one, key, stream }, now());
          }),
        );
      case 'tick': {
        for (const [stream, at] of change.notes) {
          this.#notes.set(stream, at);
          if (!this.#walked.has(stream)) this.#walked.set(stream, now());
        }
        this.#lookAtBrake(brake);
        return this.model.release(now(), brake.isOn, this.reached);
      }
      case 'turn':
        return this.#turned(change);
    }
  }

  /** What has no id and was not there at the first request cannot be known from before the pairing. */
  #isLateWithoutId({ mark, id, side }: Marked, stream: string): boolean {
    if (id !== null || side === 'old') return false;
    const since = this.#asked.get(stream) ?? Number.POSITIVE_INFINITY;
    const { shown } = this.#deps.apis.new;
    return shown.some(({ record, shownAt }) => record.mark === mark && shownAt > since);
  }

  /** A stream is read. */
  asked(stream: string): void {
    if (!this.#asked.has(stream)) this.#asked.set(stream, this.#deps.now());
  }

  /** Up to when all streams of each side are read. */
  get reached(): Readonly<Record<Side, number>> {
    const { streams } = this.#deps;
    const of = (side: Side) =>
      Math.min(...streams[side].map(({ stream }) => this.#notes.get(stream.name) ?? 0));
    return { old: of('old'), new: of('new') };
  }

  #lookAtBrake(brake: Brake): void {
    const { model } = this;
    if (model.begunAt === null || model.isRetired || this.#deps.traits.versions) return;
    const how = this.#counted();
    // What differs is decided when its patience is over, and counts in another order then.
    const isExact = !mayDiffer(this.#deps.traits);
    if (brake.isOn) this.#deps.tell(`the brake is on: ${JSON.stringify(how)}`);
    if (isExact && brake.isOn && !mayBrake(model, how))
      this.findings.push('the brake is on without a reason');
    if (isExact && !brake.isOn && mustBrake(model, how))
      this.findings.push('the brake should be on');
  }

  #counted() {
    const { traits, now } = this.#deps;
    const { patienceMs, overlapMs } = traits;
    return { now: now(), reached: this.reached, patienceMs, overlapMs };
  }

  #turned({ job, came }: Extract<Change, { what: 'turn' }>): readonly Delivery[] {
    const { apis, now } = this.#deps;
    const { phase, isForced } = job;
    const isThere = phase === this.model.phase;
    if (came.isDone && isThere) this.findings.push(`moved to ${phase} twice`);
    if (!came.isDone) {
      const isFree = isForced && phase === 'cut_over' && !isThere;
      if (isFree) this.findings.push(`not moved by force: ${came.reasons.join('; ')}`);
      return [];
    }
    if (!isForced || phase === 'shadow') {
      if (!apis.old.isUp(now())) this.findings.push(`moved to ${phase}, and old cannot be read`);
      this.#lookForUnread();
    }
    if (!isForced && phase === 'cut_over' && !this.model.rows.some(({ matchedAt }) => matchedAt)) {
      this.findings.push('cut over without one match');
    }
    return this.model.turn(phase);
  }

  /** What the old side had shown when a move began has to be stored by then. */
  #lookForUnread(): void {
    const { traits } = this.#deps;
    if (traits.old.sorted !== 'arrival' || traits.old.retentionMs !== null) return;
    for (const { record } of this.#rows('old', this.turnedFrom)) {
      if (!this.#stored.old.has(record.mark)) {
        this.findings.push(`moved before the tail of old: ${record.mark}`);
      }
    }
  }

  #rows(side: Side, now: number): readonly Shown[] {
    const { apis, streams } = this.#deps;
    return streams[side].flatMap(({ company }) => apis[side].rows(company, now));
  }

  /** Looks at what an operator gets. */
  lookAtReport(isEnd = false): void {
    const { report, traits, streams } = this.#deps;
    const got = report();
    if (got === null || this.model.isRetired || traits.versions) return;
    // What differs is matched when its patience is over.
    if (!isEnd && mayDiffer(traits)) return;
    const names = [...streams.old, ...streams.new].map(({ stream }) => stream.name);
    const counted = { ...this.#counted(), streams: names, hasIds: traits.ids === 'all' };
    this.findings.push(...flawsOf(got, this.model, counted));
  }

  /** The end, long after anything went wrong. */
  finish(brake: Brake): void {
    this.lookAtReport(true);
    this.#lookForUnstored();
    if (brake.isOn) return;
    const waiting = this.#deps.report()?.waiting ?? 0;
    if (waiting > 0) this.findings.push(`${waiting} records wait in the end`);
    if (this.#deps.traits.versions) {
      this.findings.push(...flawsOfVersions(this.#deps.records, this.#stored, this.#delivered));
      return;
    }
    for (const [key, count] of this.#owed()) {
      const times = this.#delivered.get(key) ?? 0;
      if (times !== count) this.findings.push(`${key}: owed ${count} times, delivered ${times}`);
    }
  }

  /** How often each record has to be delivered in all. */
  #owed(): ReadonlyMap<string, number> {
    const owed = new Map<string, number>();
    for (const side of ['old', 'new'] as const) {
      for (const [mark, count] of this.#stored[side]) {
        const key = this.#keyOf(mark, side);
        owed.set(key, Math.max(count, owed.get(key) ?? 0));
      }
    }
    for (const key of this.model.unknown) owed.delete(key);
    return owed;
  }

  #lookForUnstored(): void {
    const { apis, now } = this.#deps;
    for (const side of ['old', 'new'] as const) {
      if (!apis[side].isUp(now()) || (side === 'old' && this.model.isRetired)) continue;
      const counts = new Map<string, number>();
      for (const row of this.#rows(side, now() - 30 * 60_000)) {
        if (row.goneAt <= now() || this.#isFromBefore(row)) continue;
        const { mark } = row.record;
        counts.set(mark, (counts.get(mark) ?? 0) + 1);
      }
      for (const [mark, count] of counts) {
        const stored = this.#stored[side].get(mark) ?? 0;
        if (stored < count) this.findings.push(`${side} shows ${mark}, which is not stored`);
      }
    }
  }

  /** It was there at the first walk of the new side, and happened before the comparison begins. */
  #isFromBefore({ side, happenedAt, shownAt, record }: Shown): boolean {
    const { streams, traits } = this.#deps;
    if (side === 'old' || this.model.begunAt === null) return false;
    const of = streams.new.find(({ company }) => company === null || company === record.company);
    const walkedAt = this.#walked.get(of?.stream.name ?? '') ?? Number.POSITIVE_INFINITY;
    const since = this.model.begunAt - (traits.ids === 'all' ? traits.overlapMs : 0);
    return shownAt <= walkedAt && happenedAt < since;
  }

  #keyOf(mark: string, side: Side): string {
    return this.#deps.traits.unrelated ? `${mark} (${side})` : mark;
  }
}

/** True where the two forms of a record say different things. */
function mayDiffer({ aheadMs, oldTimes, differs }: Traits): boolean {
  return aheadMs !== 0 || oldTimes === 'epoch_s' || differs === 'reported';
}

function said(who: string, came: readonly Delivery[], model: PairModel): string {
  const delivered = came.map(({ key, side }) => `${key} ${side}`).join(', ');
  return `${who}: delivers [${delivered}]; ${model.waiting.length} wait`;
}

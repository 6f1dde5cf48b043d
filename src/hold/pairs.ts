// Pairs of a source and its successor, in the state database (src/succession/README.md). Both
// sides' records form one set: a record is looked up in the transaction that stores the page that
// shows it, so that no crash falls between. Invariants: a record that both sides show is stored as
// an event once; a record that only one side shows is stored as an event too, at once or when its
// patience is over; a waiting record is stored here with its bytes and counts towards the spool's
// bound.

import {
  type ComparedRecord,
  type NewPage,
  type PairPhase,
  type PairPlan,
  type PairScan,
  uidBytes,
  type WaitingRecord,
} from '../contracts/index.ts';
import type { Statements } from './database.ts';
import { brakeOf, dueUntil, reachedBy } from './pair-brake.ts';
import { brakePage } from './pair-brake-page.ts';
import { countDifferences } from './pair-counts.ts';
import { fieldsOf } from './pair-match.ts';
import { PairMatching } from './pair-matching.ts';
import { pagesOf, pageWith } from './pair-pages.ts';
import { PairRows, type WaitingRow } from './pair-rows.ts';
import {
  addExample,
  deliveringSide,
  freshPair,
  noteMatch,
  otherSide,
  type PairState,
  pairBody,
  pairStateOf,
  streamOf,
} from './pair-state.ts';

/** Maximum waiting records, and about the maximum bytes, released at a time. */
const releasedMax = { max: 8_192, bytesMax: 4 * 1024 * 1024 };
/** Maximum share of the spool for the bytes of left-out records. */
const keptShareMax = 1 / 16;

/** The tables of pairs. */
export class Pairs {
  readonly #statements: Statements;
  readonly rows: PairRows;
  readonly #matching: PairMatching;
  readonly #keptBytesMax: number;
  #states: Map<string, PairState> | null = null;

  /** `bytesMax`: the spool's bound. */
  constructor(statements: Statements, bytesMax: number) {
    this.#statements = statements;
    this.rows = new PairRows(statements);
    this.#matching = new PairMatching(statements, this.rows);
    this.#keptBytesMax = bytesMax * keptShareMax;
  }

  /** Clears the caches: another connection, or a failed transaction, has changed the tables. */
  changed(): void {
    this.#states = null;
    this.#matching.changed();
    this.rows.changed();
  }

  /** Bytes of all waiting records. */
  get bytes(): number {
    return this.rows.bytes;
  }

  /** Every pair that was ever configured. */
  get all(): readonly PairState[] {
    return [...this.#all().values()];
  }

  /** Registers the config's pairs; the records of other pairs are no longer compared. */
  settle(plans: readonly PairPlan[], now: number): readonly string[] {
    const named = new Set(plans.map(({ successor }) => successor));
    for (const state of this.all) {
      if (named.has(state.plan.successor) || state.isRetired) continue;
      state.isRetired = true;
      this.#save(state);
    }
    const folded = new Map(this.all.map(({ plan }) => [plan.successor, plan.rules]));
    for (const plan of plans) this.#begin(plan, now);
    this.#matching.changed();
    return plans.flatMap(({ successor, rules }) => {
      const before = folded.get(successor);
      return before === undefined || before === rules ? [] : [successor];
    });
  }

  #begin(plan: PairPlan, now: number): void {
    const before = this.#all().get(plan.successor);
    if (before !== undefined && !before.isRetired) {
      if (JSON.stringify(before.plan) === JSON.stringify(plan)) return;
      before.plan = plan;
      this.#save(before);
      return;
    }
    const next = this.#statements.row('SELECT coalesce(max(id), 0) + 1 AS n FROM pair');
    const state = freshPair(before?.id ?? Number(next?.n), plan, now);
    // A cutover stays in effect until a rollback.
    if (before?.phase === 'cut_over') {
      Object.assign(state, { phase: before.phase, cutOverAt: before.cutOverAt });
    }
    state.turns = before?.turns ?? 0;
    for (const stream of plan.streams.new) {
      streamOf(state, stream).before = this.#matching.lastBlock(stream);
    }
    this.#save(state);
  }

  /**
   * The part of a page to store: without records that the other side has delivered and without
   * waiting ones; null: nothing.
   */
  judge(page: NewPage, now: number): NewPage | null {
    const { pair: shown, ...rest } = page;
    const state = shown && this.#all().get(shown.pair);
    if (shown === undefined || state === undefined || state.isRetired) return rest;
    const { stream } = page.context;
    const counts = streamOf(state, stream);
    if (shown.side === 'old') counts.before ??= this.#matching.lastBlock(stream);
    const delivered: number[] = [];
    for (const [index, record] of shown.records.entries()) {
      const uid = page.uids.subarray(index * uidBytes, (index + 1) * uidBytes);
      counts.records += 1;
      const fate = this.#matching.take(state, shown.side, { record, uid, page, now });
      if (fate === 'deliver') delivered.push(index);
    }
    this.#save(state);
    if (delivered.length === shown.records.length) return rest;
    return pageWith(rest, delivered);
  }

  /** Counts the result of a collection's first full scan. */
  scan(stream: string, { pair, entities, missing }: PairScan, now: number): void {
    const state = this.#all().get(pair);
    if (state === undefined || state.isRetired) return;
    for (const { id, old, new: late } of entities) {
      noteMatch(state, now);
      const differs = countDifferences(state, fieldsOf(old), fieldsOf(late));
      if (differs) addExample(state.differing, id);
    }
    for (const name of [stream, ...state.plan.streams.old]) {
      streamOf(state, name).matched += entities.length;
    }
    if (missing !== undefined) state.missing[stream] = missing;
    this.#save(state);
  }

  /** Waiting records in order, after an id. */
  waiting(successor: string, after: number, most: number): readonly WaitingRecord[] {
    const state = this.#all().get(successor);
    if (state === undefined) return [];
    return this.rows.waitingAfter(state.id, after, most);
  }

  /** Replaces the comparison data of waiting records; those that match now are dropped. */
  compare(successor: string, records: readonly ComparedRecord[], now: number): void {
    const state = this.#all().get(successor);
    if (state === undefined) return;
    for (const one of records) this.#matching.again(state, one, now);
    this.#save(state);
  }

  /** Stores records as events whose patience is over. Called periodically; cheap if none is due. */
  release(now: number, store: (page: NewPage) => unknown): void {
    for (const state of this.all) {
      const { patienceMs, overlapMs, streams } = state.plan;
      const shownBefore = state.isRetired ? now : now - patienceMs - overlapMs;
      this.rows.settleLeftOut(state.id, shownBefore, this.#keptBytesMax);
      if (!this.rows.isDue(state.id, now - patienceMs, now) && state.brake === null) continue;
      const side = otherSide(deliveringSide(state.phase));
      const until = dueUntil(this.#statements, state, { side, now });
      const reached = reachedBy(this.#statements, streams[otherSide(side)]);
      const due = { from: 0, until, now, ...releasedMax };
      const alone = this.#leaveOut(state, this.rows.waiting(state.id, due), now);
      const before = Math.min(reached, until);
      const brake = state.isRetired ? null : brakeOf(state, this.rows, { side, before, now });
      this.#reportBrake(state, brake, { now, store });
      state.brake = brake;
      if (state.brake === null) this.#deliver(alone, store);
      else {
        // The brake withholds nothing of a side whose other side is unreadable.
        const unread = this.rows.waiting(state.id, { ...due, from: reached });
        this.#deliver(this.#leaveOut(state, unread, now), store);
      }
      this.#save(state);
    }
  }

  /** Stores the event of a brake that engages or releases. */
  #reportBrake(
    state: PairState,
    after: PairState['brake'],
    { now, store }: { readonly now: number; readonly store: (page: NewPage) => unknown },
  ): void {
    const [brake, isHeld] = [after ?? state.brake, after !== null];
    if (brake === null || isHeld === (state.brake !== null)) return;
    const waiting = this.rows.waitingOf(state.id).count;
    store(brakePage(state, { brake, isHeld, waiting, now }));
  }

  /** The records that are not left out. */
  #leaveOut(state: PairState, waiting: readonly WaitingRow[], now: number): readonly WaitingRow[] {
    return waiting.filter((one) => !this.#matching.leaveOut(state, one, now));
  }

  /**
   * Changes the delivering side. Waiting records are those of the side that delivers from now on:
   * they become events. `reportPage` builds the page that reports it.
   */
  turn(
    pair: string,
    phase: PairPhase,
    {
      now,
      store,
      reportPage,
    }: {
      readonly now: number;
      readonly store: (page: NewPage) => unknown;
      readonly reportPage: (state: PairState) => NewPage;
    },
  ): void {
    const state = this.#all().get(pair);
    if (state === undefined || state.phase === phase) return;
    const page = reportPage(state);
    state.phase = phase;
    state.cutOverAt = phase === 'cut_over' ? now : null;
    state.turns += 1;
    state.isProven = false;
    this.#reportBrake(state, null, { now, store });
    state.brake = null;
    for (;;) {
      const all = { from: 0, until: Number.MAX_SAFE_INTEGER, now, ...releasedMax };
      const waiting = this.rows.waiting(state.id, all);
      if (waiting.length === 0) break;
      this.#deliver(this.#leaveOut(state, waiting, now), store);
    }
    this.#save(state);
    store(page);
  }

  #deliver(waiting: readonly WaitingRow[], store: (page: NewPage) => unknown): void {
    for (const { page, rows } of pagesOf(waiting)) {
      store(page);
      for (const { id } of rows) this.rows.settle(id);
    }
  }

  #all(): Map<string, PairState> {
    if (this.#states !== null) return this.#states;
    const rows = this.rows.isThere ? this.#statements.rows('SELECT id, body FROM pair') : [];
    const states = rows.flatMap((row) => pairStateOf(row) ?? []);
    this.#states = new Map(states.map((state) => [state.plan.successor, state]));
    return this.#states;
  }

  #save(state: PairState): void {
    const { successor } = state.plan;
    this.#all().set(successor, state);
    const put = 'INSERT OR REPLACE INTO pair (id, name, body) VALUES (?, ?, ?)';
    this.#statements.run(put, state.id, successor, pairBody(state));
  }
}

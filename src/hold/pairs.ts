// Pairs of a source and its successor, in the state database (src/fetch/succession/README.md). Both
// sides' records form one set: a record is looked up in the transaction that stores the page that
// shows it, so that no kill comes between. What must stay true: a record that both sides show is
// stored as an event once; one that only one side shows is stored as an event, too, at once or when
// its patience is over; a record that waits stands here with its bytes and counts towards the
// spool's bound.

import type { NewPage } from '../contracts/spool.ts';
import { type ComparedAnew, uidBytes } from '../contracts/spool.ts';
import type {
  PairPhase,
  PairPlan,
  PairRecord,
  PairScan,
  PairSide,
  WaitingRecord,
} from '../contracts/succession.ts';
import { KnownBefore } from './known-before.ts';
import { brakeOf, reachedBy } from './pair-brake.ts';
import {
  differenceOf,
  type FoldedFields,
  fieldsOf,
  findMatch,
  isSame,
  type MatchRules,
} from './pair-match.ts';
import { PairRows, type WaitingRow } from './pair-rows.ts';
import {
  addExample,
  aheadMs,
  deliveringSide,
  examplesMax,
  freshPair,
  noteDifference,
  noteMatch,
  otherSide,
  type PairState,
  pairBody,
  pairStateOf,
  streamOf,
} from './pair-state.ts';
import type { Statements } from './statements.ts';

/** What becomes of a record. */
type Fate = 'deliver' | 'drop' | 'wait';

/** Waiting records that leave in one transaction. */
const releasedMax = 512;
/** Paths that a report names. */
const pathsMax = 100;

/** The tables of pairs. */
export class Pairs {
  readonly #statements: Statements;
  readonly rows: PairRows;
  #states: Map<string, PairState> | null = null;
  /** By pair and side, while they are asked for. */
  readonly #known = new Map<string, { readonly until: string; readonly ids: KnownBefore }>();

  constructor(statements: Statements) {
    this.#statements = statements;
    this.rows = new PairRows(statements);
  }

  /** Forgets what is remembered: another connection, or a failed transaction, has changed it. */
  changed(): void {
    this.#states = null;
    this.#known.clear();
    this.rows.changed();
  }

  /** Bytes of all records that wait. */
  get bytes(): number {
    return this.rows.bytes;
  }

  /** Every pair that was ever configured. */
  get all(): readonly PairState[] {
    return [...this.#all().values()];
  }

  /** The pairs of the config from now on; of others nothing is compared any more. */
  settle(plans: readonly PairPlan[], now: number): readonly string[] {
    const named = new Set(plans.map(({ successor }) => successor));
    for (const state of this.all) {
      if (named.has(state.plan.successor) || state.isRetired) continue;
      state.isRetired = true;
      this.#save(state);
    }
    const folded = new Map(this.all.map(({ plan }) => [plan.successor, plan.rules]));
    for (const plan of plans) this.#begin(plan, now);
    this.#known.clear();
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
    // What was cut over stays so, until it is moved back.
    if (before?.phase === 'cut_over') {
      Object.assign(state, { phase: before.phase, cutOverAt: before.cutOverAt });
    }
    state.turns = before?.turns ?? 0;
    for (const stream of plan.streams.new) streamOf(state, stream).before = this.#lastBlock(stream);
    this.#save(state);
  }

  /**
   * What is to be stored of a page: the page without the records that the other side has delivered
   * and those that wait; null: nothing of it.
   */
  judge(page: NewPage, now: number): NewPage | null {
    const { pair: shown, ...rest } = page;
    const state = shown && this.#all().get(shown.pair);
    if (shown === undefined || state === undefined || state.isRetired) return rest;
    const { stream } = page.context;
    const counts = streamOf(state, stream);
    if (shown.side === 'old') counts.before ??= this.#lastBlock(stream);
    const delivered: number[] = [];
    for (const [index, record] of shown.records.entries()) {
      const uid = page.uids.subarray(index * uidBytes, (index + 1) * uidBytes);
      counts.records += 1;
      const fate = this.#take(state, shown.side, { record, uid, page, now });
      if (fate === 'deliver') delivered.push(index);
    }
    this.#save(state);
    if (delivered.length === shown.records.length) return rest;
    return delivered.length === 0 ? answerOf(rest) : without(rest, delivered);
  }

  /** Counts what the first full scan of a collection showed. */
  scan(stream: string, { pair, entities, missing }: PairScan, now: number): void {
    const state = this.#all().get(pair);
    if (state === undefined || state.isRetired) return;
    for (const { id, old, new: late } of entities) {
      noteMatch(state, now);
      if (compare(state, fieldsOf(old), fieldsOf(late))) addExample(state.differing, id);
    }
    for (const name of [stream, ...state.plan.streams.old]) {
      streamOf(state, name).matched += entities.length;
    }
    if (missing !== undefined) state.missing[stream] = missing;
    this.#save(state);
  }

  /** Records that wait, in order, after one. */
  waiting(successor: string, after: number, most: number): readonly WaitingRecord[] {
    const state = this.#all().get(successor);
    if (state === undefined) return [];
    return this.rows.waitingAfter(state.id, after, most);
  }

  /** Takes what is compared of waiting records from now on; those that match then are dropped. */
  compare(successor: string, records: readonly ComparedAnew[], now: number): void {
    const state = this.#all().get(successor);
    if (state === undefined) return;
    for (const { id, record } of records) {
      const own = this.rows.withId(id);
      if (own === undefined || own.state !== 1) continue;
      this.rows.fold(id, record);
      const side = own.old === null ? 'new' : 'old';
      const other = otherSide(side);
      const all = this.rows.withKey(state.id, record.key).filter((row) => row.id !== id);
      const open = all.filter((row) => row[side] === null && row[other] !== null);
      const { same } = findMatch(record, side, { rows: open, rules: rulesOf(state, now) });
      const uid = own[side] as Uint8Array;
      const stream = String(own.stream);
      if (same !== null && same.state === 0) {
        this.#matched(state, side, {
          row: same,
          fields: record.fields,
          stream,
          id: record.id,
          now,
        });
        this.rows.remove(id);
        this.rows.match(Number(same.id), side, uid);
      } else if (same === null && this.#isKnown(state, other, { record, all })) {
        noteMatch(state, now);
        state.known += 1;
        streamOf(state, stream).matched += 1;
        this.rows.remove(id);
        this.rows.add(state.id, { record, side, uid, now, stream: null, isKnown: true });
      }
    }
    this.#save(state);
  }

  #take(state: PairState, side: PairSide, shown: Shown): Fate {
    const { record, uid, now } = shown;
    const delivers = side === deliveringSide(state.phase);
    if (record.as === 'summary') return delivers ? 'deliver' : 'drop';
    const all = this.rows.withKey(state.id, record.key);
    const own = all.find((row) => isUid(row[side], uid));
    // It was forgotten here and read again.
    if (own !== undefined) return delivers && own.state === 0 ? 'deliver' : 'drop';
    const other = otherSide(side);
    const open = all.filter((row) => row[side] === null && row[other] !== null);
    const rules = rulesOf(state, now);
    const { same, others, isApart } = findMatch(record, side, { rows: open, rules });
    const difference =
      open.length === 1 ? differenceOf({ record, happened: open[0]?.happened, side }) : null;
    if (difference !== null && record.id !== null) noteDifference(state, difference);
    const { stream } = shown.page.context;
    if (same !== null) {
      this.#matched(state, side, { row: same, fields: record.fields, stream, id: record.id, now });
      this.rows.match(Number(same.id), side, uid);
      // Who waits is not delivered: this side's form is.
      return same.state === 1 ? 'deliver' : 'drop';
    }
    if (isApart) addExample(state.apart, record.id ?? '');
    if (this.#isKnown(state, other, { record, all })) {
      this.rows.add(state.id, { record, side, uid, now, stream: null, isKnown: true });
      noteMatch(state, now);
      state.known += 1;
      streamOf(state, stream).matched += 1;
      return 'drop';
    }
    const id = this.rows.add(state.id, { record, side, uid, now, stream, isKnown: false });
    // Another version of it may be delivered already, or be the same with a value that differs: that is
    // decided when nothing equal has turned up.
    const mayBeDelivered = others.some((row) => row.state === 0);
    if (delivers && !mayBeDelivered) return 'deliver';
    this.rows.wait(id, { pair: state.id, page: shown.page, record, uid, now });
    return 'wait';
  }

  /** True where the other side had delivered it before the pairing, and nothing has matched that. */
  #isKnown(
    state: PairState,
    other: PairSide,
    { record, all }: { readonly record: PairRecord; readonly all: readonly Row[] },
  ): boolean {
    if (record.before.length === 0) return false;
    const used = all.filter((row) => isNothing(row[other])).length;
    return this.#knownBefore(state, other).count(record.before) > used;
  }

  #knownBefore(state: PairState, side: PairSide): KnownBefore {
    const key = `${side} ${state.id}`;
    // What is stored of the old side grows until its first page of the pair.
    const streams = state.plan.streams[side].map((stream) => ({
      stream,
      until: streamOf(state, stream).before ?? this.#lastBlock(stream),
    }));
    const until = JSON.stringify(streams);
    const known = this.#known.get(key);
    if (known?.until === until) return known.ids;
    const ids = new KnownBefore(this.#statements, streams);
    this.#known.set(key, { until, ids });
    return ids;
  }

  #matched(
    state: PairState,
    side: PairSide,
    {
      row,
      fields,
      stream,
      id,
      now,
    }: {
      readonly row: Row;
      readonly fields: unknown;
      readonly stream: string;
      readonly id: string | null;
      readonly now: number;
    },
  ): void {
    noteMatch(state, now);
    streamOf(state, stream).matched += 1;
    if (typeof row.stream === 'string') streamOf(state, row.stream).matched += 1;
    const [here, there] = [fieldsOf(fields), fieldsOf(row.fields)];
    const [old, late] = side === 'old' ? [here, there] : [there, here];
    if (compare(state, old, late)) addExample(state.differing, id ?? '');
  }

  /** Stores records as events whose patience is over. Called now and then, and cheap then. */
  release(now: number, store: (page: NewPage) => unknown): void {
    for (const state of this.all) {
      const until = now - state.plan.patienceMs;
      const isDue = this.rows.isDue(state.id, until, now);
      if (!isDue && state.brake === null) continue;
      const side = otherSide(deliveringSide(state.phase));
      const reached = reachedBy(this.#statements, state.plan.streams[otherSide(side)]);
      const due = { from: 0, until, now, max: releasedMax };
      const alone = this.#unmatched(state, this.rows.waiting(state.id, due), now);
      const before = Math.min(reached, until);
      const brake = state.isRetired ? null : brakeOf(state, this.rows, { side, before, now });
      if (JSON.stringify(brake) !== JSON.stringify(state.brake)) state.brake = brake;
      this.#save(state);
      if (brake === null) this.#deliver(alone, store);
      // Of a side whose other side cannot be read, and of the other side, the brake holds nothing.
      else this.#deliver(this.rows.waiting(state.id, { ...due, from: reached }), store);
    }
  }

  /** Of records whose patience is over, those that are no version of one that is delivered. */
  #unmatched(state: PairState, waiting: readonly WaitingRow[], now: number): readonly WaitingRow[] {
    return waiting.filter(({ id, uid, context }) => {
      const own = hasVersions({ context }) ? this.rows.withId(id) : undefined;
      if (own === undefined || !(own.key instanceof Uint8Array)) return true;
      const side = own.old === null ? 'new' : 'old';
      const [other] = this.#others(state, own, side, now).filter((row) => row.state === 0);
      if (other === undefined) return true;
      const [stream, shown] = [String(own.stream), own.shown as string | null];
      this.#matched(state, side, { row: other, fields: own.fields, stream, id: shown, now });
      this.rows.remove(id);
      this.rows.match(Number(other.id), side, uid);
      return false;
    });
  }

  /** Rows of the other side that a waiting record may be another version of. */
  #others(state: PairState, own: Row, side: PairSide, now: number): readonly Row[] {
    const other = otherSide(side);
    const all = this.rows.withKey(state.id, own.key as Uint8Array);
    const rows = all.filter((row) => row[side] === null && row[other] !== null);
    const record = {
      id: own.shown as string | null,
      company: own.company as string | null,
      happenedAt: own.happened as number | null,
      fields: String(own.fields),
    };
    return findMatch(record, side, { rows, rules: rulesOf(state, now) }).others;
  }

  /**
   * Changes who delivers. Records that wait are those of the side that delivers from now on: they
   * become events. `reportPage` makes the page that reports it, from what is known then.
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
    state.brake = null;
    this.#save(state);
    const all = { from: 0, until: Number.MAX_SAFE_INTEGER, now, max: Number.MAX_SAFE_INTEGER };
    const side = deliveringSide(phase);
    const waiting = this.rows.waiting(state.id, all).filter(({ id, context }) => {
      const own = hasVersions({ context }) ? this.rows.withId(id) : undefined;
      // What may be another version of an event is decided when its patience is over.
      return (
        own === undefined || !this.#others(state, own, side, now).some((row) => row.state === 0)
      );
    });
    this.#deliver(waiting, store);
    store(page);
  }

  #deliver(waiting: readonly WaitingRow[], store: (page: NewPage) => unknown): void {
    // Neighbours that a page has shown become one page again.
    for (let at = 0; at < waiting.length; ) {
      const context = waiting[at]?.context;
      const group = waiting.slice(at);
      const end = group.findIndex((row) => row.context !== context);
      const rows = end < 0 ? group : group.slice(0, end);
      store(pageOf(rows));
      for (const { id } of rows) this.rows.settle(id);
      at += rows.length;
    }
  }

  #lastBlock(stream: string): number {
    const last = `SELECT coalesce(max(block), 0) AS n FROM identities
      WHERE stream = ?1 OR (stream >= ?1 || ':' AND stream < ?1 || ';')`;
    return Number(this.#statements.row(last, stream)?.n);
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

type Row = Record<string, unknown>;

function rulesOf(state: PairState, now: number): MatchRules {
  const { needsContent, patienceMs } = state.plan;
  return { needsContent, aheadMs: aheadMs(state), pastBefore: now - patienceMs };
}

/** True for a record of upstream's, which may come in versions; a change of a collection is one by itself. */
function hasVersions({ context }: Pick<WaitingRow, 'context'>): boolean {
  const { kind } = JSON.parse(context) as NewPage['context'];
  return kind === 'audit' || kind === 'log';
}

interface Shown {
  readonly record: PairRecord;
  readonly uid: Uint8Array;
  readonly page: NewPage;
  readonly now: number;
}

/** Counts what differs; true where something does. */
function compare(state: PairState, old: FoldedFields, now: FoldedFields): boolean {
  let differs = false;
  for (const [path, value] of Object.entries(old)) {
    const there = now[path];
    if (there === undefined) countPath(state.onlyOldFields, path);
    else if (!isSame(value, there)) {
      differs = true;
      countDifference(state, path, [value.slice(0, 1), there.slice(0, 1)]);
    }
  }
  for (const path of Object.keys(now)) {
    if (old[path] === undefined) countPath(state.onlyNewFields, path);
  }
  return differs;
}

function countPath(counts: Record<string, number>, path: string): void {
  const isRoom = Object.hasOwn(counts, path) || Object.keys(counts).length < pathsMax;
  if (isRoom) counts[path] = (Object.hasOwn(counts, path) ? (counts[path] ?? 0) : 0) + 1;
}

function countDifference({ fields }: PairState, path: string, types: [string, string]): void {
  const known = Object.hasOwn(fields, path) ? fields[path] : undefined;
  if (known === undefined && Object.keys(fields).length >= pathsMax) return;
  const field = known ?? { count: 0, types: [] };
  field.count += 1;
  const isNew = field.types.every(([a, b]) => a !== types[0] || b !== types[1]);
  if (isNew && field.types.length < examplesMax) field.types.push(types);
  fields[path] = field;
}

function isUid(held: unknown, uid: Uint8Array): boolean {
  if (!(held instanceof Uint8Array) || held.length === 0) return false;
  return Buffer.compare(held, uid.subarray(0, held.length)) === 0;
}

/** The mark of a record that was known before: nothing is stored of who it was. */
function isNothing(held: unknown): boolean {
  return held instanceof Uint8Array && held.length === 0;
}

/** The page with some of its kept records. */
function without(page: NewPage, delivered: readonly number[]): NewPage {
  const kept = Uint32Array.from(delivered, (at) => page.kept?.[at] ?? at);
  const uids = new Uint8Array(delivered.length * uidBytes);
  for (const [to, at] of delivered.entries()) {
    uids.set(page.uids.subarray(at * uidBytes, (at + 1) * uidBytes), to * uidBytes);
  }
  return { ...page, kept, uids };
}

/** A page of which no record is an event: as an answer for sinks that prove what was answered. */
function answerOf(page: NewPage): NewPage | null {
  const { answer } = page.context;
  if (answer === undefined) return null;
  const context = { ...page.context, kind: 'answer' as const };
  return { ...page, context, items: '', kept: null, uids: new Uint8Array(uidBytes), onlySink: '' };
}

/** Records that have waited, with their own bytes and the uids that they had from the beginning. */
function pageOf(rows: readonly WaitingRow[]): NewPage {
  const records = rows.flatMap(({ record }, at) => (at === 0 ? [record] : [comma, record]));
  return {
    context: JSON.parse(rows[0]?.context ?? '{}') as NewPage['context'],
    body: new Uint8Array(Buffer.concat([open, ...records, close])),
    ...{ items: '', kept: null },
    uids: new Uint8Array(Buffer.concat(rows.map(({ uid }) => uid))),
  };
}

const [open, comma, close] = [Buffer.from('['), Buffer.from(','), Buffer.from(']')];

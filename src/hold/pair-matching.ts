// Decides which record of a pair is delivered, in the transaction that stores the page that shows
// it. Invariants: of two matching records exactly one becomes an event. A record with the id of an
// event of the other side, but other content, is left out only in favour of that one event, and its
// bytes are kept for as long as an equal record may appear for either of them (README.md of
// src/succession, Versions).

import type { ComparedRecord, NewPage, PairRecord, PairSide } from '../contracts/index.ts';
import type { Row, Statements } from './database.ts';
import { KnownBefore } from './known-before.ts';
import { countMatch, type Match, uncountMatch } from './pair-counts.ts';
import { findCandidates, isOtherCompany, type MatchRules } from './pair-match.ts';
import { hasVersions } from './pair-pages.ts';
import type { PairRows, WaitingRow } from './pair-rows.ts';
import {
  addExample,
  aheadMs,
  deliveringSide,
  noteDifference,
  noteMatch,
  otherSide,
  type PairState,
  streamOf,
} from './pair-state.ts';
import { parsedObject } from './requests.ts';

/** The decision about a record. */
export type RecordFate = 'deliver' | 'drop' | 'wait';

/** A record of a page. */
export interface Shown {
  readonly record: PairRecord;
  readonly uid: Uint8Array;
  readonly page: NewPage;
  readonly now: number;
}

/** The records that a side had delivered before the pairing. */
interface Known {
  readonly streams: PairState['plan']['streams'];
  /** The streams and the last blocks of identities that count. */
  readonly until: string;
  /** These blocks do not change any more. */
  readonly isWhole: boolean;
  readonly ids: KnownBefore;
}

/** Matches the records of pairs. */
export class PairMatching {
  readonly #statements: Statements;
  readonly #rows: PairRows;
  /** By pair and side, built on first use. */
  readonly #known = new Map<string, Known>();

  constructor(statements: Statements, rows: PairRows) {
    this.#statements = statements;
    this.#rows = rows;
  }

  /** Clears the caches. */
  changed(): void {
    this.#known.clear();
  }

  /** Stores a record's key and decides what happens to the record. */
  take(state: PairState, side: PairSide, shown: Shown): RecordFate {
    const { record, uid, now } = shown;
    const delivers = side === deliveringSide(state.phase);
    if (record.as === 'summary') return delivers ? 'deliver' : 'drop';
    const all = this.#rows.withKey(state.id, record.key);
    const own = all.find((row) => isUid(row[side], uid));
    // This side forgot it and read it again.
    if (own !== undefined) return delivers && own.state === 0 ? 'deliver' : 'drop';
    const open = openRows(all, side);
    const { same, others, isApart, difference } = findCandidates(record, side, {
      rows: open,
      rules: rulesOf(state, now),
    });
    if (difference !== null) noteDifference(state, difference);
    const { stream } = shown.page.context;
    if (same !== null) {
      this.#free(state, same, all);
      countMatch(state, matchOf(side, { record, stream }, same), now);
      this.#rows.match(same, side, uid);
      // A waiting or left-out record is not an event: this side's form is delivered.
      return same.state === 0 ? 'drop' : 'deliver';
    }
    if (isApart) addExample(state.apart, record.id ?? '');
    if (this.#isKnown(state, otherSide(side), { record, all })) {
      this.#rows.add(state.id, { record, side, uid, now, stream: null, isKnown: true });
      noteMatch(state, now);
      state.known += 1;
      streamOf(state, stream).matched += 1;
      return 'drop';
    }
    const id = this.#rows.add(state.id, { record, side, uid, now, stream, isKnown: false });
    // It may be an event of the other side with a different value, or another of its versions: that
    // is decided if no equal record appears until patience is over.
    const mayBeDelivered = others.some((row) => row.state === 0);
    if (delivers && !mayBeDelivered) return 'deliver';
    this.#rows.wait(id, { pair: state.id, page: shown.page, record, uid, now });
    return 'wait';
  }

  /** Compares a waiting record again, with its new comparison data. */
  again(state: PairState, { id, record }: ComparedRecord, now: number): void {
    const own = this.#rows.withId(id);
    if (own === undefined || own.state !== 1) return;
    this.#rows.fold(id, record);
    const side = own.old === null ? 'new' : 'old';
    const all = this.#rows.withKey(state.id, record.key).filter((row) => row.id !== id);
    const { same } = findCandidates(record, side, {
      rows: openRows(all, side),
      rules: rulesOf(state, now),
    });
    const uid = own[side] as Uint8Array;
    const stream = String(own.stream);
    if (same === null) {
      if (!this.#isKnown(state, otherSide(side), { record, all })) return;
      noteMatch(state, now);
      state.known += 1;
      streamOf(state, stream).matched += 1;
      this.#rows.remove(id);
      this.#rows.add(state.id, { record, side, uid, now, stream: null, isKnown: true });
    } else if (same.state === 0) {
      this.#free(state, same, all);
      countMatch(state, matchOf(side, { record, stream }, same), now);
      this.#rows.remove(id);
      this.#rows.match(same, side, uid);
    }
  }

  /**
   * Leaves out a waiting record if the other side has delivered one that it may be, and that is not
   * matched to another record yet. True if so.
   */
  leaveOut(state: PairState, waiting: WaitingRow, now: number): boolean {
    const [own, event] = this.#standIn(state, waiting, now);
    if (own === undefined || event === undefined) return false;
    countMatch(state, matchOfRows(own, event), now);
    this.#rows.leaveOut(Number(own.id), Number(event.id));
    return true;
  }

  /** A waiting record's row, and the row of an event that may stand for it. */
  #standIn(
    state: PairState,
    waiting: WaitingRow,
    now: number,
  ): readonly [Row | undefined, Row | undefined] {
    const own = hasVersions(waiting) ? this.#rows.withId(waiting.id) : undefined;
    if (own === undefined || !(own.key instanceof Uint8Array)) return [undefined, undefined];
    const side = own.old === null ? 'new' : 'old';
    const rows = openRows(this.#rows.withKey(state.id, own.key), side);
    const record = {
      id: own.shown as string | null,
      company: own.company as string | null,
      happenedAt: own.happened as number | null,
      fields: String(own.fields),
    };
    const { others } = findCandidates(record, side, { rows, rules: rulesOf(state, now) });
    return [own, others.find((row) => row.state === 0)];
  }

  /** A record turns out not to be its counterpart, which becomes open again. */
  #free(state: PairState, row: Row, all: readonly Row[]): void {
    const counterpart = all.find(({ id }) => id === row.counterpart);
    if (isFree(row)) return;
    this.#rows.part(row, counterpart);
    if (counterpart !== undefined) uncountMatch(state, matchOfRows(row, counterpart));
  }

  /**
   * True if the other side had delivered it before the pairing, and no record has matched that yet.
   */
  #isKnown(
    state: PairState,
    other: PairSide,
    { record, all }: { readonly record: PairRecord; readonly all: readonly Row[] },
  ): boolean {
    if (record.object !== undefined && all.length === 0) return this.#isReported(record.object);
    if (record.before.length === 0) return false;
    const before = all.filter((row) => isNothing(row[other]) && !isOtherCompany(row, record));
    return this.#knownBefore(state, other, record.company).count(record.before) > before.length;
  }

  /** True for an object that the other side last reported with this content. */
  #isReported({ streams, parent, digest }: NonNullable<PairRecord['object']>): boolean {
    const known = 'SELECT state FROM parent WHERE stream = ? AND id = ?';
    return streams.some((stream) => {
      const state = parsedObject(this.#statements.row(known, stream, parent)?.state);
      return state?.digest === digest;
    });
  }

  /** The delivered records of a company's streams, and of streams whose records name no company. */
  #knownBefore(state: PairState, side: PairSide, company: string | null): KnownBefore {
    const { streams: all, companies = {} } = state.plan;
    const isOfCompanies = all[side].some((stream) => companies[stream] !== undefined);
    const whose = isOfCompanies ? company : null;
    const key = `${side} ${state.id} ${whose ?? ''}`;
    const known = this.#known.get(key);
    if (known?.isWhole && known.streams === all) return known.ids;
    const of = all[side].filter(
      (stream) => whose === null || (companies[stream] ?? whose) === whose,
    );
    // The old side's stored identities grow until its first page of the pair.
    const untils = of.map((stream) => streamOf(state, stream).before);
    const streams = of.map((stream, at) => ({
      stream,
      until: untils[at] ?? this.lastBlock(stream),
    }));
    const until = JSON.stringify(streams);
    const isWhole = untils.every((one) => one !== null);
    const ids = known?.until === until ? known.ids : new KnownBefore(this.#statements, streams);
    this.#known.set(key, { until, isWhole, streams: state.plan.streams, ids });
    return ids;
  }

  /** The last block of a stream's stored identities; 0: none. */
  lastBlock(stream: string): number {
    const last = `SELECT coalesce(max(block), 0) AS n FROM identities
      WHERE stream = ?1 OR (stream >= ?1 || ':' AND stream < ?1 || ';')`;
    return Number(this.#statements.row(last, stream)?.n);
  }
}

/** Rows of the other side without an equal match. */
function openRows(all: readonly Row[], side: PairSide): readonly Row[] {
  const other = otherSide(side);
  return all.filter((row) => row[side] === null && row[other] !== null);
}

function isFree({ counterpart }: Row): boolean {
  return typeof counterpart !== 'number';
}

function matchOf(
  side: PairSide,
  { record, stream }: { readonly record: PairRecord; readonly stream: string },
  row: Row,
): Match {
  const [here, there] = [record.fields, row.fields];
  const [old, late] = side === 'old' ? [here, there] : [there, here];
  return { old, new: late, streams: [stream, row.stream], id: record.id };
}

function matchOfRows(one: Row, other: Row): Match {
  const [old, late] = one.old === null ? [other, one] : [one, other];
  return {
    ...{ old: old.fields, new: late.fields, streams: [old.stream, late.stream] },
    id: typeof one.shown === 'string' ? one.shown : null,
  };
}

function rulesOf(state: PairState, now: number): MatchRules {
  const { needsContent, patienceMs } = state.plan;
  return { needsContent, aheadMs: () => aheadMs(state), pastBefore: now - patienceMs };
}

function isUid(held: unknown, uid: Uint8Array): boolean {
  if (!(held instanceof Uint8Array) || held.length === 0) return false;
  return Buffer.compare(held, uid.subarray(0, held.length)) === 0;
}

/** Marks a record known from before the pairing: its own data is not stored. */
function isNothing(held: unknown): boolean {
  return held instanceof Uint8Array && held.length === 0;
}

// The rows of a pair's records: who was shown on which side, and the bytes of those that wait. A
// record that both sides have shown keeps its row, so that it is known on both sides for as long as
// identities are.

import type { NewPage } from '../contracts/spool.ts';
import type { PairRecord, PairSide, WaitingRecord } from '../contracts/succession.ts';
import type { Row, Statements } from './statements.ts';

/** A record that waits. */
export interface WaitingRow {
  readonly id: number;
  /** PageContext as JSON. */
  readonly context: string;
  readonly uid: Uint8Array;
  readonly record: Uint8Array;
}

/** Bytes of a uid that are kept of each record. */
const uidBytesKept = 8;
/** Counted for each waiting record in addition to its own bytes. */
const rowBytes = 512;
/** Records of a pair that are remembered, as of a stream; the oldest go a good number at a time. */
const rowsMax = 1_000_000;
const rowsSlack = 100_000;
const nothing = new Uint8Array(0);

/** The tables `pair_record` and `pair_waiting`. */
export class PairRows {
  readonly #statements: Statements;
  #bytes: number | null = null;
  #isThere: boolean | null = null;
  readonly #counts = new Map<number, number>();

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /** False in a database of an older version that is only looked at. */
  get isThere(): boolean {
    const table = "SELECT 1 AS n FROM sqlite_master WHERE name = 'pair_record'";
    this.#isThere ??= this.#statements.row(table) !== undefined;
    return this.#isThere;
  }

  /** What was counted is counted again. */
  changed(): void {
    this.#bytes = null;
    this.#counts.clear();
  }

  /** Bytes that all waiting records count. */
  get bytes(): number {
    if (this.#bytes !== null) return this.#bytes;
    const sum = `SELECT count(*) * ${rowBytes} + coalesce(sum(length(record)), 0) AS n FROM pair_waiting`;
    this.#bytes = this.isThere ? Number(this.#statements.row(sum)?.n) : 0;
    return this.#bytes;
  }

  /** The records of a pair with this key, in the order in which they were shown first. */
  withKey(pair: number, key: Uint8Array): readonly Row[] {
    const found = 'SELECT * FROM pair_record WHERE pair = ? AND key = ? ORDER BY id';
    return this.#statements.rows(found, pair, key);
  }

  withId(id: number): Row | undefined {
    return this.#statements.row('SELECT * FROM pair_record WHERE id = ?', id);
  }

  /** Forgets a record that turned out to be one of another row. */
  remove(id: number): void {
    this.#statements.run('DELETE FROM pair_record WHERE id = ?', id);
    this.#unwait(id);
  }

  /** Adds a record that a side has shown; `isKnown`: the other side had delivered it before. */
  add(
    pair: number,
    {
      record,
      side,
      uid,
      now,
      stream,
      isKnown,
    }: {
      readonly record: PairRecord;
      readonly side: PairSide;
      readonly uid: Uint8Array;
      readonly now: number;
      readonly stream: string | null;
      readonly isKnown: boolean;
    },
  ): number {
    const own = uid.slice(0, uidBytesKept);
    const other = isKnown ? nothing : null;
    const [old, late] = side === 'old' ? [own, other] : [other, own];
    const { key, id, happenedAt, company, fields } = record;
    const facts = isKnown ? [null, null, null, null] : [happenedAt, id, company, fields];
    const added = this.#statements.run(
      `INSERT INTO pair_record (pair, key, old, new, at, stream, happened, shown, company, fields, state)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`,
      ...[pair, key, old, late, now, stream],
      ...facts,
    );
    this.#bound(pair);
    return Number(added.lastInsertRowid);
  }

  /** The other side has shown a record, too: what was kept to compare it goes. */
  match(id: number, side: PairSide, uid: Uint8Array): void {
    this.#statements.run(
      `UPDATE pair_record SET ${side} = ?, stream = NULL, happened = NULL, shown = NULL, company = NULL,
         fields = NULL, state = 0 WHERE id = ?`,
      uid.slice(0, uidBytesKept),
      id,
    );
    this.#unwait(id);
  }

  /** Has a record wait, with its bytes. */
  wait(
    id: number,
    {
      pair,
      page,
      record,
      uid,
      now,
    }: {
      readonly pair: number;
      readonly page: NewPage;
      readonly record: PairRecord;
      readonly uid: Uint8Array;
      readonly now: number;
    },
  ): void {
    const { answer: _, ...context } = page.context;
    const bytes = page.body.subarray(record.start, record.end);
    this.#statements.run('UPDATE pair_record SET state = 1 WHERE id = ?', id);
    this.#statements.run(
      'INSERT INTO pair_waiting (id, pair, at, context, uid, record) VALUES (?, ?, ?, ?, ?, ?)',
      ...[id, pair, now, JSON.stringify(context), uid, bytes],
    );
    if (this.#bytes !== null) this.#bytes += rowBytes + bytes.length;
  }

  /** A waiting record has become an event. */
  settle(id: number): void {
    this.#statements.run('UPDATE pair_record SET state = 0 WHERE id = ?', id);
    this.#unwait(id);
  }

  #unwait(id: number): void {
    const gone = this.#statements.run('DELETE FROM pair_waiting WHERE id = ?', id);
    if (Number(gone.changes) > 0) this.#bytes = null;
  }

  /** True where a record waits since before a time; one from a time to come counts as such. */
  isDue(pair: number, until: number, now: number): boolean {
    if (!this.isThere) return false;
    const due = 'SELECT 1 AS n FROM pair_waiting WHERE pair = ? AND (at <= ? OR at > ?) LIMIT 1';
    return this.#statements.row(due, pair, until, now) !== undefined;
  }

  /** Records that wait since from a time on and up to another, oldest first. */
  waiting(
    pair: number,
    {
      from,
      until,
      now,
      max,
    }: {
      readonly from: number;
      readonly until: number;
      readonly now: number;
      readonly max: number;
    },
  ): readonly WaitingRow[] {
    const rows = this.#statements.rows(
      `SELECT id, context, uid, record FROM pair_waiting
       WHERE pair = ? AND at >= ? AND (at <= ? OR at > ?) ORDER BY id LIMIT ?`,
      ...[pair, from, until, now, max],
    );
    return rows.map(({ id, context, uid, record }) => ({
      id: Number(id),
      context: String(context),
      uid: uid instanceof Uint8Array ? uid : nothing,
      record: record instanceof Uint8Array ? record : nothing,
    }));
  }

  /** Records of a pair that wait, in order, after one. */
  waitingAfter(pair: number, after: number, most: number): readonly WaitingRecord[] {
    const rows = this.#statements.rows(
      `SELECT w.id, w.context, w.uid, w.record, r.old FROM pair_waiting w
         JOIN pair_record r ON r.id = w.id
       WHERE w.pair = ? AND w.id > ? ORDER BY w.id LIMIT ?`,
      ...[pair, after, most],
    );
    return rows.map(({ id, context, uid, record, old }) => ({
      ...{ id: Number(id), side: old === null ? 'new' : 'old', context: String(context) },
      uid: uid instanceof Uint8Array ? uid : nothing,
      record: record instanceof Uint8Array ? record : nothing,
    }));
  }

  /** What is compared of a record from now on. */
  fold(id: number, { key, company, id: shown, happenedAt, fields }: PairRecord): void {
    this.#statements.run(
      'UPDATE pair_record SET key = ?, happened = ?, shown = ?, company = ?, fields = ? WHERE id = ?',
      ...[key, happenedAt, shown, company, fields, id],
    );
  }

  /** How many wait, and their bytes. */
  waitingOf(pair: number): { readonly count: number; readonly bytes: number } {
    const row = this.#statements.row(
      'SELECT count(*) AS n, coalesce(sum(length(record)), 0) AS bytes FROM pair_waiting WHERE pair = ?',
      pair,
    );
    return { count: Number(row?.n), bytes: Number(row?.bytes) };
  }

  /**
   * Records that only one side has shown, from a time on and before another; ids of the first. A
   * record that happened before `since` is not compared.
   */
  alone(
    pair: number,
    side: PairSide,
    { from, before, since }: Readonly<Record<'from' | 'before' | 'since', number>>,
  ): { readonly count: number; readonly latest: number | null; readonly examples: string[] } {
    const other = side === 'old' ? 'new' : 'old';
    const chosen = `FROM pair_record WHERE pair = ? AND (old IS NULL OR new IS NULL)
       AND at >= ? AND at < ? AND ${other} IS NULL AND (happened IS NULL OR happened >= ?)`;
    const row = this.#statements.row(
      `SELECT count(*) AS n, max(at) AS latest ${chosen}`,
      ...[pair, from, before, since],
    );
    const shown = `SELECT shown ${chosen} AND shown IS NOT NULL ORDER BY at LIMIT 3`;
    const examples = this.#statements.rows(shown, pair, from, before, since);
    return {
      count: Number(row?.n),
      latest: typeof row?.latest === 'number' ? row.latest : null,
      examples: examples.map((one) => String(one.shown)),
    };
  }

  /** Of the first records that a side has shown and that can be compared: how many match. */
  first(
    pair: number,
    side: PairSide,
    { before, max, since }: Readonly<Record<'before' | 'max' | 'since', number>>,
  ): { readonly compared: number; readonly matched: number } {
    const other = side === 'old' ? 'new' : 'old';
    const row = this.#statements.row(
      `SELECT count(*) AS n, coalesce(sum(there), 0) AS matched FROM (
         SELECT ${other} IS NOT NULL AS there FROM pair_record
         WHERE pair = ? AND ${side} IS NOT NULL AND (${other} IS NOT NULL OR at < ?)
           AND (happened IS NULL OR happened >= ?)
         ORDER BY id LIMIT ?)`,
      ...[pair, before, since, max],
    );
    return { compared: Number(row?.n), matched: Number(row?.matched) };
  }

  #bound(pair: number): void {
    const all = 'SELECT count(*) AS n FROM pair_record WHERE pair = ?';
    const known = this.#counts.get(pair);
    const count = known === undefined ? Number(this.#statements.row(all, pair)?.n) : known + 1;
    this.#counts.set(pair, count);
    if (count <= rowsMax + rowsSlack) return;
    this.#statements.run(
      `DELETE FROM pair_record WHERE id IN (
         SELECT id FROM pair_record WHERE pair = ? AND state = 0 ORDER BY id LIMIT ?)`,
      ...[pair, rowsSlack],
    );
    this.#counts.delete(pair);
  }
}

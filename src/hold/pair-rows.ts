// The rows of a pair's records: the records that each side has shown, and the bytes of those that
// wait. A record that both sides have shown keeps its row, so that it is recognised on both sides
// for as long as identities are kept.

import type { NewPage, PairPlan, PairRecord, PairSide, WaitingRecord } from '../contracts/index.ts';
import type { Row, Statements } from './database.ts';
import type { PairState } from './pair-state.ts';

/** A waiting record. */
export interface WaitingRow {
  readonly id: number;
  /** PageContext as JSON. */
  readonly context: string;
  readonly uid: Uint8Array;
  readonly record: Uint8Array;
}

/** Stored bytes of each record's uid. */
const uidBytesKept = 8;
/** Counted for each waiting record in addition to its own bytes. */
const rowBytes = 512;
/** Maximum records per pair, as per stream; the oldest are deleted in large steps. */
const rowsMax = 1_000_000;
const rowsSlack = 100_000;
/** Left-out records whose bytes are deleted per transaction. */
const settledMax = 512;
const nothing = new Uint8Array(0);

/**
 * SQL: a record of the other side waits that may be the same with another value; decided when its
 * patience is over. If content must be equal, they are two records.
 */
function isOpen(side: PairSide, { needsContent }: PairPlan): string {
  const isOfCompany = needsContent
    ? 'o.company IS pair_record.company'
    : 'coalesce(o.company = pair_record.company, 1)';
  return `shown IS NOT NULL AND EXISTS (SELECT 1 FROM pair_record AS o
    WHERE o.pair = pair_record.pair AND o.key = pair_record.key AND o.${side} IS NULL AND o.state = 1
      AND ${isOfCompany})`;
}

/** The tables `pair_record` and `pair_waiting`. */
export class PairRows {
  readonly #statements: Statements;
  #bytes: number | null = null;
  #keptBytes: number | null = null;
  #isThere: boolean | null = null;
  readonly #counts = new Map<number, number>();

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /** False in a database of an older version that is opened read-only. */
  get isThere(): boolean {
    const table = "SELECT 1 AS n FROM pragma_table_info('pair_record') WHERE name = 'counterpart'";
    this.#isThere ??= this.#statements.row(table) !== undefined;
    return this.#isThere;
  }

  /** Discards the counts; the next use counts again. */
  changed(): void {
    this.#bytes = null;
    this.#keptBytes = null;
    this.#counts.clear();
  }

  /** Bytes of all waiting records, including left-out ones. */
  get bytes(): number {
    this.#bytes ??= this.#sum('');
    return this.#bytes;
  }

  /** Bytes of left-out records. */
  get keptBytes(): number {
    this.#keptBytes ??= this.#sum('WHERE kept = 1');
    return this.#keptBytes;
  }

  #sum(which: string): number {
    if (!this.isThere) return 0;
    const sum = `SELECT count(*) * ${rowBytes} + coalesce(sum(length(record)), 0) AS n
      FROM pair_waiting ${which}`;
    return Number(this.#statements.row(sum)?.n);
  }

  /** The records of a pair with this key, in the order in which they were first shown. */
  withKey(pair: number, key: Uint8Array): readonly Row[] {
    const found = `SELECT id, old, new, at, state, stream, happened, shown, company, fields, counterpart
      FROM pair_record WHERE pair = ? AND key = ? ORDER BY id`;
    return this.#statements.rows(found, pair, key);
  }

  withId(id: number): Row | undefined {
    return this.#statements.row('SELECT * FROM pair_record WHERE id = ?', id);
  }

  /** Deletes a record that turned out to be the same as another row's. */
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
    const facts = isKnown ? [null, null, company, null] : [happenedAt, id, company, fields];
    const added = this.#statements.run(
      `INSERT INTO pair_record (pair, key, old, new, at, stream, happened, shown, company, fields, state)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`,
      ...[pair, key, old, late, now, stream],
      ...facts,
    );
    this.#bound(pair);
    return Number(added.lastInsertRowid);
  }

  /** The other side has shown the record too: its comparison data is deleted. */
  match({ id, state }: Row, side: PairSide, uid: Uint8Array): void {
    this.#statements.run(
      `UPDATE pair_record SET ${side} = ?, stream = NULL, happened = NULL, shown = NULL, company = NULL,
         fields = NULL, state = 0, counterpart = NULL WHERE id = ?`,
      uid.slice(0, uidBytesKept),
      Number(id),
    );
    if (state !== 0) this.#unwait(Number(id));
  }

  /** A waiting record is left out, because an event of the other side stands for it. */
  leaveOut(id: number, event: number): void {
    this.#statements.run(
      'UPDATE pair_record SET state = 2, counterpart = ? WHERE id = ?',
      event,
      id,
    );
    this.#statements.run('UPDATE pair_record SET counterpart = ? WHERE id = ?', id, event);
    this.#keep(id, 1);
  }

  /**
   * Undoes that: the two are no longer matched, and the one that is no event waits again as before.
   */
  part(...rows: readonly (Row | undefined)[]): void {
    for (const row of rows) {
      if (row === undefined) continue;
      const id = Number(row.id);
      const waits = 'UPDATE pair_record SET state = min(state, 1), counterpart = NULL WHERE id = ?';
      this.#statements.run(waits, id);
      if (row.state === 2) this.#keep(id, 0);
    }
  }

  #keep(id: number, kept: 0 | 1): void {
    const keep = 'UPDATE pair_waiting SET kept = ? WHERE id = ? RETURNING length(record) AS n';
    const changed = this.#statements.row(keep, kept, id);
    const bytes = changed === undefined ? 0 : rowBytes + Number(changed.n);
    if (this.#keptBytes !== null) this.#keptBytes += kept === 1 ? bytes : -bytes;
  }

  /**
   * Deletes the bytes of left-out records, oldest first: those shown before a time, and those
   * beyond the byte bound. Their stand-in is then final.
   */
  settleLeftOut(pair: number, until: number, bytesMax: number): void {
    if (this.keptBytes === 0) return;
    const oldest = `SELECT w.id, w.at, r.old, r.new, r.counterpart FROM pair_waiting w
      JOIN pair_record r ON r.id = w.id WHERE w.pair = ? AND w.kept = 1 ORDER BY w.id LIMIT ?`;
    for (const { id, at, old, new: late, counterpart } of this.#statements.rows(
      oldest,
      pair,
      settledMax,
    )) {
      if (Number(at) > until && this.keptBytes <= bytesMax) return;
      const [side, uid] = old === null ? (['new', late] as const) : (['old', old] as const);
      this.remove(Number(id));
      if (uid instanceof Uint8Array && typeof counterpart === 'number') {
        this.match({ id: counterpart, state: 0 }, side, uid);
      }
    }
  }

  /** Stores a waiting record with its bytes. */
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
    const remove = 'DELETE FROM pair_waiting WHERE id = ? RETURNING kept, length(record) AS n';
    const gone = this.#statements.row(remove, id);
    if (gone === undefined) return;
    const bytes = rowBytes + Number(gone.n);
    if (this.#bytes !== null) this.#bytes -= bytes;
    if (this.#keptBytes !== null && gone.kept === 1) this.#keptBytes -= bytes;
  }

  /**
   * True if a record has waited since before a time; a time in the future counts too (clock set
   * back).
   */
  isDue(pair: number, until: number, now: number): boolean {
    if (!this.isThere) return false;
    const due = `SELECT 1 AS n FROM pair_waiting
      WHERE pair = ? AND kept = 0 AND (at <= ? OR at > ?) LIMIT 1`;
    return this.#statements.row(due, pair, until, now) !== undefined;
  }

  /**
   * Records waiting since a time range, or since a future time; oldest first, and about `bytesMax`.
   */
  waiting(
    pair: number,
    {
      from,
      until,
      now,
      max,
      bytesMax = Number.POSITIVE_INFINITY,
    }: {
      readonly from: number;
      readonly until: number;
      readonly now: number;
      readonly max: number;
      readonly bytesMax?: number;
    },
  ): readonly WaitingRow[] {
    const due = `SELECT id, context, uid, record FROM pair_waiting
      WHERE pair = ? AND kept = 0 AND at >= ? AND at <= ? ORDER BY at, id LIMIT ?`;
    const found: WaitingRow[] = [];
    let bytes = 0;
    const spans = [
      [from, until],
      [Math.max(now, until) + 1, Number.MAX_SAFE_INTEGER],
    ] as const;
    for (const [first, last] of spans) {
      for (const row of this.#statements.each(due, pair, first, last, max - found.length)) {
        if (bytes >= bytesMax) return found;
        const { id, context, uid, record } = row;
        found.push({
          ...{ id: Number(id), context: String(context) },
          uid: uid instanceof Uint8Array ? uid : nothing,
          record: record instanceof Uint8Array ? record : nothing,
        });
        bytes += found.at(-1)?.record.length ?? 0;
      }
    }
    return found;
  }

  /** Waiting records of a pair in order, after an id. */
  waitingAfter(pair: number, after: number, most: number): readonly WaitingRecord[] {
    const rows = this.#statements.rows(
      `SELECT w.id, w.context, w.uid, w.record, r.old FROM pair_waiting w
         JOIN pair_record r ON r.id = w.id
       WHERE w.pair = ? AND w.kept = 0 AND w.id > ? ORDER BY w.id LIMIT ?`,
      ...[pair, after, most],
    );
    return rows.map(({ id, context, uid, record, old }) => ({
      ...{ id: Number(id), side: old === null ? 'new' : 'old', context: String(context) },
      uid: uid instanceof Uint8Array ? uid : nothing,
      record: record instanceof Uint8Array ? record : nothing,
    }));
  }

  /** Replaces a record's comparison data. */
  fold(id: number, { key, company, id: shown, happenedAt, fields }: PairRecord): void {
    this.#statements.run(
      'UPDATE pair_record SET key = ?, happened = ?, shown = ?, company = ?, fields = ? WHERE id = ?',
      ...[key, happenedAt, shown, company, fields, id],
    );
  }

  /** Number and bytes of waiting records. */
  waitingOf(pair: number): { readonly count: number; readonly bytes: number } {
    const row = this.#statements.row(
      `SELECT count(*) AS n, coalesce(sum(length(record)), 0) AS bytes FROM pair_waiting
       WHERE pair = ? AND kept = 0`,
      pair,
    );
    return { count: Number(row?.n), bytes: Number(row?.bytes) };
  }

  /**
   * Records that only one side has shown, in a time range; with the first ids. A record that
   * happened before `since` is not compared.
   */
  alone(
    { id: pair, plan }: Pick<PairState, 'id' | 'plan'>,
    side: PairSide,
    { from, before, since }: Readonly<Record<'from' | 'before' | 'since', number>>,
  ): { readonly count: number; readonly latest: number | null; readonly examples: string[] } {
    const other = side === 'old' ? 'new' : 'old';
    const chosen = `FROM pair_record WHERE pair = ? AND (old IS NULL OR new IS NULL)
       AND at >= ? AND at < ? AND ${other} IS NULL AND counterpart IS NULL
       AND (happened IS NULL OR happened >= ?) AND NOT (${isOpen(side, plan)})`;
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

  /** Of the first comparable records of a side: how many match. */
  first(
    { id: pair, plan }: Pick<PairState, 'id' | 'plan'>,
    side: PairSide,
    { before, max, since }: Readonly<Record<'before' | 'max' | 'since', number>>,
  ): { readonly compared: number; readonly matched: number } {
    const other = side === 'old' ? 'new' : 'old';
    const row = this.#statements.row(
      `SELECT count(*) AS n, coalesce(sum(there), 0) AS matched FROM (
         SELECT ${other} IS NOT NULL OR counterpart IS NOT NULL AS there FROM pair_record
         WHERE pair = ? AND ${side} IS NOT NULL AND (there OR (at < ? AND NOT (${isOpen(side, plan)})))
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

// The parents whose lists or objects a stream reads (parents), in the state database: one row
// each, with its rank in the request order, its state, and its list's checkpoint. There may be very
// many, so only a count reads all of them. Invariants: a parent noticed while it is being requested
// is requested once more; beyond the bound, only parents that give nothing any more are deleted.

import {
  identityBytes,
  type Json,
  neverDue,
  type ParentChange,
  type ParentCounts,
  type ParentRow,
} from '../contracts/index.ts';
import type { Row, Statements } from './database.ts';
import { parsedObject } from './requests.ts';
import { parsedOrText } from './streams.ts';

/** Maximum stored parents per stream. */
const parentsMax = 200_000;
/** Noticed parents are due before all others, in the order in which they were noticed. */
const noticedBeforeMs = 2 ** 45;
/** Parents that are lost or final: this many are requested with each batch. */
const lostAtOnce = 4;

/** The table of parents. */
export class Parents {
  readonly #statements: Statements;
  /** Counted parents per stream. */
  readonly #counts = new Map<string, number>();

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /** A failed transaction may have added counted parents. */
  goBack(): void {
    this.#counts.clear();
  }

  change(change: ParentChange, now: number): void {
    const { stream, id } = change;
    if (change.as === 'asked') {
      this.#statements.run(
        `UPDATE parent SET state = ?3, rank = iif(due = ?4, ?5, rank), due = iif(due = ?4, ?6, due)
         WHERE stream = ?1 AND id = ?2`,
        ...[stream, id, JSON.stringify(change.state), change.was, change.rank, change.due],
      );
      return;
    }
    const isNoticed = change.as === 'noticed';
    const [rank, due] = isNoticed ? [0, now - noticedBeforeMs] : [1, 0];
    const known = 'SELECT 1 FROM parent WHERE stream = ? AND id = ?';
    if (this.#statements.row(known, stream, id) !== undefined) {
      const ask = 'UPDATE parent SET rank = ?, due = ? WHERE stream = ? AND id = ?';
      if (isNoticed) this.#statements.run(ask, rank, due, stream, id);
    } else if (this.#hasRoom(stream)) {
      const add = 'INSERT INTO parent (stream, id, rank, due) VALUES (?, ?, ?, ?)';
      this.#statements.run(add, stream, id, rank, due);
      this.#counts.set(stream, this.#count(stream) + 1);
    }
  }

  /** Stores a list's checkpoint in its parent's row; `list` is the stream name of its records. */
  saveCheckpoint({ stream, id, list, checkpoint }: ParentCheckpoint): void {
    this.#statements.run(
      'UPDATE parent SET list = ?, checkpoint = ? WHERE stream = ? AND id = ?',
      ...[list, checkpoint, stream, id],
    );
  }

  /** The checkpoint of the list with this name. */
  checkpoint(list: string): Json | null {
    const held = this.#statements.row('SELECT checkpoint FROM parent WHERE list = ?', list);
    return typeof held?.checkpoint === 'string' ? parsedOrText(held.checkpoint) : null;
  }

  /** Parents due by a time, in request order; each rank has a share. */
  due(stream: string, until: number, max: number, latest: number = neverDue): readonly ParentRow[] {
    const ofRank = (rank: number, which: 'due <=' | 'due >', [time, most]: readonly number[]) =>
      this.#statements.rows(
        `SELECT id, rank, due, state FROM parent WHERE stream = ? AND rank = ? AND ${which} ?
         ORDER BY due LIMIT ?`,
        ...[stream, rank, time ?? 0, most ?? 0],
      );
    const share = Math.ceil(max / 2);
    const rows = [0, 1].flatMap((rank) => [
      ...ofRank(rank, 'due <=', [until, share]),
      ...ofRank(rank, 'due >', [latest, share]),
    ]);
    return [...rows, ...ofRank(2, 'due <=', [until, lostAtOnce])].map(parentRow);
  }

  /** Of the parents due last, and of the ended ones seen last, those with the latest request. */
  answered(stream: string, until: number, max: number): readonly ParentRow[] {
    const ofRank = (rank: number, after: number) =>
      this.#statements.rows(
        `SELECT id, rank, due, state FROM parent
         WHERE stream = ? AND rank = ? AND due > ?
         AND state ->> 'askedAt' > 0 AND state ->> 'refused' IS NULL
         ORDER BY due DESC, rowid DESC LIMIT ?`,
        ...[stream, rank, after, max],
      );
    const rows = [...ofRank(0, until), ...ofRank(1, until), ...ofRank(2, neverDue - 1)];
    const askedAt = ({ state }: ParentRow) => Number(state?.askedAt);
    return rows
      .map(parentRow)
      .toSorted((a, b) => askedAt(b) - askedAt(a))
      .slice(0, max);
  }

  counts(stream: string, until: number): ParentCounts {
    const row = this.#statements.row(
      `SELECT count(*) AS parents, coalesce(sum(rank = 0), 0) AS active,
       coalesce(sum(rank = 2 AND due < ?3), 0) AS lost,
       coalesce(sum(rank = 2 AND due = ?3), 0) AS ended, coalesce(sum(due <= ?2), 0) AS due
       FROM parent WHERE stream = ?1`,
      ...[stream, until, neverDue],
    );
    const count = (name: string) => Number(row?.[name] ?? 0);
    return {
      ...{ parents: count('parents'), active: count('active'), lost: count('lost') },
      ...{ ended: count('ended'), due: count('due'), isFull: count('parents') >= parentsMax },
    };
  }

  /**
   * Makes all parents due again, with their lists from the start; identities of read records stay
   * known.
   */
  reset(stream: string): void {
    const makeDue = 'UPDATE parent SET checkpoint = NULL, rank = 1, due = 0 WHERE stream = ?';
    this.#statements.run(makeDue, stream);
    const trails = 'DELETE FROM trail WHERE stream IN (SELECT list FROM parent WHERE stream = ?)';
    this.#statements.run(trails, stream);
  }

  /**
   * Deletes the identities of records read at or after a time; returns the number of records and
   * objects.
   */
  forgetSince(stream: string, at: number): number {
    const those = 'at >= ? AND stream IN (SELECT list FROM parent WHERE stream = ?)';
    const sum = `SELECT coalesce(sum(length(keys)), 0) AS bytes FROM identities WHERE ${those}`;
    const bytes = Number(this.#statements.row(sum, at, stream)?.bytes ?? 0);
    this.#statements.run(`DELETE FROM identities WHERE ${those}`, at, stream);
    // A state reported again keeps its version number, and so its uid.
    const { changes } = this.#statements.run(
      `UPDATE parent SET state = json_set(state, '$.digest', '', '$.version', state ->> 'version' - 1)
       WHERE stream = ? AND state ->> 'version' > 0 AND state ->> 'changedAt' >= ?`,
      ...[stream, at],
    );
    return bytes / identityBytes + Number(changes);
  }

  #hasRoom(stream: string): boolean {
    const count = this.#count(stream);
    if (count < parentsMax) return true;
    const longest =
      'SELECT id, list FROM parent WHERE stream = ? AND rank = 2 ORDER BY due LIMIT 1';
    const gone = this.#statements.row(longest, stream);
    if (gone === undefined) return false;
    for (const table of ['identities', 'trail']) {
      this.#statements.run(`DELETE FROM ${table} WHERE stream = ?`, String(gone.list));
    }
    this.#statements.run('DELETE FROM parent WHERE stream = ? AND id = ?', stream, String(gone.id));
    this.#counts.set(stream, count - 1);
    return true;
  }

  #count(stream: string): number {
    const known = this.#counts.get(stream);
    if (known !== undefined) return known;
    const row = this.#statements.row('SELECT count(*) AS n FROM parent WHERE stream = ?', stream);
    const count = Number(row?.n ?? 0);
    this.#counts.set(stream, count);
    return count;
  }
}

/** The checkpoint of a parent's list. */
interface ParentCheckpoint {
  readonly stream: string;
  readonly id: string;
  readonly list: string;
  /** JSON. */
  readonly checkpoint: string;
}

function parentRow({ id, rank, due, state }: Row): ParentRow {
  return { id: String(id), rank: rankOf(rank), due: Number(due), state: parsedObject(state) };
}

function rankOf(rank: unknown): ParentRow['rank'] {
  return rank === 0 || rank === 1 ? rank : 2;
}

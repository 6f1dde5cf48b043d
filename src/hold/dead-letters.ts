// The dead letters in the state database: events that a sink rejected permanently, kept until an
// operator decides.

import type { DeadLetter, Offset, PageContext } from '../contracts/index.ts';
import type { Row, Statements } from './database.ts';

/** A stored dead letter without its record. */
export interface HeldDeadLetter {
  readonly id: number;
  readonly sink: string;
  readonly uid: string;
  readonly offset: Offset;
  readonly reason: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly context: PageContext;
}

const facts = 'SELECT id, sink, uid, offset, reason, at, context FROM dead_letter';

/** The table of dead letters. */
export class DeadLetters {
  readonly #statements: Statements;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  add(sink: string, deadLetter: DeadLetter, now: number): void {
    this.#statements.run(
      'INSERT INTO dead_letter (sink, uid, offset, reason, at, context, record) VALUES (?, ?, ?, ?, ?, ?, ?)',
      sink,
      deadLetter.uid,
      deadLetter.offset,
      deadLetter.reason,
      now,
      JSON.stringify(deadLetter.context),
      deadLetter.record,
    );
  }

  /** All dead letters, or those of one sink, oldest first. */
  list(sink: string | null): readonly HeldDeadLetter[] {
    const chosen = `${facts} WHERE coalesce(?, sink) = sink ORDER BY id`;
    return this.#statements.rows(chosen, sink).map(heldDeadLetter);
  }

  /** The newest of one sink, newest first. */
  newest(sink: string, countMax: number): readonly HeldDeadLetter[] {
    const newest = `${facts} WHERE sink = ? ORDER BY id DESC LIMIT ?`;
    return this.#statements.rows(newest, sink, countMax).map(heldDeadLetter);
  }

  /** Number of dead letters per sink. */
  counts(): ReadonlyMap<string, number> {
    const rows = this.#statements.rows('SELECT sink, count(*) AS n FROM dead_letter GROUP BY sink');
    return new Map(rows.map(({ sink, n }) => [String(sink), Number(n)]));
  }

  /** The rejected record; null if the dead letter no longer exists. */
  record(id: number): Uint8Array | null {
    const record = this.#statements.row('SELECT record FROM dead_letter WHERE id = ?', id)?.record;
    return record instanceof Uint8Array ? record : null;
  }

  remove(id: number): void {
    this.#statements.run('DELETE FROM dead_letter WHERE id = ?', id);
  }
}

function heldDeadLetter(row: Row): HeldDeadLetter {
  return {
    id: Number(row.id),
    sink: String(row.sink),
    uid: String(row.uid),
    offset: Number(row.offset),
    reason: String(row.reason),
    at: Number(row.at),
    // Written by sluice as a PageContext in the transaction that created the dead letter.
    context: JSON.parse(String(row.context)) as PageContext,
  };
}

// The events that a sink has settled although its position is before them, because it waits for
// others of their batch: dead letters, events set aside, and dead letters that an operator has put
// back or dropped meanwhile, which have no row any more and are noted. A sender reads them at its
// start. Invariant: an event is named by its offset and its uid, since another state gives other offsets.

import { isObject, type Offset, type SettledEvent } from '../contracts/index.ts';
import type { Statements } from './database.ts';
import { writeNote } from './notes.ts';
import { parsedObject } from './requests.ts';

/** The kind of the note; its name is the sink's. */
export const settledKind = 'settled';

/** The events of a note. */
export function settledIn(facts: unknown): readonly SettledEvent[] {
  const events = isObject(facts) && Array.isArray(facts.events) ? facts.events : [];
  return events.flatMap((one) => {
    if (!isObject(one)) return [];
    const { offset, uid } = one;
    return typeof offset === 'number' && typeof uid === 'string' ? [{ offset, uid }] : [];
  });
}

/** The settled events of all sinks. */
export class SettledEvents {
  readonly #statements: Statements;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /** Those of a sink from an offset on. */
  from(sink: string, offset: Offset): readonly SettledEvent[] {
    const rows = this.#statements.rows(
      `SELECT offset, uid FROM dead_letter WHERE sink = ?1 AND offset >= ?2
       UNION SELECT offset, uid FROM set_aside WHERE sink = ?1 AND offset >= ?2`,
      sink,
      offset,
    );
    const held = rows.map((row) => ({ offset: Number(row.offset), uid: String(row.uid) }));
    return [...held, ...this.#noted(sink).filter((one) => one.offset >= offset)];
  }

  /** Notes a dead letter that is removed, if the sink's position, `from`, is before its event. */
  note(sink: string, { offset, uid }: SettledEvent, from: Offset, now: number): void {
    if (offset < from) return;
    const events = this.#noted(sink).filter((one) => one.offset >= from);
    const facts = JSON.stringify({ events: [...events, { offset, uid }] });
    writeNote(this.#statements, { kind: settledKind, name: sink, facts, now });
  }

  #noted(sink: string): readonly SettledEvent[] {
    const find = 'SELECT facts FROM note WHERE kind = ? AND name = ?';
    return settledIn(parsedObject(this.#statements.row(find, settledKind, sink)?.facts));
  }
}

// The table of notes: facts as JSON by kind and name, used only for display and reports.

import type { JsonObject } from '../contracts/index.ts';
import { parsedObject } from './requests.ts';
import type { Statements } from './statements.ts';

/**
 * Replaces a note; `facts` is JSON. Equal facts change no row, since a changed row is a transaction where the database is
 * the cache of a log.
 */
export function writeNote(
  statements: Statements,
  note: {
    readonly kind: string;
    readonly name: string;
    readonly facts: string;
    readonly now: number;
  },
): void {
  const { kind, name, facts, now } = note;
  const write = `INSERT INTO note (kind, name, facts, at) VALUES (?, ?, ?, ?)
    ON CONFLICT (kind, name) DO UPDATE SET facts = excluded.facts, at = excluded.at
    WHERE facts <> excluded.facts`;
  statements.run(write, kind, name, facts, now);
}

/** All notes of a kind, by name. */
export function notesOf(statements: Statements, kind: string): ReadonlyMap<string, JsonObject> {
  const rows = statements.rows('SELECT name, facts FROM note WHERE kind = ?', kind);
  return new Map(rows.map(({ name, facts }) => [String(name), parsedObject(facts) ?? {}]));
}

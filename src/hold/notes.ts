// The table of notes: facts as JSON by kind and name, used only for display and reports.

import type { JsonObject } from '../contracts/json.ts';
import { parsedObject } from './requests.ts';
import type { Statements } from './statements.ts';

/** Replaces a note; `facts` is JSON. */
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
  const write = 'INSERT OR REPLACE INTO note (kind, name, facts, at) VALUES (?, ?, ?, ?)';
  statements.run(write, kind, name, facts, now);
}

/** All notes of a kind, by name. */
export function notesOf(statements: Statements, kind: string): ReadonlyMap<string, JsonObject> {
  const rows = statements.rows('SELECT name, facts FROM note WHERE kind = ?', kind);
  return new Map(rows.map(({ name, facts }) => [String(name), parsedObject(facts) ?? {}]));
}

// The table of notes: facts as JSON by kind and name, used for display, reports and ceilings. A poll without new records changes only
// times and counts: these are no reason for a transaction where the database is the cache of a log.

import type { JsonObject } from '../contracts/index.ts';
import type { Statements } from './database.ts';
import { delayLast } from './outbox.ts';
import { parsedObject } from './requests.ts';

/** By kind, the facts that each poll changes. */
const refreshed: Readonly<Record<string, readonly string[]>> = {
  stream: ['caught_up_at', 'next_poll_at', 'polls'],
  reached: ['at'],
  throttle: ['at', 'gates'],
};

/**
 * True if a note has news for another process, compared with the one before (null: there is none): more than later times and
 * higher counts of polls.
 */
export function isNews(kind: string, before: string | null, facts: string): boolean {
  const keys = refreshed[kind] ?? [];
  const lasting = (text: string) =>
    JSON.stringify(JSON.parse(text), (key, value) => (keys.includes(key) ? value !== null : value));
  return before === null || lasting(before) !== lasting(facts);
}

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
  const find = 'SELECT facts FROM note WHERE kind = ? AND name = ?';
  const before = statements.row(find, kind, name)?.facts;
  const write = `INSERT INTO note (kind, name, facts, at) VALUES (?, ?, ?, ?)
    ON CONFLICT (kind, name) DO UPDATE SET facts = excluded.facts, at = excluded.at
    WHERE facts <> excluded.facts`;
  const { changes } = statements.run(write, kind, name, facts, now);
  if (changes === 0) return;
  if (!isNews(kind, typeof before === 'string' ? before : null, facts)) delayLast(statements);
}

/** All notes of a kind, by name. */
export function notesOf(statements: Statements, kind: string): ReadonlyMap<string, JsonObject> {
  const rows = statements.rows('SELECT name, facts FROM note WHERE kind = ?', kind);
  return new Map(rows.map(({ name, facts }) => [String(name), parsedObject(facts) ?? {}]));
}

// Requests of an operator to the process that runs in a state directory, as rows of its database: a
// command writes a row, the process executes it and writes the answer, the command reads the answer
// and deletes the row. If no process runs, the row waits for the next one. The process deletes an
// answer that no command reads. A backfill's row is kept longer (backfills.ts).

import { ExportError, isObject, type Json, type JsonObject } from '../contracts/index.ts';
import type { Row, Statements } from './database.ts';

/**
 * The requested operation. `retry`: poll a waiting or halted stream, or try a sink, now. `rewind`:
 * read a stream again from its position at `to` (epoch milliseconds); `forget`: and deliver again
 * what was read since. `give_up`: make dead letters of a sink's suspects, all or those with these
 * uids. `reset`: read a stream from its start; `forget`: and deliver everything again. `letters`:
 * put dead letters back for their sinks, or delete them, each named by id and uid. `remove_sink`:
 * give up the events retained for a sink that no running config has. `backfill`: read a source's
 * events from `from` (inclusive) to `to` (exclusive); not `isBounded`: no end was given, and `to`
 * is the time of the request. `begin_backfill` and `about_backfill`: requests of commands on other
 * machines about a backfill (backfills.ts). `cut_over`: make the other side of a pair deliver; the
 * pair is named by its successor.
 */
export type OperatorRequest =
  | { readonly what: 'retry' }
  | { readonly what: 'rewind'; readonly to: number; readonly forget: boolean }
  | { readonly what: 'reset'; readonly forget: boolean }
  | {
      readonly what: 'begin_backfill';
      readonly from: number;
      readonly to: number | null;
      readonly isAnew: boolean;
    }
  | {
      readonly what: 'about_backfill';
      readonly key: string;
      readonly does: 'look' | 'stop' | 'cancel';
    }
  | { readonly what: 'give_up'; readonly uids: readonly string[] | null }
  | {
      readonly what: 'letters';
      readonly does: 'retry' | 'drop';
      readonly letters: readonly (readonly [number, string])[];
    }
  | { readonly what: 'remove_sink' }
  | {
      readonly what: 'cut_over';
      readonly phase: 'shadow' | 'cut_over';
      readonly isForced: boolean;
    }
  | {
      readonly what: 'backfill';
      readonly key: string;
      readonly from: number;
      readonly to: number;
      readonly isBounded: boolean;
    };

/** A row. */
export interface Request {
  readonly id: number;
  /** The stream, sink or source concerned. */
  readonly name: string;
  readonly wish: OperatorRequest;
  /** Id of the command on another machine that this row executes; null: a local request. */
  readonly command: string | null;
  /** Time of the last request, epoch milliseconds. */
  readonly at: number;
  /** Null: not executed yet. */
  readonly answer: JsonObject | null;
  readonly progress: JsonObject | null;
}

/** The table of requests. */
export class RequestTable {
  readonly #statements: Statements;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /** Stores a request; returns its id. */
  ask(name: string, wish: OperatorRequest, at: number, command?: string): number {
    const asked = this.#statements.run(
      'INSERT INTO request (name, wish, at) VALUES (?, ?, ?)',
      name,
      JSON.stringify({ ...wish, command }),
      at,
    );
    return Number(asked.lastInsertRowid);
  }

  /** Clears a request's answer, so that it is executed again. */
  askAgain(id: number, at: number): void {
    this.#statements.run('UPDATE request SET at = ?, answer = NULL WHERE id = ?', at, id);
  }

  /**
   * All requests, oldest first; none in a database of an older version, which is only read. Rows that no such version has
   * written are ignored.
   */
  all(): readonly Request[] {
    const table = "SELECT 1 AS n FROM sqlite_master WHERE name = 'request'";
    if (this.#statements.row(table) === undefined) return [];
    return this.#statements.rows('SELECT * FROM request ORDER BY id').flatMap(requestOf);
  }

  /** Whether a request waits: its command has not withdrawn it, and nothing has answered it. */
  isOpen(id: number): boolean {
    const open = 'SELECT 1 AS n FROM request WHERE id = ? AND answer IS NULL';
    return this.#statements.row(open, id) !== undefined;
  }

  /** Writes the answer to a request. */
  answer(id: number, answer: Json): void {
    this.#statements.run('UPDATE request SET answer = ? WHERE id = ?', JSON.stringify(answer), id);
  }

  /** Stores the progress. */
  note(id: number, progress: Json): void {
    const text = JSON.stringify(progress);
    this.#statements.run('UPDATE request SET progress = ? WHERE id = ?', text, id);
  }

  /** Deletes a request. */
  withdraw(id: number): void {
    this.#statements.run('DELETE FROM request WHERE id = ?', id);
  }
}

/** Why it is unknown which suspects were moved: their change has no answer with it, and the process that began has ended. */
export function endedFirst(name: string, holder?: string): ExportError {
  const to = holder === undefined ? '' : ` to ${holder}`;
  return new ExportError(
    'state_locked',
    `request${to} about ${name}: the process ended before it answered`,
    {
      next: 'Some suspects may be dead letters by now: `sluice dead-letters list` shows them. Repeat the command for the others when a process runs again.',
    },
  );
}

function requestOf({ id, name, wish: written, at, answer, progress }: Row): readonly Request[] {
  const parsed = parsedObject(written);
  const wish = operatorRequestOf(parsed);
  const command = typeof parsed?.command === 'string' ? parsed.command : null;
  const row = { id: Number(id), name: String(name), at: Number(at), command };
  const said = { answer: parsedObject(answer), progress: parsedObject(progress) };
  return wish === null ? [] : [{ ...row, wish, ...said }];
}

/** Parses a stored request; null: no such version has written it. */
export function operatorRequestOf(written: JsonObject | null): OperatorRequest | null {
  const { what, key, from, to, forget, isBounded, does, letters } = written ?? {};
  if (what === 'retry' || what === 'remove_sink') return { what };
  if (what === 'cut_over') return cutOverOf(written ?? {});
  if (what === 'give_up') return giveUpOf(written ?? {});
  if (what === 'reset') return typeof forget === 'boolean' ? { what, forget } : null;
  if (what === 'begin_backfill') return beginOf(written ?? {});
  if (what === 'about_backfill') {
    const isKnown = does === 'look' || does === 'stop' || does === 'cancel';
    return isKnown && typeof key === 'string' ? { what, key, does } : null;
  }
  if (what === 'letters') {
    const isWhole = (does === 'retry' || does === 'drop') && areNamed(letters);
    return isWhole ? { what, does, letters } : null;
  }
  if (typeof to !== 'number') return null;
  if (what === 'rewind' && typeof forget === 'boolean') return { what, to, forget };
  const isSpan = typeof key === 'string' && typeof from === 'number';
  if (what !== 'backfill' || !isSpan || typeof isBounded !== 'boolean') return null;
  return { what, key, from, to, isBounded };
}

function cutOverOf({ phase, isForced }: JsonObject): OperatorRequest | null {
  if (phase !== 'shadow' && phase !== 'cut_over') return null;
  return typeof isForced === 'boolean' ? { what: 'cut_over', phase, isForced } : null;
}

function giveUpOf({ uids = null }: JsonObject): OperatorRequest | null {
  if (uids === null) return { what: 'give_up', uids };
  const isText = (one: Json): one is string => typeof one === 'string';
  return Array.isArray(uids) && uids.every(isText) ? { what: 'give_up', uids } : null;
}

function beginOf({ from, to, isAnew }: JsonObject): OperatorRequest | null {
  if (typeof from !== 'number' || typeof isAnew !== 'boolean') return null;
  if (to !== null && typeof to !== 'number') return null;
  return { what: 'begin_backfill', from, to, isAnew };
}

function areNamed(letters: unknown): letters is readonly (readonly [number, string])[] {
  const isName = (one: unknown) =>
    Array.isArray(one) && typeof one[0] === 'number' && typeof one[1] === 'string';
  return Array.isArray(letters) && letters.every(isName);
}

/** Parses a JSON object; null for anything else. */
export function parsedObject(text: unknown): JsonObject | null {
  try {
    const value: Json = typeof text === 'string' ? JSON.parse(text) : null;
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

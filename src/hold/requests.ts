// What an operator asks of the process that runs in a state directory, as rows of its database: a command writes one, the
// process carries it out and writes the answer, the command reads that and takes the row away. Where no process runs the row
// stays for the next one.

import { isObject, type Json, type JsonObject } from '../contracts/json.ts';
import type { Statements } from './statements.ts';

/**
 * What is asked for. `retry`: ask a stream or sink now that waits or is halted. `rewind`: have a stream read again from where
 * it was at `to` (epoch milliseconds); `forget`: and deliver what was read since again.
 */
export type Wish =
  | { readonly what: 'retry' }
  | { readonly what: 'rewind'; readonly to: number; readonly forget: boolean };

/** A row that is not carried out yet. */
export interface Request {
  readonly id: number;
  /** The stream or sink that it is about. */
  readonly name: string;
  readonly wish: Wish;
}

/** An answer that nobody has fetched goes after this. */
const answerForMs = 600_000;

/** The table of requests. */
export class Requests {
  readonly #statements: Statements;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /** Writes a request down; returns its id. */
  ask(name: string, wish: Wish, now: number): number {
    this.#statements.run(
      'DELETE FROM request WHERE answer IS NOT NULL AND at < ?',
      now - answerForMs,
    );
    const asked = this.#statements.run(
      'INSERT INTO request (name, wish, at) VALUES (?, ?, ?)',
      name,
      JSON.stringify(wish),
      now,
    );
    return Number(asked.lastInsertRowid);
  }

  /** The requests to be carried out, oldest first. What no version like this one has written is left alone. */
  pending(): readonly Request[] {
    return this.#statements
      .rows('SELECT id, name, wish FROM request WHERE answer IS NULL ORDER BY id')
      .flatMap((row) => {
        const wish = wishOf(parsedObject(row.wish));
        return wish === null ? [] : [{ id: Number(row.id), name: String(row.name), wish }];
      });
  }

  /** Writes the answer to a request. */
  answer(id: number, answer: Json): void {
    this.#statements.run('UPDATE request SET answer = ? WHERE id = ?', JSON.stringify(answer), id);
  }

  /** The answer to a request; null while there is none. */
  answerTo(id: number): JsonObject | null {
    return parsedObject(
      this.#statements.row('SELECT answer FROM request WHERE id = ?', id)?.answer,
    );
  }

  /** Takes a request away. */
  withdraw(id: number): void {
    this.#statements.run('DELETE FROM request WHERE id = ?', id);
  }
}

function wishOf(written: JsonObject | null): Wish | null {
  const { what, to, forget } = written ?? {};
  if (what === 'retry') return { what };
  const isRewind = what === 'rewind' && typeof to === 'number' && typeof forget === 'boolean';
  return isRewind ? { what, to, forget } : null;
}

/** An object from its JSON; null for anything else. */
export function parsedObject(text: unknown): JsonObject | null {
  try {
    const value: Json = typeof text === 'string' ? JSON.parse(text) : null;
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

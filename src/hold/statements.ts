// Statements on one database, each prepared once and cached. SQLite's failures are rethrown as
// ExportErrors.

import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { storeError } from './database.ts';

/** A row by column names. */
export type Row = Record<string, unknown>;

const reading = 'reading the state database';
const writing = 'writing to the state database';

/** A statement keeps a copy of its last arguments: one with more than this is not cached. */
const keptBytesMax = 1024 * 1024;

/** Prepares statements on first use. */
export class Statements {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** The first row, if there is one. */
  row(sql: string, ...values: SQLInputValue[]): Row | undefined {
    try {
      return this.#prepare(sql).get(...values);
    } catch (error) {
      throw storeError(error, reading);
    }
  }

  /** Every row. */
  rows(sql: string, ...values: SQLInputValue[]): readonly Row[] {
    try {
      return this.#prepare(sql).all(...values);
    } catch (error) {
      throw storeError(error, reading);
    }
  }

  /** Row by row; the same statement must not be used for anything else meanwhile. */
  *each(sql: string, ...values: SQLInputValue[]): Iterable<Row> {
    try {
      yield* this.#prepare(sql).iterate(...values);
    } catch (error) {
      throw storeError(error, reading);
    }
  }

  run(sql: string, ...values: SQLInputValue[]): ReturnType<StatementSync['run']> {
    try {
      return this.#prepare(sql).run(...values);
    } catch (error) {
      throw storeError(error, writing);
    } finally {
      if (values.some((value) => value instanceof Uint8Array && value.length > keptBytesMax)) {
        this.#forget(sql);
      }
    }
  }

  /** Releases all statements, before the database is closed. */
  clear(): void {
    this.#prepared.clear();
  }

  #forget(sql: string): void {
    // Node 26 has it; its types lack it.
    (this.#prepared.get(sql) as { close?(): void } | undefined)?.close?.();
    this.#prepared.delete(sql);
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#prepared.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#prepared.set(sql, statement);
    }
    return statement;
  }
}

// Rebuilds the state database of a directory from the rows of a log, if it is the cache of that log
// (outbox.ts). The previous database is deleted first: it may belong to another log, or contain
// changes that were never committed.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Offset } from '../contracts/index.ts';
import { openDatabase, Statements, storeError } from './database.ts';
import { deliveredName } from './delivered.ts';
import { KnownSinks } from './known-sinks.ts';
import { type Lock, takeLock } from './lock.ts';
import { addOutbox, type OutboxRow, restoreRow } from './outbox.ts';
import { databaseName, databaseSuffixes } from './schema.ts';

/** A rebuilt database. */
export interface Rebuilt {
  readonly streams: number;
  readonly pages: number;
  /** Offsets that a sink has not passed and that no page has: the log was cut. */
  readonly missing: { readonly from: Offset; readonly until: Offset } | null;
}

/** A database under construction. */
export class Rebuilding {
  readonly #lock: Lock;
  readonly #database: DatabaseSync;
  readonly #statements: Statements;
  #isNew = true;

  /** Throws `state_locked`, `state_damaged` or `disk_full`. */
  constructor(dir: string) {
    this.#lock = takeLock(dir);
    try {
      const files = databaseSuffixes.map((suffix) => databaseName + suffix);
      for (const name of [...files, deliveredName])
        rmSync(join(dir, name), { force: true, recursive: true });
      this.#database = openDatabase({ dir, sync: 'none' });
      this.#statements = new Statements(this.#database);
    } catch (error) {
      this.#lock.release();
      throw storeError(error, `building the cache of the state in ${dir}`);
    }
  }

  /** Writes rows in the order of the log. */
  put(rows: readonly OutboxRow[]): void {
    this.#statements.run('BEGIN');
    // The log begins with the database's identity: a database without it is incomplete (damage.ts).
    if (this.#isNew && rows.length > 0) {
      this.#statements.run("DELETE FROM meta WHERE key = 'spool_id'");
    }
    this.#isNew &&= rows.length === 0;
    for (const row of rows) restoreRow(this.#statements, row);
    this.#statements.run('COMMIT');
  }

  /** `isCache`: it stays the cache of the log, so further changes are noted for the log. */
  finish({ isCache }: { readonly isCache: boolean }): Rebuilt {
    const count = (table: string) =>
      Number(this.#statements.row(`SELECT count(*) AS n FROM ${table}`)?.n);
    const rebuilt = {
      streams: count('checkpoint'),
      pages: count('page'),
      missing: this.#missing(),
    };
    if (isCache) {
      this.#statements.run('BEGIN');
      addOutbox(this.#statements);
      // A new log needs the database's identity first.
      this.#statements.run('UPDATE meta SET value = value');
      this.#statements.run('COMMIT');
    }
    this.close();
    return rebuilt;
  }

  /** Closes it without further changes. */
  close(): void {
    this.#statements.clear();
    this.#database.close();
    this.#lock.release();
  }

  #missing(): Rebuilt['missing'] {
    const end = Number(this.#statements.row("SELECT value FROM meta WHERE key = 'end'")?.value);
    const known = new KnownSinks(this.#statements).all();
    const positions = this.#statements
      .rows('SELECT sink, next FROM position')
      .flatMap(({ sink, next }) => {
        const { missingSince = null, keeps = true, releasedTo = 0 } = known.get(String(sink)) ?? {};
        // Released pages of a removed sink are not a gap in the log.
        if (missingSince !== null && !keeps) return [];
        return Math.max(Number(next), missingSince === null ? 0 : releasedTo);
      });
    const from = Math.min(...positions);
    const oldest = Number(this.#statements.row('SELECT min(first) AS n FROM page')?.n ?? end);
    return from < oldest ? { from, until: oldest } : null;
  }
}

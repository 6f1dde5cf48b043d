// Makes the state database of a directory anew from the rows of a log, where it is the cache of
// that log (outbox.ts). Whatever database was there is thrown away first: it may be of another log,
// or ahead of this one by what was never committed.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import type { Offset } from '../contracts/event.ts';
import { openDatabase, openToLook } from './database.ts';
import { deliveredName } from './delivered.ts';
import { KnownSinks } from './known-sinks.ts';
import { type Lock, takeLock } from './lock.ts';
import { addOutbox, type OutboxRow, restoreRow } from './outbox.ts';
import { databaseName } from './schema.ts';
import { Statements } from './statements.ts';

/** What a rebuilt database holds. */
export interface Rebuilt {
  /** Rows of the database before that were changed while nobody handed them to the log. */
  readonly lost: number;
  readonly streams: number;
  readonly pages: number;
  /** Numbers of events that a sink has not passed and that no page has: the log was cut. */
  readonly missing: { readonly from: Offset; readonly until: Offset } | null;
}

/** A database that is being made. */
export class Rebuilding {
  readonly #lock: Lock;
  readonly #lost: number;
  readonly #database: DatabaseSync;
  readonly #statements: Statements;
  #isNew = true;

  /** Throws `state_locked`, `state_damaged` or `disk_full`. */
  constructor(dir: string) {
    this.#lock = takeLock(dir);
    try {
      this.#lost = unsent(join(dir, databaseName));
      for (const ending of ['', '-wal', '-shm'])
        rmSync(join(dir, databaseName + ending), { force: true });
      rmSync(join(dir, deliveredName), { force: true });
      this.#database = openDatabase({ dir, sync: 'none' });
      this.#statements = new Statements(this.#database);
    } catch (error) {
      this.#lock.release();
      throw error;
    }
  }

  /** Puts rows in, in the order of the log. */
  put(rows: readonly OutboxRow[]): void {
    this.#statements.run('BEGIN');
    // What a log begins with is what the database calls itself: one that has lost it is not whole (damage.ts).
    if (this.#isNew && rows.length > 0) {
      this.#statements.run("DELETE FROM meta WHERE key = 'spool_id'");
    }
    this.#isNew &&= rows.length === 0;
    for (const row of rows) restoreRow(this.#statements, row);
    this.#statements.run('COMMIT');
  }

  /** Where it stays the cache of the log, what changes from now on is noted for that. */
  finish({ isCache }: { readonly isCache: boolean }): Rebuilt {
    const count = (table: string) =>
      Number(this.#statements.row(`SELECT count(*) AS n FROM ${table}`)?.n);
    const rebuilt = {
      lost: this.#lost,
      streams: count('checkpoint'),
      pages: count('page'),
      missing: this.#missing(),
    };
    if (isCache) {
      addOutbox(this.#statements);
      // Where the log is new, it is told what the database calls itself.
      this.#statements.run('UPDATE meta SET value = value');
    }
    this.close();
    return rebuilt;
  }

  /** Leaves it as it is. */
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
        // Pages of a removed sink are released: that they are gone is no gap in the log.
        if (missingSince !== null && !keeps) return [];
        return Math.max(Number(next), missingSince === null ? 0 : releasedTo);
      });
    const from = Math.min(...positions);
    const oldest = Number(this.#statements.row('SELECT min(first) AS n FROM page')?.n ?? end);
    return from < oldest ? { from, until: oldest } : null;
  }
}

/** How many rows wait in the database that is there; what cannot be read has none. */
function unsent(path: string): number {
  try {
    const database = openToLook(path);
    try {
      // What it calls itself and where it ends follow from the rest.
      const sql =
        "SELECT count(DISTINCT json_array(tab, key)) AS n FROM outbox WHERE tab <> 'meta'";
      return Number(database.prepare(sql).get()?.n);
    } finally {
      database.close();
    }
  } catch {
    return 0;
  }
}

// Opens the state database: creates a missing one, migrates an older one, refuses a newer one, or
// opens it read-only without any change. Also maps SQLite's failures to errors for an operator, and
// prepares statements.

import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { ExportError, errorText } from '../contracts/index.ts';
import { makePrivateDirectory, makePrivateFile } from './private-files.ts';
import { databaseName, migrations, pragmas, type Sync } from './schema.ts';
import { unwritableError } from './unwritable.ts';

// https://www.sqlite.org/rescode.html
const sqliteBusy = 5;
const sqliteInputOutput = 10;
const sqliteCorrupt = 11;
const sqliteFull = 13;
const sqliteCannotOpen = 14;
const sqliteNotADatabase = 26;
/**
 * Maximum wait for another connection, for example one that creates the database or removes its
 * WAL. Set on opening, because the wait applies to the first statement already and no pragma can
 * set it in time.
 */
const busyMsMax = 5_000;
/** SQLITE_READONLY_ROLLBACK: a rollback journal must be carried out, and that writes. */
const sqliteReadOnlyRollback = 776;
/** SQLITE_IOERR_SHMSIZE: no space for the index of the WAL. */
const sqliteIndexSize = 4874;

/** How the database is opened. */
export interface DatabaseSettings {
  readonly dir: string;
  readonly sync: Sync;
  /** Read-only: creates and migrates nothing. */
  readonly readOnly?: boolean;
  /** A name other than `sluice.db`, for a database under construction that will replace it. */
  readonly name?: string;
}

/** Opens a state directory's database and migrates it, or throws and leaves it untouched. */
export function openDatabase(settings: DatabaseSettings): DatabaseSync {
  const path = join(settings.dir, settings.name ?? databaseName);
  try {
    if (settings.readOnly) return openToLook(path);
    makePrivateDirectory(settings.dir);
    makePrivateFile(path);
    const database = new DatabaseSync(path, { timeout: busyMsMax });
    try {
      const version = versionOf(database);
      database.exec(pragmas(settings.sync));
      if (version < migrations.length) migrate(database);
    } catch (error) {
      database.close();
      throw error;
    }
    return database;
  } catch (error) {
    throw storeError(error, `opening the state database ${path}`);
  }
}

/**
 * Opens a database read-only, also while another process recovers it after a crash. The rollback
 * journal of a process that was killed while it created the database is carried out first: SQLite
 * refuses to read before that.
 */
export function openToLook(path: string): DatabaseSync {
  const open = () => new DatabaseSync(path, { readOnly: true, timeout: busyMsMax });
  const database = open();
  if (!hasRollbackJournal(database)) return database;
  database.close();
  using writing = new DatabaseSync(path, { timeout: busyMsMax });
  writing.prepare('PRAGMA user_version').get();
  return open();
}

/** Other failures to read are left to the caller's first statement. */
function hasRollbackJournal(database: DatabaseSync): boolean {
  try {
    database.prepare('PRAGMA user_version').get();
    return false;
  } catch (error) {
    return codeOf(error) === sqliteReadOnlyRollback;
  }
}

/** Number of applied migrations; read before anything is changed. */
function versionOf(database: DatabaseSync): number {
  const version = Number(database.prepare('PRAGMA user_version').get()?.user_version ?? 0);
  if (version > migrations.length) {
    throw new ExportError(
      'state_damaged',
      `opening the state database: it was written by a newer sluice (schema ${version}), and this one knows ${migrations.length}`,
      {
        next: 'Run the newer version again, or give this one a state.dir of its own; nothing was changed.',
      },
    );
  }
  return version;
}

/** One transaction, so that a concurrent reader sees all tables of one version. */
function migrate(database: DatabaseSync): void {
  database.exec('BEGIN IMMEDIATE');
  // Another connection may have migrated it in the meantime.
  const version = versionOf(database);
  migrations.slice(version).forEach((migration, index) => {
    database.exec(migration);
    if (version + index === 0) {
      database.prepare("INSERT INTO meta VALUES ('spool_id', ?), ('end', '0')").run(randomUUID());
    }
  });
  database.exec(`PRAGMA user_version = ${migrations.length}`);
  database.exec('COMMIT');
}

/** True if there is a database with complete tables. Throws `state_damaged`. */
export function hasState(dir: string): boolean {
  const path = join(dir, databaseName);
  if (!existsSync(path)) return false;
  try {
    using database = openToLook(path);
    return Number(database.prepare('PRAGMA user_version').get()?.user_version ?? 0) > 0;
  } catch (error) {
    throw storeError(error, `opening the state database ${path}`);
  }
}

/** The database's content differs from the bytes written: the next start repairs it (repair.ts). */
export function damageError(doing: string, what: string, cause?: unknown): ExportError {
  return new ExportError('state_damaged', `${doing}: ${what}`, {
    next: 'Start sluice again: it sets the damaged database aside, saves its readable rows, and reads the others from upstream again.',
    details: { damaged: true },
    cause,
  });
}

/** True for a failure that persists until the database is repaired. */
export function isDamage(error: unknown): boolean {
  return error instanceof ExportError && error.details.damaged === true;
}

/** True if another connection has the lock, longer than this one waits. */
export function isDatabaseBusy(error: unknown): boolean {
  return (causeCodeOf(error) & 0xff) === sqliteBusy;
}

/** True if the system failed to read or write; SQLite does not report why. */
export function isInputOutputError(error: unknown): boolean {
  const code = causeCodeOf(error);
  return code !== sqliteIndexSize && (code & 0xff) === sqliteInputOutput;
}

/** True if a file cannot be opened or created; SQLite does not report why. */
export function isCannotOpen(error: unknown): boolean {
  return (causeCodeOf(error) & 0xff) === sqliteCannotOpen;
}

function causeCodeOf(error: unknown): number {
  return codeOf(error instanceof ExportError ? error.cause : error);
}

function codeOf(error: unknown): number {
  return typeof error === 'object' && error !== null && 'errcode' in error
    ? Number(error.errcode)
    : 0;
}

/**
 * A failure of SQLite as an ExportError: a full disk recovers when space is freed, damage does not.
 */
export function storeError(error: unknown, doing: string): ExportError {
  if (error instanceof ExportError) return error;
  const text = errorText(error);
  const code = codeOf(error);
  switch (code === sqliteIndexSize ? sqliteFull : code & 0xff) {
    case sqliteFull:
      return new ExportError('disk_full', `${doing}: the disk is full`, {
        next: 'Make room in state.dir; polling pauses meanwhile and nothing is lost.',
        cause: error,
      });
    case sqliteCorrupt:
    case sqliteNotADatabase:
      return damageError(doing, text, error);
    default:
      return (
        unwritableError(doing, error) ??
        new ExportError('state_damaged', `${doing}: ${text}`, {
          next: isInputOutputError(error)
            ? 'Check the disk of state.dir, and the limit of file sizes (ulimit -f); nothing held was lost.'
            : 'Check state.dir and its permissions; nothing held was lost.',
          cause: error,
        })
      );
  }
}

// Statements on one database, each prepared once and cached. SQLite's failures are rethrown as
// ExportErrors.

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

// Opening the state database: made where there is none, brought up to date where it is older, refused where it is newer,
// and looked at without a change where that is all that is wanted. And what SQLite's failures mean to an operator.

import { randomUUID } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { ExportError } from '../contracts/errors.ts';
import { migrations, pragmas } from './schema.ts';

/** How the database is opened. */
export interface DatabaseSettings {
  readonly dir: string;
  readonly sync: 'full' | 'normal';
  /** Only looks: no table is made or brought up to date. */
  readonly readOnly?: boolean;
}

/** Opens the database of a state directory and brings it up to date. Throws an ExportError, the database untouched. */
export function openDatabase(settings: DatabaseSettings): DatabaseSync {
  const path = join(settings.dir, 'sluice.db');
  try {
    if (settings.readOnly) return new DatabaseSync(path, { readOnly: true });
    mkdirSync(settings.dir, { recursive: true, mode: 0o700 });
    if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600));
    const database = new DatabaseSync(path);
    try {
      const version = versionOf(database);
      database.exec(pragmas(settings.sync));
      migrate(database, version);
    } catch (error) {
      database.close();
      throw error;
    }
    return database;
  } catch (error) {
    throw storeError(error, `opening the state database ${path}`);
  }
}

/** How many migrations a database has seen; asked before anything is changed in it. */
function versionOf(database: DatabaseSync): number {
  const version = Number(database.prepare('PRAGMA user_version').get()?.user_version ?? 0);
  if (version > migrations.length) {
    throw new ExportError(
      'state_damaged',
      `opening the state database: it was written by a newer sluice (schema ${version})`,
      {
        next: 'Run the newer version again, or give this one a state.dir of its own.',
      },
    );
  }
  return version;
}

function migrate(database: DatabaseSync, version: number): void {
  migrations.slice(version).forEach((migration, index) => {
    database.exec('BEGIN IMMEDIATE');
    database.exec(migration);
    if (version + index === 0) {
      database.prepare("INSERT INTO meta VALUES ('spool_id', ?), ('end', '0')").run(randomUUID());
    }
    database.exec(`PRAGMA user_version = ${version + index + 1}`);
    database.exec('COMMIT');
  });
}

/** A failure of SQLite as one of ours: a full disk mends itself once there is room, damage does not. */
export function storeError(error: unknown, doing: string): ExportError {
  if (error instanceof ExportError) return error;
  const text = error instanceof Error ? error.message : String(error);
  const code =
    typeof error === 'object' && error !== null && 'errcode' in error ? Number(error.errcode) : 0;
  const primary = code & 0xff;
  if (primary === 13) {
    return new ExportError('disk_full', `${doing}: the disk is full`, {
      next: 'Make room in state.dir; polling pauses meanwhile and nothing is lost.',
      cause: error,
    });
  }
  if (primary === 11 || primary === 26) {
    return new ExportError('state_damaged', `${doing}: ${text}`, {
      next: 'Restore state.dir from a backup, or move it away: upstream is then read again from its beginning.',
      cause: error,
    });
  }
  return new ExportError('state_damaged', `${doing}: ${text}`, {
    next: 'Check state.dir and its permissions; nothing held was lost.',
    cause: error,
  });
}

// Moves a state database to another storage: reads all its rows, and puts a new database in place
// of an old one. Invariants: the old database is kept; no incomplete database ever has the final
// name.

import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase, Statements } from './database.ts';
import { deliveredName } from './delivered.ts';
import { everyRow, type OutboxRow } from './outbox.ts';
import { syncPath } from './private-files.ts';
import { reachedName } from './reached.ts';
import { databaseName, databaseSuffixes } from './schema.ts';

/** Bytes of rows per chunk; the row that exceeds them is included. */
const bytesMax = 4 * 1024 * 1024;

/** All rows of a directory's database, in chunks. The caller holds the lock. */
export function* rowsIn(dir: string): Generator<readonly OutboxRow[]> {
  const database = openDatabase({ dir, sync: 'full' });
  const statements = new Statements(database);
  try {
    let some: OutboxRow[] = [];
    let bytes = 0;
    for (const row of everyRow(statements)) {
      some.push(row);
      bytes += row.value?.length ?? 0;
      if (bytes < bytesMax) continue;
      yield some;
      [some, bytes] = [[], 0];
    }
    if (some.length > 0) yield some;
  } finally {
    statements.clear();
    database.close();
  }
}

/**
 * Moves the database of one directory into another on the same disk; the caller holds the lock of
 * the latter. Returns the new name of the previous database; null: there was none.
 */
export function putDatabase(from: string, to: string, now: number): string | null {
  const [source, place] = [join(from, databaseName), join(to, databaseName)];
  syncPath(source);
  const hadOne = existsSync(place);
  const aside = `${place}.before-${new Date(now).toISOString().replaceAll(':', '-')}`;
  // Also without a database: the files that an interrupted move has left would change the new one.
  for (const suffix of databaseSuffixes) {
    if (existsSync(place + suffix)) renameSync(place + suffix, aside + suffix);
  }
  // These files describe deliveries from the previous database.
  for (const name of [deliveredName, reachedName]) rmSync(join(to, name), { force: true });
  renameSync(source, place);
  syncPath(to);
  return hadOne ? aside : null;
}

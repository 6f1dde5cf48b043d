// A state database on its way to another place: all its rows, and a new one put where it was. What
// must stay true: the database that was there is kept, and at no moment is there half of one.

import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase } from './database.ts';
import { deliveredName } from './delivered.ts';
import { everyRow, type OutboxRow } from './outbox.ts';
import { reachedName } from './reached.ts';
import { databaseName } from './schema.ts';
import { Statements } from './statements.ts';

/** So many bytes of rows are handed on together, and the row that goes beyond them. */
const bytesMax = 4 * 1024 * 1024;

/** All rows of a directory's database, some at a time. Its lock is the caller's. */
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
 * Puts the database of one directory into another of the same disk, whose lock is the caller's.
 * Returns what the one that was there is called now; null: there was none.
 */
export function putDatabase(from: string, to: string, now: number): string | null {
  const [source, place] = [join(from, databaseName), join(to, databaseName)];
  sync(source);
  const hadOne = existsSync(place);
  const aside = `${place}.before-${new Date(now).toISOString().replaceAll(':', '-')}`;
  if (hadOne) {
    for (const ending of ['', '-wal', '-shm']) {
      if (existsSync(place + ending)) renameSync(place + ending, aside + ending);
    }
  }
  // They tell of deliveries from the other one.
  for (const name of [deliveredName, reachedName]) rmSync(join(to, name), { force: true });
  renameSync(source, place);
  sync(to);
  return hadOne ? aside : null;
}

function sync(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

// Rows of a state database as any SQLite tool would show them.

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** What a statement finds in a state directory's database. */
export function rowsIn(dir: string, sql: string): readonly Record<string, unknown>[] {
  const database = new DatabaseSync(join(dir, 'sluice.db'), { readOnly: true });
  try {
    return database
      .prepare(sql)
      .all()
      .map((row) => ({ ...row }));
  } finally {
    database.close();
  }
}

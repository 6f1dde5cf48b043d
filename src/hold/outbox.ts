// The changes of the state database since the last drain, if the database is the cache of a log that other processes
// read (src/cluster/log). Triggers note every row that any connection writes or deletes, and the current rows go to the
// log with the pages, as bytes (held-page.ts). Invariant: a database rebuilt from everything drained equals this one,
// except for pages that every sink has passed.

import type { Statements } from './database.ts';
import {
  bytesOfPage,
  bytesOfRow,
  pageOfBytes,
  rowOfBytes,
  wholeRow,
  writeParts,
} from './held-page.ts';

/** A row on its way to or from the log. */
export interface OutboxRow {
  readonly table: string;
  /** Its primary key. */
  readonly key: readonly (string | number)[];
  /** Null: deleted. */
  readonly value: Uint8Array | null;
}

/** The table of pages, whose rows are written once and deleted when every sink has passed them. */
export const pageTable = 'page';
/** The table of dead letters. */
export const deadLetterTable = 'dead_letter';

/** By table, the columns of its primary key. */
const tables: Readonly<Record<string, readonly string[]>> = {
  [pageTable]: ['first'],
  meta: ['key'],
  checkpoint: ['stream'],
  identities: ['block'],
  trail: ['rowid'],
  entity: ['stream', 'key'],
  parent: ['stream', 'id'],
  position: ['sink'],
  [deadLetterTable]: ['id'],
  set_aside: ['id'],
  pair: ['id'],
  pair_record: ['id'],
  pair_waiting: ['id'],
  note: ['kind', 'name'],
  request: ['id'],
};
/** Number of key columns per table. */
export const keyLengths: Readonly<Record<string, number>> = Object.fromEntries(
  Object.entries(tables).map(([table, columns]) => [table, columns.length]),
);
const hasPage = 'SELECT 1 AS n FROM page WHERE first = ?';

/** Creates the triggers that note every change. */
export function addOutbox(statements: Statements): void {
  statements.run(
    'CREATE TABLE outbox (seq INTEGER PRIMARY KEY, tab TEXT NOT NULL, key TEXT NOT NULL, waits INTEGER NOT NULL DEFAULT 0)',
  );
  for (const [table, columns] of Object.entries(tables)) {
    const events = table === pageTable ? ['INSERT'] : ['INSERT', 'UPDATE', 'DELETE'];
    for (const event of events) {
      const row = event === 'DELETE' ? 'OLD' : 'NEW';
      const key = columns.map((column) => `${row}.${column}`).join(', ');
      statements.run(
        `CREATE TRIGGER outbox_${table}_${event} AFTER ${event} ON ${table} BEGIN
           INSERT INTO outbox (tab, key) VALUES ('${table}', json_array(${key})); END`,
      );
    }
  }
}

/**
 * Notes all rows that differ from those of the cache before, which the log has: for a repaired cache. `before`: the path of that
 * cache; all rows are noted if the file is unreadable.
 */
export function noteDifferences(statements: Statements, before: string): void {
  const add = (table: string, key: string, from: string) =>
    statements.run(`INSERT INTO outbox (tab, key) SELECT '${table}', ${key} FROM ${from}`);
  const keyOf = (columns: readonly string[]) => `json_array(${columns.join(', ')})`;
  let isReadable = true;
  try {
    statements.run('ATTACH DATABASE ? AS old', before);
    for (const [table, columns] of Object.entries(tables)) {
      const key = keyOf(columns);
      const row = columns.includes('rowid') ? 'rowid, *' : '*';
      // The log never changes a page, and a page that is not needed is deleted from there by its offset.
      const compared = table === pageTable ? columns.join(', ') : row;
      const [now, then] = [
        `SELECT ${compared} FROM main.${table}`,
        `SELECT ${compared} FROM old.${table}`,
      ];
      add(table, key, `(${now} EXCEPT ${then})`);
      const [kept, known] = [
        `SELECT ${key} AS k FROM main.${table}`,
        `SELECT ${key} AS k FROM old.${table}`,
      ];
      if (table !== pageTable) add(table, 'k', `(${known} EXCEPT ${kept})`);
    }
  } catch {
    isReadable = false;
  }
  for (const [table, columns] of Object.entries(tables)) {
    // The identity of a new log is not in the log yet.
    if (!isReadable || table === 'meta') add(table, keyOf(columns), `main.${table}`);
  }
}

/** If there is an outbox: its last change waits for others. */
export function delayLast(statements: Statements): void {
  const known = "SELECT 1 AS n FROM sqlite_master WHERE name = 'outbox'";
  if (statements.row(known) === undefined) return;
  statements.run('UPDATE outbox SET waits = 1 WHERE seq = (SELECT max(seq) FROM outbox)');
}

/**
 * Removes and returns the changes, oldest first; each row once, in its current version. `all`: also if all wait for others.
 * `added`: pages in the form of the log by their first offset, which need not be read back.
 */
export function drainOutbox(
  statements: Statements,
  all: boolean,
  added: ReadonlyMap<number, Uint8Array> = new Map(),
): readonly OutboxRow[] {
  const due = all ? 'SELECT 1 AS n FROM outbox' : 'SELECT 1 AS n FROM outbox WHERE waits = 0';
  if (statements.row(`${due} LIMIT 1`) === undefined) return [];
  const changed = 'SELECT tab, key FROM outbox GROUP BY tab, key ORDER BY min(seq)';
  const rows = statements.rows(changed).map(({ tab, key: text }) => {
    const [table, key] = [String(tab), JSON.parse(String(text)) as (string | number)[]];
    const page = table === pageTable ? added.get(Number(key[0])) : undefined;
    // A page that every sink has passed meanwhile is deleted.
    const isThere = page !== undefined && statements.row(hasPage, ...key) !== undefined;
    return { table, key, value: isThere ? page : valueAt(statements, table, key) };
  });
  if (rows.length > 0) statements.run('DELETE FROM outbox');
  return rows;
}

/** All rows, in the form of a drain. */
export function* everyRow(statements: Statements): Iterable<OutboxRow> {
  for (const [table, columns] of Object.entries(tables)) {
    for (const row of statements.each(`SELECT ${columns.join(', ')} FROM ${table}`)) {
      const key = columns.map((column) => row[column] as string | number);
      yield { table, key, value: valueAt(statements, table, key) };
    }
  }
}

/** Writes or deletes a row from the log. */
export function restoreRow(statements: Statements, { table, key, value }: OutboxRow): void {
  const columnsOfKey = tables[table];
  // A newer version may have more tables.
  if (columnsOfKey === undefined) return;
  if (value === null) {
    statements.run(`DELETE FROM ${table} WHERE ${isKey(columnsOfKey)}`, ...key);
    return;
  }
  const held = table === pageTable ? pageOfBytes(value) : rowOfBytes(value);
  const { first, body } = held;
  const isPage = typeof first === 'number' && body instanceof Uint8Array;
  const run = statements.run.bind(statements);
  // A log may contain a page twice, if an import was restarted.
  if (isPage) run('DELETE FROM page_part WHERE first = ?', first);
  const row = isPage ? { ...held, body: writeParts(run, body, first) } : held;
  const columns = Object.keys(row);
  const marks = columns.map(() => '?').join(', ');
  const insert = `INSERT OR REPLACE INTO ${table} (${columns.join(', ')}) VALUES (${marks})`;
  statements.run(insert, ...Object.values(row));
}

function valueAt(statements: Statements, table: string, key: readonly (string | number)[]) {
  const columns = tables[table] ?? [];
  const all = columns.includes('rowid') ? 'rowid, *' : '*';
  const row = statements.row(`SELECT ${all} FROM ${table} WHERE ${isKey(columns)}`, ...key);
  if (row === undefined) return null;
  if (table !== pageTable) return bytesOfRow(row);
  return bytesOfPage(wholeRow(row, (sql, ...of) => statements.each(sql, ...of)));
}

function isKey(columns: readonly string[]): string {
  return columns.map((column) => `${column} = ?`).join(' AND ');
}

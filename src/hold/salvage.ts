// Copies the readable rows of a damaged database into a new one. Keys are listed from both ends of
// a table, because a broken page in the middle ends a listing; rows are then read one by one,
// because a broken row costs only itself.

import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import type { Row } from './database.ts';
import { allRows, isIntactRow, wholeRow } from './held-page.ts';

interface Table {
  readonly name: string;
  readonly key: readonly string[];
}

/** The copied tables, a page with its parts as its body; `meta` is the new database's own. */
const tables = [
  { name: 'page', key: ['first'] },
  { name: 'checkpoint', key: ['stream'] },
  { name: 'identities', key: ['block'] },
  { name: 'trail', key: ['rowid'] },
  { name: 'entity', key: ['stream', 'key'] },
  { name: 'parent', key: ['stream', 'id'] },
  { name: 'position', key: ['sink'] },
  { name: 'dead_letter', key: ['id'] },
  { name: 'set_aside', key: ['id'] },
  { name: 'pair', key: ['id'] },
  { name: 'pair_record', key: ['id'] },
  { name: 'pair_waiting', key: ['id'] },
  { name: 'note', key: ['kind', 'name'] },
  { name: 'request', key: ['id'] },
] as const satisfies readonly Table[];

/** Per table, whether all rows were copied. */
export type Salvaged = Readonly<Record<(typeof tables)[number]['name'], boolean>>;

/** The result for a database that cannot be opened. */
export const nothingSalvaged = Object.fromEntries(
  tables.map(({ name }) => [name, false]),
) as Salvaged;

/** Rows per transaction; they include whole pages. */
const rowsAtOnce = 256;

/**
 * Copies the readable rows into tables of this version; the old tables may be of an older version.
 */
export function salvage(from: DatabaseSync, to: DatabaseSync): Salvaged {
  return Object.fromEntries(
    tables.map((table) => [table.name, copyTable(from, to, table)]),
  ) as Salvaged;
}

function copyTable(from: DatabaseSync, to: DatabaseSync, table: Table): boolean {
  const { keys, whole } = keysIn(from, table);
  let complete = whole;
  for (let at = 0; at < keys.length; at += rowsAtOnce) {
    to.exec('BEGIN');
    for (const key of keys.slice(at, at + rowsAtOnce)) {
      const row = rowAt(from, table, key);
      if (row === null) complete = false;
      else insert(to, table, row);
    }
    to.exec('COMMIT');
  }
  return complete;
}

function keysIn(
  database: DatabaseSync,
  table: Table,
): { readonly keys: readonly SQLInputValue[][]; readonly whole: boolean } {
  const ahead = listing(database, table, 'ASC');
  if (ahead.whole) return ahead;
  const back = listing(database, table, 'DESC');
  const known = new Set(ahead.keys.map((key) => JSON.stringify(key)));
  const rest = back.keys.filter((key) => !known.has(JSON.stringify(key)));
  return { keys: [...ahead.keys, ...rest.reverse()], whole: false };
}

function listing(database: DatabaseSync, { name, key }: Table, direction: 'ASC' | 'DESC') {
  const keys: SQLInputValue[][] = [];
  try {
    const order = key.map((column) => `${column} ${direction}`).join();
    const rows = database.prepare(`SELECT ${key.join()} FROM ${name} ORDER BY ${order}`);
    for (const row of rows.iterate()) keys.push(Object.values(row));
    return { keys, whole: true };
  } catch {
    return { keys, whole: false };
  }
}

/** Null for a row that is unreadable or differs from the bytes written. */
function rowAt(database: DatabaseSync, table: Table, key: SQLInputValue[]): Row | null {
  try {
    const where = table.key.map((column) => `${column} = ?`).join(' AND ');
    const row = database.prepare(`SELECT * FROM ${table.name} WHERE ${where}`).get(...key);
    if (row === undefined || table.name !== 'page') return row ?? null;
    const page = wholeRow(row, allRows(database));
    return isIntactRow(page) ? page : null;
  } catch {
    return null;
  }
}

function insert(database: DatabaseSync, { name }: Table, row: Row): void {
  const columns = Object.keys(row);
  const places = columns.map(() => '?');
  database
    .prepare(`INSERT OR IGNORE INTO ${name} (${columns.join()}) VALUES (${places.join()})`)
    .run(...(Object.values(row) as SQLInputValue[]));
}

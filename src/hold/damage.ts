// Checks whether a state database is still as written, before it is used: the file's structure by SQLite's own check,
// the tables by the file's schema version, pages by their checksums, and counters against each other. Takes about one
// second per GiB stored. It does not detect a changed bit in a checkpoint or position that stays plausible; an
// implausible checkpoint halts its own stream (fetch/checkpoint.ts).

import { closeSync, openSync, readSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { type Epoch, errorText, identityBytes } from '../contracts/index.ts';
import { isDamage, openToLook, storeError } from './database.ts';
import type { DeliveredCopy } from './delivered.ts';
import { epochsFrom } from './epochs.ts';
import { allRows, isIntactRow, wholeRow } from './held-page.ts';
import { migrations } from './schema.ts';

const sqliteError = 1;
/** A larger version number is damage, not a newer sluice. */
const versionMax = 1_000;

/**
 * The damage of the database in this file; null: none. Does not change the file. The file must not
 * be open in this process, and no other process may write to it. Throws if it cannot be read for a
 * reason other than damage.
 */
export function findDamage(path: string, copy: DeliveredCopy | null): string | null {
  const header = headerOf(path);
  try {
    using database = openToLook(path);
    return flawIn(database, header, copy);
  } catch (error) {
    if (isDoneToDatabase(error)) return errorText(error);
    throw storeError(error, `looking over the state database ${path}`);
  }
}

function flawIn(database: DatabaseSync, header: Buffer, copy: DeliveredCopy | null): string | null {
  const version = Number(database.prepare('PRAGMA user_version').get()?.user_version);
  if (version < 0 || version > versionMax) return `its version cannot be ${version}`;
  // A newer schema is refused when the database is opened.
  if (version > migrations.length) return null;
  const missing = missingTable(database, version);
  if (missing !== null) return missing;
  if (version === 0) return copy === null ? null : 'there is nothing in it';
  if (!isInWalMode(header)) return 'its journal mode is not the one it was made in';
  return structuralFlaw(database) ?? flawInPages(database) ?? flawInRest(database, copy);
}

/** Tables and indexes must be those that the migrations up to the version create. */
function missingTable(database: DatabaseSync, version: number): string | null {
  const known = newestSchema();
  const expected = version === migrations.length ? known : schemaOf(version);
  const found = objectsIn(database);
  const wrong = [...known.keys()].find((name) => found.get(name) !== expected.get(name));
  return wrong === undefined ? null : `${wrong} is not as version ${version} has it`;
}

let newest: ReadonlyMap<string, string> | null = null;

/** The same for all directories: a process that takes over many shards checks one after the other. */
function newestSchema(): ReadonlyMap<string, string> {
  newest ??= schemaOf(migrations.length);
  return newest;
}

function schemaOf(version: number): ReadonlyMap<string, string> {
  using database = new DatabaseSync(':memory:');
  for (const migration of migrations.slice(0, version)) database.exec(migration);
  return objectsIn(database);
}

function objectsIn(database: DatabaseSync): ReadonlyMap<string, string> {
  const rows = database.prepare('SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL').all();
  return new Map(rows.map(({ name, sql }) => [String(name), String(sql)]));
}

function structuralFlaw(database: DatabaseSync): string | null {
  const said = String(database.prepare('PRAGMA integrity_check(1)').get()?.integrity_check);
  return said === 'ok' ? null : said.replace(/^\*{3} in database main \*{3}\s+/, '');
}

function flawInPages(database: DatabaseSync): string | null {
  const each = allRows(database);
  for (const row of each('SELECT * FROM page')) {
    if (!isIntactRow(wholeRow(row, each)))
      return `the page at event ${Number(row.first)} differs from the bytes written`;
  }
  return null;
}

function flawInRest(database: DatabaseSync, copy: DeliveredCopy | null): string | null {
  const { spool, end } = identityIn(database);
  if (end === null) return 'where its events end is not known';
  if (spool === null) return 'its name is not known';
  const last = database.prepare('SELECT max(first + count) AS n FROM page').get()?.n;
  if (Number(last ?? 0) > end) return `it ends at event ${end}, and holds events after that`;
  const ahead = database
    .prepare("SELECT sink FROM position WHERE typeof(next) <> 'integer' OR next < 0 OR next > ?")
    .get(end);
  if (ahead !== undefined) return 'a sink has a position where no event is';
  const blocks = database.prepare(
    `SELECT block FROM identities WHERE typeof(keys) <> 'blob' OR length(keys) % ${identityBytes} <> 0`,
  );
  if (blocks.get() !== undefined) return 'the stored identities differ from the bytes written';
  if (copy === null || copy.spool !== spool || copy.end > end) return null;
  const checkpoint = database.prepare('SELECT stream FROM checkpoint WHERE stream = ?');
  const gone = Object.keys(copy.streams).find((stream) => checkpoint.get(stream) === undefined);
  return gone === undefined ? null : `the checkpoint of ${gone} is gone`;
}

/** The spool id of the database, its next offset, and its epochs, as far as readable. */
export function identityIn(database: DatabaseSync): {
  readonly spool: string | null;
  readonly end: number | null;
  readonly epochs: readonly Epoch[];
} {
  const spool = metaIn(database, 'spool_id');
  const end = Number(metaIn(database, 'end') ?? Number.NaN);
  const epochs = spool === null ? [] : epochsFrom(metaIn(database, 'epochs'));
  return { spool, end: Number.isSafeInteger(end) && end >= 0 ? end : null, epochs };
}

function metaIn(database: DatabaseSync, key: string): string | null {
  try {
    const value = database.prepare('SELECT value FROM meta WHERE key = ?').get(key)?.value;
    return typeof value === 'string' ? value : null;
  } catch {
    return null;
  }
}

/** The first bytes of the file (https://www.sqlite.org/fileformat.html, 1.3). */
function headerOf(path: string): Buffer {
  const header = Buffer.alloc(100);
  const file = openSync(path, 'r');
  try {
    readSync(file, header, 0, header.length, 0);
    return header;
  } finally {
    closeSync(file);
  }
}

/** In another journal mode SQLite would ignore the WAL, and its content would be lost. */
function isInWalMode(header: Buffer): boolean {
  return header[18] === 2 && header[19] === 2;
}

/** sluice's own statements are valid for its database: if one fails, the database is damaged. */
function isDoneToDatabase(error: unknown): boolean {
  const isSqlites = typeof error === 'object' && error !== null && 'errcode' in error;
  return !isSqlites || error.errcode === sqliteError || isDamage(storeError(error, 'looking'));
}

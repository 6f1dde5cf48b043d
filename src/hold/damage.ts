// Whether a state database is what was written into it, found out before anything relies on it: the
// file's structure by SQLite's own check, the tables by the version that the file names, pages by
// their checksums, and numbers by each other. It takes about a second for each GiB that is held.
// What it cannot tell is a changed bit within a checkpoint or a position that still makes sense; a
// checkpoint that makes none halts its own stream (fetch/checkpoint.ts).

import { closeSync, openSync, readSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { errorText } from '../contracts/errors.ts';
import type { Epoch } from '../contracts/numbering.ts';
import { identityBytes } from '../contracts/spool.ts';
import { isDamage, openToLook, storeError } from './database.ts';
import type { DeliveredCopy } from './delivered.ts';
import { epochsFrom } from './epochs.ts';
import { allRows, isIntactRow, wholeRow } from './held-page.ts';
import { migrations } from './schema.ts';

const sqliteError = 1;
/** No sluice will ever be so much newer than this one. */
const versionMax = 1_000;

/**
 * What is wrong with the database in this file; null where nothing is. The file is not changed. It
 * must not be open in this process, and no other may write to it. Throws where it cannot be read
 * for another reason than damage.
 */
export function findDamage(path: string, copy: DeliveredCopy | null): string | null {
  const header = headerOf(path);
  try {
    const database = openToLook(path);
    try {
      return flawIn(database, header, copy);
    } finally {
      database.close();
    }
  } catch (error) {
    if (isDoneToDatabase(error)) return errorText(error);
    throw storeError(error, `looking over the state database ${path}`);
  }
}

function flawIn(database: DatabaseSync, header: Buffer, copy: DeliveredCopy | null): string | null {
  const version = Number(database.prepare('PRAGMA user_version').get()?.user_version);
  if (version < 0 || version > versionMax) return `its version cannot be ${version}`;
  // A newer one is refused when it is opened.
  if (version > migrations.length) return null;
  const missing = missingTable(database, version);
  if (missing !== null) return missing;
  if (version === 0) return copy === null ? null : 'there is nothing in it';
  if (!isInWalMode(header)) return 'its journal mode is not the one it was made in';
  return structuralFlaw(database) ?? flawInPages(database) ?? flawInRest(database, copy);
}

/** Tables and indexes are as the migrations up to the version make them. */
function missingTable(database: DatabaseSync, version: number): string | null {
  const known = schemaOf(migrations.length);
  const expected = schemaOf(version);
  const found = objectsIn(database);
  const wrong = [...known.keys()].find((name) => found.get(name) !== expected.get(name));
  return wrong === undefined ? null : `${wrong} is not as version ${version} has it`;
}

function schemaOf(version: number): ReadonlyMap<string, string> {
  const database = new DatabaseSync(':memory:');
  try {
    for (const migration of migrations.slice(0, version)) database.exec(migration);
    return objectsIn(database);
  } finally {
    database.close();
  }
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

/** Which spool the database holds, its next event's number, and its epochs, if readable. */
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

/** In another mode SQLite would not look at the log, and what is in it would be lost. */
function isInWalMode(header: Buffer): boolean {
  return header[18] === 2 && header[19] === 2;
}

/** Our statements are right for a database of ours: where they fail, it is ours no longer. */
function isDoneToDatabase(error: unknown): boolean {
  const isSqlites = typeof error === 'object' && error !== null && 'errcode' in error;
  return !isSqlites || error.errcode === sqliteError || isDamage(storeError(error, 'looking'));
}

// Damage done to a file by hand, at places that a test can name.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Store } from '../../src/hold/store.ts';
import { rowsIn } from './rows.ts';

/** SQLite's page, as schema.ts sets it. */
export const sqlitePage = 8_192;

/** Changes a file's bytes in place. */
export function overwrite(path: string, at: number, bytes: Uint8Array): void {
  const whole = readFileSync(path);
  whole.set(bytes, at);
  writeFileSync(path, whole);
}

/** Where a text first stands in a file. */
export function placeOf(path: string, text: string): number {
  const at = readFileSync(path).indexOf(text);
  if (at < 0) throw new Error(`${text} is not in ${path}`);
  return at;
}

/** The root page of a table, as an offset in the file. */
export function rootOf(dir: string, table: string): number {
  const [row] = rowsIn(dir, `SELECT rootpage FROM sqlite_master WHERE name = '${table}'`);
  return (Number(row?.rootpage) - 1) * sqlitePage;
}

/** Changes one bit in the uids of the held page that holds this offset. */
export function changeUids(dir: string, offset: number): void {
  const path = join(dir, 'sluice.db');
  const store = new Store({ dir, sync: 'normal', keepMs: 0 });
  const { uids = new Uint8Array() } = store.read(offset, 1)[0] ?? {};
  store.close();
  const at = readFileSync(path).indexOf(uids.subarray(0, 32));
  overwrite(path, at + 5, Buffer.from([(uids[5] ?? 0) ^ 1]));
}

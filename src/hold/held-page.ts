// A held page as a row of the state database and back. Each row carries a checksum over all that it says: SQLite keeps
// none of its own, so a byte that a disk has changed would else be delivered as if upstream had sent it. What must stay
// true: a page that is read is, byte for byte, the page that was appended, or reading it fails.

import type { SQLInputValue } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import type { Offset, PageContext } from '../contracts/event.ts';
import type { HeldPage, NewPage } from '../contracts/spool.ts';
import { uidBytes } from '../contracts/spool.ts';
import { damageError } from './database.ts';

/** Writes a page; its values are those of `pageValues`. */
export const insertPage = `
INSERT INTO page (first, count, bytes, held_at, stream, context, items, only_sink, kept, uids, body, crc)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** The values of a page's row. */
export function pageValues(page: NewPage, first: Offset, now: number): SQLInputValue[] {
  const values = [
    first,
    page.uids.length / uidBytes,
    page.body.length,
    now,
    page.context.stream,
    JSON.stringify(page.context),
    page.items,
    page.onlySink ?? null,
    page.kept === null ? null : bytesOf(page.kept),
    page.uids,
    page.body,
  ];
  return [...values, checksum(values)];
}

/** The page of a row. Throws `state_damaged` where the row is not what was written. */
export function heldPage(row: Record<string, unknown>): HeldPage {
  if (!isWhole(row)) {
    const [first, last] = [Number(row.first), Number(row.first) + Number(row.count) - 1];
    throw damageError(
      'reading the state database',
      `the page of the events ${first} to ${last} is not what was written`,
    );
  }
  const { kept, only_sink: onlySink } = row;
  return {
    first: Number(row.first),
    count: Number(row.count),
    context: JSON.parse(String(row.context)) as PageContext,
    items: String(row.items),
    kept: kept instanceof Uint8Array ? new Uint32Array(kept.slice().buffer) : null,
    uids: row.uids as Uint8Array,
    body: row.body as Uint8Array,
    ...(typeof onlySink === 'string' ? { onlySink } : {}),
  };
}

/** True where a row is as it was written. A row that an older version wrote has no checksum: then it has to make sense. */
export function isWhole(row: Record<string, unknown>): boolean {
  const { crc = null, ...rest } = row;
  const { uids, body } = row;
  if (!(uids instanceof Uint8Array && body instanceof Uint8Array)) return false;
  if (uids.length !== Number(row.count) * uidBytes || body.length !== row.bytes) return false;
  return crc === null ? isJson(row.context) : crc === checksum(Object.values(rest));
}

/** Over a row's values in the order of the table's columns. */
function checksum(values: readonly unknown[]): number {
  let crc = 0;
  for (const value of values) crc = crc32(value instanceof Uint8Array ? value : `${value}\0`, crc);
  return crc;
}

function isJson(text: unknown): boolean {
  try {
    JSON.parse(String(text));
    return true;
  } catch {
    return false;
  }
}

function bytesOf(numbers: Uint32Array): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
}

// Checks the objects that are no evidence but that the writer acts on: holds, requests to prune or erase, and the
// claim. A flaw in one does not affect any proof; the report names it, because the writer rejects it.

import { readClaim } from '../claim.ts';
import { parseRequest, requestsPrefix } from '../erasure-request.ts';
import { holdPath, holdsPrefix, parseHold } from '../holds.ts';
import { writerPath } from '../layout.ts';
import type { ArchiveReader } from '../reader.ts';
import { prunePath, readWish } from '../retention.ts';

/** Limit of names per kind. */
const namesMax = 20;

/** Remarks for the reader. `inForce`: ids of the holds that are entered and not released. */
export async function wishRemarks(
  reader: ArchiveReader,
  inForce: readonly string[],
): Promise<readonly string[]> {
  const left = new Set(inForce);
  const [damaged, waiting]: [string[], string[]] = [[], []];
  for await (const { name } of reader.store.list(holdsPrefix)) {
    const hold = await parsed(reader, name, parseHold);
    if (hold === null) damaged.push(name);
    else if (hold !== undefined && !left.delete(hold.id) && hold.released_at === null) {
      waiting.push(name);
    }
  }
  const requests: string[] = [];
  for await (const { name } of reader.store.list(requestsPrefix)) {
    if ((await parsed(reader, name, parseRequest)) === null) requests.push(name);
  }
  if ((await parsed(reader, prunePath, readWish)) === null) requests.push(prunePath);
  const claim = await reader.small(writerPath);
  const missing = [...left]
    .map((id) => holdPath(id) ?? id)
    .filter((name) => !damaged.includes(name));
  return [
    ...named(damaged, 'no hold is written so, and the writer removes nothing until it is repaired'),
    ...named(waiting, 'the log does not name this hold yet'),
    ...named(missing, 'the file of a hold in force is missing; the hold stays in force'),
    ...named(requests, 'no request is written so, and the writer does not carry it out'),
    ...(claim !== null && readClaim(claim) === null
      ? [`${writerPath}: it names no writer; the next writer rewrites it`]
      : []),
  ];
}

/** Undefined: it does not exist; null: it is malformed. */
async function parsed<T>(
  reader: ArchiveReader,
  name: string,
  parse: (bytes: Uint8Array) => T,
): Promise<T | null | undefined> {
  const bytes = await reader.small(name);
  if (bytes === null) return undefined;
  try {
    return parse(bytes);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function named(names: readonly string[], what: string): readonly string[] {
  if (names.length === 0) return [];
  const more = names.length - namesMax;
  const shown = names.slice(0, namesMax).join(', ');
  return [`${shown}${more > 0 ? `, and ${more} more` : ''}: ${what}`];
}

// A list read whole, however it is paged: the firewall endpoints' document does not say whether they are. The first request
// has no parameters, so that nothing in it can be refused; pages are followed by cursor or offset as the answer shows.
// What must stay true: a list is complete only if nothing moved while it was read, no row came twice, and there are as
// many rows as upstream says. Anything short of that is still good for what it did show.

import type { Answer, Failure } from '../../../src/contracts/answer.ts';
import { ExportError } from '../../../src/contracts/errors.ts';
import { isObject, type Json, type JsonObject } from '../../../src/contracts/json.ts';
import type { Body, UpstreamRequest } from '../../../src/contracts/upstream.ts';
import { nonsense, readJson } from '../../../src/fetch/list/body.ts';
import { cutRecords, recordsAt, sourceTextAt, valueAt } from '../../../src/tools/records.ts';

/** One element of a list. */
export interface Row {
  readonly value: JsonObject;
  /** As upstream sent it. */
  readonly bytes: Uint8Array;
  /** As text; a number with all its digits. Null where there is none. */
  readonly id: string | null;
}

/** A list as read; `flaw`: why it may not be whole. */
export interface Listing {
  readonly rows: readonly Row[];
  readonly flaw: ExportError | null;
}

/** How a list is read. */
export interface Listed {
  /** Begins each message, e.g. `reading firewall/c-1/objects`. */
  readonly doing: string;
  /** Members that may hold a row's id; the first that does counts. */
  readonly ids: readonly string[];
  ask(query: UpstreamRequest['query']): Promise<Answer<Body>>;
}

/** Where the items, the next cursor and the length stand: the documents' conventions for all lists. */
const itemsKey = 'data';
const nextKey = 'next_cursor';
const totalKey = 'total';

/** Readings begun anew because rows moved, before the list is taken as it is. */
const scansMax = 3;
/** A list longer than this many pages is not a list but a circle. */
const pagesMax = 10_000;

/** Reads a list whole. */
export async function readListing(listed: Listed): Promise<Answer<Listing>> {
  for (let scan = 1; ; scan += 1) {
    const result = await scanOnce(listed);
    if (result.outcome !== 'moved') return result;
    if (scan < scansMax) continue;
    return { outcome: 'ok', rows: result.rows, flaw: nonsense(listed.doing, 'rows keep moving') };
  }
}

interface Part {
  readonly rows: readonly Row[];
  readonly next: Json | undefined;
  readonly total: number | null;
  readonly hasOffset: boolean;
}

async function scanOnce(
  listed: Listed,
): Promise<Answer<Listing> | { outcome: 'moved'; rows: readonly Row[] }> {
  const rows: Row[] = [];
  const cursors = new Set<string>();
  let query: UpstreamRequest['query'] = [];
  for (let page = 1; page <= pagesMax; page += 1) {
    const answer = await listed.ask(query);
    const part = answer.outcome === 'ok' ? readPart(answer.body, listed) : answer;
    if ('outcome' in part) return page === 1 ? part : asFar(rows, part.cause);
    const byOffset = query[0]?.[0] === 'offset';
    if (byOffset && isWhole(part, rows)) return ended(rows, part, listed);
    if (byOffset && !isSame(part.rows[0], rows.at(-1))) return { outcome: 'moved', rows };
    const fresh = byOffset ? part.rows.slice(1) : part.rows;
    rows.push(...fresh);

    if (typeof part.next === 'string' && part.next !== '') {
      if (cursors.has(part.next)) return asFar(rows, looped(listed));
      cursors.add(part.next);
      query = [['cursor', part.next]];
    } else if (cursors.size > 0) {
      const gone = part.next === undefined;
      if (gone) return asFar(rows, nonsense(listed.doing, `the answer has no ${nextKey} any more`));
      return ended(rows, part, listed);
    } else if (fresh.length > 0 && (part.total !== null || part.hasOffset)) {
      // The last row is asked for again: where it does not come first, rows have moved.
      query = [['offset', String(rows.length - 1)]];
    } else {
      return ended(rows, part, listed);
    }
  }
  return asFar(rows, looped(listed));
}

function readPart(body: Uint8Array, { doing, ids }: Listed): Part | Failure {
  const parsed = readJson(body, doing);
  if (!parsed.good) return { outcome: 'retry', cause: parsed.cause };
  const items = Array.isArray(parsed.value) ? '' : itemsKey;
  const values = recordsAt(parsed.value, items);
  if (values === null) {
    return { outcome: 'retry', cause: nonsense(doing, `the answer has no array at ${items}`) };
  }
  const slices = cutRecords(body, items);
  const rows: Row[] = [];
  for (const [index, value] of values.entries()) {
    if (!isObject(value)) {
      return { outcome: 'retry', cause: nonsense(doing, `row ${index} is not an object`) };
    }
    const bytes = body.subarray(slices.starts[index], slices.ends[index]);
    rows.push({ value, bytes, id: idOf(value, bytes, ids) });
  }
  const total = Number(valueAt(parsed.value, totalKey) ?? Number.NaN);
  return {
    rows,
    next: valueAt(parsed.value, nextKey),
    total: Number.isFinite(total) ? total : null,
    hasOffset: isObject(parsed.value) && parsed.value.offset !== undefined,
  };
}

/** The id as text: the first member that holds a text or a number. */
export function idOf(value: JsonObject, bytes: Uint8Array, ids: readonly string[]): string | null {
  for (const name of ids) {
    const id = Object.hasOwn(value, name) ? value[name] : undefined;
    if (typeof id === 'string' && id !== '') return id;
    if (typeof id === 'number') return sourceTextAt(bytes, name);
  }
  return null;
}

function isSame(first: Row | undefined, last: Row | undefined): boolean {
  if (first === undefined || last === undefined) return false;
  return first.id === null ? Buffer.compare(first.bytes, last.bytes) === 0 : first.id === last.id;
}

/** A server that knows no offset answers with the whole list again. */
function isWhole(part: Part, rows: readonly Row[]): boolean {
  return rows.length > 1 && part.rows.length === rows.length && isSame(part.rows[0], rows[0]);
}

function ended(rows: readonly Row[], { total }: Part, { doing }: Listed): Answer<Listing> {
  const named = rows.flatMap(({ id }) => (id === null ? [] : [id]));
  const flaw =
    total !== null && total !== rows.length
      ? nonsense(doing, `upstream lists ${rows.length} rows and says there are ${total}`)
      : new Set(named).size < named.length
        ? nonsense(doing, 'an id is listed twice')
        : null;
  return { outcome: 'ok', rows, flaw };
}

function asFar(rows: readonly Row[], flaw: ExportError): Answer<Listing> {
  return { outcome: 'ok', rows, flaw };
}

function looped({ doing }: Listed): ExportError {
  return new ExportError('pagination_loop', `${doing}: upstream's cursors lead in a circle`, {
    next: 'Report it to upstream; nothing is told as removed meanwhile.',
  });
}

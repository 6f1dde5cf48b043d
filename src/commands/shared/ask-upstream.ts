// The requests of `check --connect` and `preview --live` to an upstream: one record of a list, or the first response for a stream that is
// read whole. Invariant: nothing is stored, and no more is requested than is needed to check how the list is read.

import type {
  CollectionStream,
  ListEndpoint,
  ListStream,
  ParentsStream,
  ParsedRecord,
  Stream,
} from '../../contracts/index.ts';
import {
  askObject,
  askSingle,
  doubtError,
  doubtOfFirst,
  doubtOfPosition,
  fetchPage,
  firstPosition,
  type ListPosition,
  nameOfPosition,
  type Page,
  readParentState,
  wholeSecond,
} from '../../fetch/index.ts';

/** Parents tried until one responds: any of them may have been deleted. */
const parentsMax = 3;

/** Requests a stream's first response; returns its first record, null: none. Throws the fault of the response. */
export async function askStream(
  stream: ListStream | CollectionStream,
  signal: AbortSignal,
): Promise<ParsedRecord | null> {
  if (stream.kind === 'list') return await askList(stream, signal);
  if (stream.single === true) {
    const answer = await askSingle(stream, signal);
    if (answer.outcome !== 'ok') throw answer.cause;
  } else await askList(stream.list, signal);
  // The ids of entities are looked for at several paths, and their times are readings'.
  return null;
}

/** Requests the list of one of these parents. Throws the fault of the last one tried. */
export async function askParents(
  stream: ParentsStream,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<ParsedRecord | null> {
  const tried = ids.slice(0, parentsMax);
  for (const [at, id] of tried.entries()) {
    try {
      return await askParent(stream, id, signal);
    } catch (error) {
      if (signal.aborted || at === tried.length - 1) throw error;
    }
  }
  return null;
}

async function askParent(
  stream: ParentsStream,
  id: string,
  signal: AbortSignal,
): Promise<ParsedRecord | null> {
  const list = stream.listOf(id);
  if (list === null) return null;
  if (stream.object === undefined) return await askList(list, signal);
  const known = readParentState(null, Date.now());
  const asked = await askObject(stream, { id, list, known, now: Date.now }, signal);
  if (asked.outcome !== 'done') throw asked.cause;
  if (asked.doubt !== undefined) throw asked.doubt;
  return null;
}

/**
 * Requests one record as upstream sends it; null: there is none. `ids`: known parents. Throws the
 * fault of the response.
 */
export async function liveRecord(
  stream: Exclude<Stream, { readonly kind: 'push' }>,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<Uint8Array | null> {
  if (stream.kind === 'list') return await rawOfFirst(stream, signal);
  if (stream.kind === 'collection') {
    if (stream.single !== true) return await rawOfFirst(stream.list, signal);
    const answer = await askSingle(stream, signal);
    if (answer.outcome !== 'ok') throw answer.cause;
    const [first] = answer.entities;
    return first === undefined ? null : Buffer.from(first.text);
  }
  for (const id of ids.slice(0, parentsMax)) {
    const list = stream.listOf(id);
    const record = list === null ? null : await rawOfFirst(list, signal);
    if (record !== null) return record;
  }
  return null;
}

async function rawOfFirst(stream: ListEndpoint, signal: AbortSignal): Promise<Uint8Array | null> {
  const { page } = await firstPage(stream, signal);
  return page.records.length === 0 ? null : page.records.raw(0);
}

/** Requests the first record of a list; null: the list is empty. Throws the fault of the response. */
export async function askList(
  stream: ListEndpoint,
  signal: AbortSignal,
): Promise<ParsedRecord | null> {
  const { page, place, limit } = await firstPage(stream, signal);
  const doubt = doubtOfFirst(stream, page);
  if (doubt !== null) throw doubtError(stream, doubt);
  if (place.by === 'offset') await askFurther(stream, { page, limit, first: place }, signal);
  return page.records.at(0) ?? null;
}

/** The first page, of one record if upstream accepts that. */
async function firstPage(stream: ListEndpoint, signal: AbortSignal) {
  const windows = stream.pagination.window;
  const now = Date.now();
  const first = firstPosition(stream.pagination);
  const place = windows
    ? { ...first, window: { from: wholeSecond(now - windows.stepMs), to: wholeSecond(now) } }
    : first;
  const limit = stream.pageLimit === null ? null : 1;
  let fetched = await fetchPage(stream, { position: place, limit }, signal);
  if (fetched.outcome === 'refused' && fetched.about === 'limit') {
    fetched = await fetchPage(stream, { position: place, limit: null }, signal);
  }
  if (fetched.outcome === 'refused' && stream.sorting.length > 0) {
    fetched = await fetchPage(stream, { position: place, limit: null, unsorted: true }, signal);
  }
  if (fetched.outcome !== 'ok') throw fetched.cause;
  const { page } = fetched;
  if (page.partial !== null) throw page.partial;
  return { page, place, limit };
}

/** Whether an offset leads to other records. */
async function askFurther(
  stream: ListEndpoint,
  {
    page,
    limit,
    first,
  }: { readonly page: Page; readonly limit: number | null; readonly first: ListPosition },
  signal: AbortSignal,
): Promise<void> {
  const ask = async (offset: number) => {
    const fetched = await fetchPage(
      stream,
      { position: { ...first, by: 'offset', offset }, limit },
      signal,
    );
    if (fetched.outcome !== 'ok') throw fetched.cause;
    return recordsText(fetched.page);
  };
  const before = recordsText(page);
  const { length } = page.records;
  const further = nameOfPosition(stream.pagination) === 'page' ? 1 : length;
  // Rows may move by one between two answers, and records without ids may be alike.
  const isSame = length > 0 && before === (await ask(further)) && before === (await ask(0));
  const { more } = page;
  if (!isSame || (stream.id === null && more === null)) return;
  throw doubtError(stream, doubtOfPosition(stream, more?.likely ?? null));
}

function recordsText({ records }: Page): string {
  return JSON.stringify(Array.from({ length: records.length }, (_, at) => records.at(at)));
}

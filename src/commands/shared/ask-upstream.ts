// What `check --connect` asks of upstream: one record of a list, the first answer of what is read
// whole. What must stay true: nothing is kept of it, and no more is asked than shows whether the
// list is read as it is served.

import type { CollectionStream, ListEndpoint, ListStream } from '../../contracts/source.ts';
import { askSingle } from '../../fetch/collection/reader.ts';
import { fetchPage } from '../../fetch/list/fetch-page.ts';
import {
  firstPlace,
  nameOfPlace,
  type Page,
  type Place,
  wholeSecond,
} from '../../fetch/list/page.ts';
import { doubtError, doubtOfFirst, doubtOfPlace } from '../../fetch/list/paging-doubt.ts';

/** Asks for a stream's first answer. Throws what is wrong with it. */
export async function askStream(
  stream: ListStream | CollectionStream,
  signal: AbortSignal,
): Promise<void> {
  if (stream.kind === 'list') return await askList(stream, signal);
  if (stream.single !== true) return await askList(stream.list, signal);
  const answer = await askSingle(stream, signal);
  if (answer.outcome !== 'ok') throw answer.cause;
}

async function askList(stream: ListEndpoint, signal: AbortSignal): Promise<void> {
  const windows = stream.pagination.window;
  const now = Date.now();
  const first = firstPlace(stream.pagination);
  const place = windows
    ? { ...first, window: { from: wholeSecond(now - windows.stepMs), to: wholeSecond(now) } }
    : first;
  const limit = stream.pageLimit === null ? null : 1;
  let fetched = await fetchPage(stream, { place, limit }, signal);
  if (fetched.outcome === 'refused' && fetched.about === 'limit') {
    fetched = await fetchPage(stream, { place, limit: null }, signal);
  }
  if (fetched.outcome === 'refused' && stream.sorting.length > 0) {
    fetched = await fetchPage(stream, { place, limit: null, unsorted: true }, signal);
  }
  if (fetched.outcome !== 'ok') throw fetched.cause;
  const { page } = fetched;
  const doubt = doubtOfFirst(stream, page);
  if (doubt !== null) throw doubtError(stream, doubt);
  if (place.by === 'offset') await askFurther(stream, { page, limit, first: place }, signal);
}

/** Whether an offset leads to other records. */
async function askFurther(
  stream: ListEndpoint,
  {
    page,
    limit,
    first,
  }: { readonly page: Page; readonly limit: number | null; readonly first: Place },
  signal: AbortSignal,
): Promise<void> {
  const ask = async (offset: number) => {
    const fetched = await fetchPage(
      stream,
      { place: { ...first, by: 'offset', offset }, limit },
      signal,
    );
    if (fetched.outcome !== 'ok') throw fetched.cause;
    return recordsText(fetched.page);
  };
  const before = recordsText(page);
  const { length } = page.records;
  const further = nameOfPlace(stream.pagination) === 'page' ? 1 : length;
  // Rows may move by one between two answers, and records without ids may be alike.
  const isSame = length > 0 && before === (await ask(further)) && before === (await ask(0));
  const { more } = page;
  if (!isSame || (stream.id === null && more === null)) return;
  throw doubtError(stream, doubtOfPlace(stream, more?.likely ?? null));
}

function recordsText({ records }: Page): string {
  return JSON.stringify(Array.from({ length: records.length }, (_, at) => records.at(at)));
}

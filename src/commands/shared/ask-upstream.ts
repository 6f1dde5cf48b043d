// What `check --connect` asks of upstream: one record of a list, the first answer of what is read whole. What must stay true:
// nothing is kept of it, and no more is asked than shows whether the list is read as it is served.

import type { ListStream, SnapshotStream, Stream } from '../../contracts/source.ts';
import type { HttpClient } from '../../contracts/tools.ts';
import { fetchPage } from '../../fetch/list/fetch-page.ts';
import { firstPlace, type Page } from '../../fetch/list/page.ts';
import { doubtError, doubtOfFirst, doubtOfPlace } from '../../fetch/list/paging-doubt.ts';

/** Asks for a stream's first answer. Throws what is wrong with it. */
export async function askStream(
  stream: Stream,
  { signal, witness }: { readonly signal: AbortSignal; readonly witness: Witness },
): Promise<void> {
  if (stream.kind === 'list') await askList(stream, signal);
  else await askSnapshot(stream, { signal, witness });
}

async function askList(stream: ListStream, signal: AbortSignal): Promise<void> {
  const place = firstPlace(stream.pagination);
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
  if (stream.pagination.style === 'offset') await askFurther(stream, { page, limit }, signal);
}

/** Whether an offset leads to other records. */
async function askFurther(
  stream: ListStream,
  { page, limit }: { readonly page: Page; readonly limit: number | null },
  signal: AbortSignal,
): Promise<void> {
  const ask = async (offset: number) => {
    const fetched = await fetchPage(stream, { place: { by: 'offset', offset }, limit }, signal);
    if (fetched.outcome !== 'ok') throw fetched.cause;
    return recordsText(fetched.page);
  };
  const before = recordsText(page);
  const { length } = page.records;
  // Rows may move by one between two answers, and records without ids may be alike.
  const isSame = length > 0 && before === (await ask(length)) && before === (await ask(0));
  const { more } = page;
  if (!isSame || (stream.id === null && more === null)) return;
  throw doubtError(stream, doubtOfPlace(stream, more?.likely ?? null));
}

function recordsText({ records }: Page): string {
  return JSON.stringify(Array.from({ length: records.length }, (_, at) => records.at(at)));
}

/** A snapshot is only ever read whole; its first answer is enough, and ends the reading. */
async function askSnapshot(
  stream: SnapshotStream,
  { signal, witness }: { signal: AbortSignal; witness: Witness },
): Promise<void> {
  const enough = new AbortController();
  witness.onAnswer = () => enough.abort(new Error('answered'));
  try {
    const reading = await stream.readEverything(AbortSignal.any([signal, enough.signal]));
    const failed = reading.outcome !== 'ok' || !reading.complete;
    if (failed && reading.cause !== undefined) throw reading.cause;
  } catch (error) {
    if (!enough.signal.aborted) throw error;
  } finally {
    witness.onAnswer = null;
  }
}

/** The HTTP client, telling of each good answer to a GET: tokens are asked for with POST. */
export interface Witness {
  readonly http: HttpClient;
  onAnswer: (() => void) | null;
}

/** Makes one. */
export function witnessed(http: HttpClient): Witness {
  const witness: Witness = {
    onAnswer: null,
    http: {
      async request(request, signal) {
        const response = await http.request(request, signal);
        if (request.method === 'GET' && response.status === 200) witness.onAnswer?.();
        return response;
      },
      close: () => http.close(),
    },
  };
  return witness;
}

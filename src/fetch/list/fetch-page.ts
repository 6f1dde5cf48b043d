// One page of a list, asked for as its source declares it: the request, and what the answer means.
// The order of query parameters never changes, since a cursor may be bound to the query that it
// came from. The answer's envelope is checked and never guessed at: an answer without its array of
// records says nothing about the list's end.

import type { Failure } from '../../contracts/answer.ts';
import { ExportError } from '../../contracts/errors.ts';
import type { Json } from '../../contracts/json.ts';
import type { ListEndpoint } from '../../contracts/source.ts';
import type { Body, UpstreamRequest } from '../../contracts/upstream.ts';
import { sourceTextAt, valueAt } from '../../tools/records.ts';
import { nonsense, readList } from './body.ts';
import { signOfMore, totalOf } from './more-sign.ts';
import { isFirst, type PageAnswer, type PageQuery } from './page.ts';

/** Statuses that a cursor which upstream no longer takes can meet. */
const cursorStatuses = new Set([400, 404, 409, 410, 422]);
const validationStatuses = new Set([400, 422]);

/** Asks for one page, once. Rejects only with the signal's reason. */
export async function fetchPage(
  stream: ListEndpoint,
  query: PageQuery,
  signal: AbortSignal,
): Promise<PageAnswer> {
  const answer = await stream.upstream.get(requestFor(stream, query), signal);
  if (answer.outcome === 'ok') return readPage(stream, query, answer);
  return answer.outcome === 'refused' ? aboutWhat(stream, query, answer) : answer;
}

function requestFor(
  { request, sorting, pagination }: ListEndpoint,
  { place, limit, unsorted }: PageQuery,
): UpstreamRequest {
  const { style, cursor_param, limit_param, offset_param } = pagination;
  const query = [...request.query, ...(unsorted === true ? [] : sorting)];
  const add = (name: string, value: string | number | null) => {
    if (value !== null) query.push([name, String(value)]);
  };
  add(limit_param, limit);
  if (place.by === 'offset') add(offset_param, place.offset);
  else if (style !== 'none') add(cursor_param, place.cursor);
  return { ...request, query };
}

function readPage(
  { name, pagination, id, ignore }: ListEndpoint,
  query: PageQuery,
  { body, headers }: Body,
): PageAnswer {
  const doing = `reading ${name}`;
  const retry = (cause: ExportError): Failure => ({ outcome: 'retry', cause });
  const { items, style } = pagination;
  const parsed = readList(body, doing, { items, id, ignore });
  if (!parsed.good) return retry(parsed.cause);
  const { records, value, text } = parsed;
  if (records === null) return retry(nonsense(doing, `the answer has no array at ${items}`));
  const isNamed = style === 'cursor' || style === 'shown';
  const next = isNamed ? nextOf(value, text, pagination.next) : undefined;
  if (next === odd) return retry(nonsense(doing, `${pagination.next} is neither text nor null`));
  const total = totalOf(value, pagination.total, headers);
  const more = signOfMore({ ...pagination, value, headers, query, count: records.length });
  const isCounted = valueAt(value, pagination.offset_param) !== undefined;
  return { outcome: 'ok', page: { body, records, next, total, isCounted, more } };
}

const odd = Symbol('odd');

/** Empty text is no cursor: servers write it for "no more". A number keeps its digits. */
function nextOf(
  value: Json,
  text: Uint8Array,
  path: string,
): string | null | undefined | typeof odd {
  const next = valueAt(value, path);
  if (next === undefined || next === null) return next;
  if (typeof next === 'string') return next === '' ? null : next;
  return typeof next === 'number' ? sourceTextAt(text, path) : odd;
}

/** The refusal of a page, with what of its request it is about. */
function aboutWhat(
  { name, pagination, sorting }: ListEndpoint,
  { place, limit, unsorted }: PageQuery,
  refusal: Failure,
): Failure {
  const { status = 0, cause } = refusal;
  // Some name the field with where it stands: `query.cursor`, `/cursor`.
  const field = refusal.field?.split(/[./]/).at(-1);
  const { cursor_param, limit_param, offset_param } = pagination;
  const isValidation = validationStatuses.has(status);
  if (field === 'limit' || field === limit_param) {
    const isLimit = isValidation && limit !== null;
    return isLimit ? { ...refusal, about: 'limit', isNamed: true } : refusal;
  }
  if (isValidation && unsorted !== true && sorting.some(([param]) => param === field)) {
    return { ...refusal, about: 'sort' };
  }
  const mayBe = (...names: string[]) => field === undefined || names.includes(field);
  if (isFirst(place)) {
    return isValidation && mayBe() && limit !== null ? { ...refusal, about: 'limit' } : refusal;
  }
  if (place.by === 'cursor') {
    const isCursor = cursorStatuses.has(status) && mayBe('cursor', cursor_param);
    return isCursor ? { ...refusal, about: 'cursor' } : refusal;
  }
  return isValidation && mayBe(offset_param)
    ? { ...refusal, cause: offsetRefused(name, place.offset, cause) }
    : refusal;
}

function offsetRefused(name: string, offset: number, cause: ExportError): ExportError {
  return new ExportError(
    'upstream_refused',
    `reading ${name}: upstream refuses to go as far as offset ${offset}: ${cause.message}`,
    {
      next: 'Narrow the list with params, or read it newest first with order_by and order; all before this offset is held.',
      details: { ...cause.details, offset },
      cause,
    },
  );
}

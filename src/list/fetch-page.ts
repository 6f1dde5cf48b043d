// Requests one page of a list as its source declares and interprets the response. Invariants: the order of query
// parameters never changes, because a cursor may be bound to its query; a response without its array of records is an
// error and never the end of the list.

import {
  type Body,
  ExportError,
  type Failure,
  invariant,
  type Json,
  type ListEndpoint,
  type Pagination,
  type TimeWindows,
  type UpstreamRequest,
} from '../contracts/index.ts';
import { cleanText, sourceTextAt, timeText, valueAt } from '../tools/index.ts';
import { nonsense, partialEnvelope, partialError, readList } from './body.ts';
import { flagAt, signOfMore, totalOf } from './more-sign.ts';
import { followable, nextLinks, rebased } from './next-address.ts';
import {
  isFirst,
  namesAddress,
  type PageAnswer,
  type PageQuery,
  type TimeWindow,
  withinWindow,
} from './page.ts';

/** Statuses of a rejected cursor. */
const cursorStatuses = new Set([400, 404, 409, 410, 422]);
const validationStatuses = new Set([400, 422]);

/** Requests one page, once. Rejects only with the signal's reason. */
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
  { position, limit, unsorted }: PageQuery,
): UpstreamRequest {
  const { style, cursor_param, limit_param, offset_param } = withinWindow(pagination);
  const { window } = pagination;
  if (position.by === 'cursor' && position.cursor !== null && namesAddress(pagination)) {
    return { ...request, address: position.cursor };
  }
  const parameters: [name: string, value: string | number][] = [];
  const add = (name: string, value: string | number | null) => {
    if (value !== null) parameters.push([name, value]);
  };
  for (const [name, value] of unsorted === true ? [] : sorting) add(name, value);
  add(limit_param, limit);
  if (window !== undefined && position.window !== undefined) {
    const { from, to } = position.window;
    invariant(to !== null, 'a requested window has an end');
    add(window.from_param, timeIn(window, from));
    add(window.to_param, timeIn(window, to));
  }
  if (position.by === 'offset' && style === 'page') {
    add(pagination.page_param ?? 'page', position.offset + (pagination.first_page ?? 1));
  } else if (position.by === 'offset') add(offset_param, position.offset);
  else if (style !== 'none') add(cursor_param, position.cursor);
  if (request.body !== undefined) {
    return { ...request, body: { ...request.body, ...Object.fromEntries(parameters) } };
  }
  const texts = parameters.map(([name, value]) => [name, String(value)] as const);
  return { ...request, query: [...request.query, ...texts] };
}

function timeIn({ time_format: format }: TimeWindows, time: number): string | number {
  if (format === 'rfc3339') return new Date(time).toISOString().replace('.000', '');
  return format === 'epoch_s' ? time / 1_000 : time;
}

function readPage(
  { name, pagination: whole, id, ignore, request, partial: meaning }: ListEndpoint,
  query: PageQuery,
  answer: Body,
): PageAnswer {
  const doing = `reading ${name}`;
  const retry = (cause: ExportError): Failure => ({ outcome: 'retry', cause });
  const pagination = withinWindow(whole);
  const { items } = pagination;
  const isLines = request.response === 'ndjson';
  const parsed = readList(answer.body, doing, { items, id, ignore, isLines });
  if (!parsed.good) return retry(parsed.cause);
  const { body, records, value, text } = parsed;
  const { headers } = answer;
  const isLost = parsed.lost ?? partialEnvelope(value, items);
  const partial = isLost && partialError(doing, isLost, answer.describe);
  if (records === null) {
    return retry(partial ?? nonsense(doing, `the answer has no array at ${items}`));
  }
  const flag = flagAt(value, pagination.more);
  const next = flag === false ? null : nextOf({ value, text, answer }, pagination);
  if (next instanceof Odd) return retry(nonsense(doing, next.what));
  const total = totalOf(value, pagination.total, headers);
  const shown = { ...pagination, value, headers, query, count: records.length };
  const more = flag === false ? null : signOfMore(shown);
  const isCounted = valueAt(value, pagination.offset_param) !== undefined;
  answer.shows?.({ ...(next !== undefined && { next }), records: records.length });
  return {
    outcome: 'ok',
    page: {
      body,
      records,
      next,
      total,
      isCounted,
      more,
      partial: meaning === 'accept' ? null : partial,
    },
  };
}

/** The reason why a next page cannot be followed. */
class Odd {
  readonly what: string;

  constructor(what: string) {
    this.what = what;
  }
}

/**
 * The position of the next page as the response names it; undefined: the response names none, or the style has none.
 */
function nextOf(
  {
    value,
    text,
    answer,
  }: { readonly value: Json; readonly text: Uint8Array; readonly answer: Body },
  { style, next: path, rebase = false }: Pagination,
): string | null | undefined | Odd {
  if (style === 'link') {
    const [target] = nextLinks(answer.headers.link);
    return target === undefined ? null : addressOf(target, answer, rebase);
  }
  if (style !== 'cursor' && style !== 'shown' && style !== 'next_url') return undefined;
  const next = textAt(value, text, path);
  return style === 'next_url' && typeof next === 'string' ? addressOf(next, answer, rebase) : next;
}

function addressOf(address: string, { url }: Body, rebase: boolean): string | Odd {
  const followed = (rebase ? rebased : followable)(address, url);
  if (followed !== null) return followed;
  const host = cleanText(URL.parse(address, url)?.host ?? '', 100);
  const solution = rebase
    ? ''
    : '; if that is this upstream behind a proxy, set pagination.rebase: true';
  return new Odd(
    `its next page is at another origin (${host}), to which no request is sent${solution}`,
  );
}

/** The cursor at `path`. Empty text is no cursor: servers write it for "no more". A number keeps its digits. */
function textAt(value: Json, text: Uint8Array, path: string): string | null | undefined | Odd {
  const next = valueAt(value, path);
  if (next === undefined || next === null) return next;
  if (typeof next === 'string') return next === '' ? null : next;
  if (typeof next === 'number') return sourceTextAt(text, path);
  return new Odd(`${path} is neither text nor null`);
}

/** A rejected page request, with the part of the request that caused the rejection. */
function aboutWhat(
  { name, pagination, sorting }: ListEndpoint,
  { position, limit, unsorted }: PageQuery,
  refusal: Failure,
): Failure {
  const { status = 0, cause } = refusal;
  // Some servers name the field with its location: `query.cursor`, `/cursor`.
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
  if (isFirst(position)) {
    const { window } = position;
    const reported = window && isValidation ? windowRefused(name, window, cause) : cause;
    const isLimit = isValidation && mayBe() && limit !== null;
    return { ...refusal, cause: reported, ...(isLimit && { about: 'limit' }) };
  }
  if (position.by === 'cursor') {
    const isCursor = cursorStatuses.has(status) && mayBe('cursor', cursor_param);
    return isCursor ? { ...refusal, about: 'cursor' } : refusal;
  }
  const isPage = withinWindow(pagination).style === 'page';
  const isPosition = isPage ? mayBe(pagination.page_param ?? '') : mayBe(offset_param);
  if (!(isPage ? cursorStatuses.has(status) : isValidation) || !isPosition) return refusal;
  return { ...refusal, cause: offsetRefused(name, position, isPage, cause) };
}

function windowRefused(name: string, { from, to }: TimeWindow, cause: ExportError): ExportError {
  const window = `the window from ${timeText(from)} to ${timeText(to)}`;
  return new ExportError(
    'upstream_refused',
    `reading ${name}: upstream refuses ${window}: ${cause.message}`,
    {
      next: 'Choose a shorter pagination.step, or look at from_param, to_param and time_format; all before this window is held.',
      details: cause.details,
      cause,
    },
  );
}

function offsetRefused(
  name: string,
  { offset, window }: { readonly offset: number; readonly window?: TimeWindow },
  isPage: boolean,
  cause: ExportError,
): ExportError {
  const where = isPage ? `the ${offset + 1}. page` : `offset ${offset}`;
  const narrow =
    window === undefined
      ? 'Narrow the list with params, or read it newest first with order_by and order'
      : 'Choose a shorter pagination.step';
  const beyond =
    'If upstream refuses requests after the last page, set its flag for more pages as pagination.more.';
  return new ExportError(
    'upstream_refused',
    `reading ${name}: upstream refuses to go as far as ${where}: ${cause.message}`,
    {
      next: `${narrow}; all before this offset is held.${isPage ? ` ${beyond}` : ''}`,
      details: { ...cause.details, offset },
      cause,
    },
  );
}

// What the answer of a list endpoint means: a whole page, or why there is none. The envelope is checked and never
// guessed at: an answer without its array of records says nothing about the list's end. What shows that the endpoint is
// paged otherwise than configured is noticed on the way (more.ts).

import { ExportError } from '../../../src/contracts/errors.ts';
import type { Json } from '../../../src/contracts/json.ts';
import type { Fetched, PageQuery } from '../../../src/contracts/source.ts';
import type { UpstreamAnswer } from '../../../src/contracts/upstream.ts';
import { sourceTextAt, valueAt } from '../../../src/tools/records.ts';
import type { ListSettings } from './fields.ts';
import { nonsense, readList } from './json-body.ts';
import { signOfMore, totalOf } from './more.ts';

/** What an answer was the answer to. */
export interface Asked {
  /** Begins each message, e.g. `reading audit`. */
  readonly doing: string;
  readonly query: PageQuery;
  readonly pagination: ListSettings['pagination'];
  /** Query parameters that ask for an order. */
  readonly sorting: readonly (readonly [name: string, value: string])[];
  /** Dotted path of a record's id, and those that are no part of its content. */
  readonly id: string | null;
  readonly ignore: readonly string[];
}

type Refused = Extract<UpstreamAnswer, { outcome: 'refused' }>;
type RefusedAbout = Extract<Fetched, { outcome: 'refused' }>['about'];

/** Statuses that a cursor which upstream no longer takes can meet. */
const cursorStatuses = new Set([400, 404, 409, 410, 422]);
const validationStatuses = new Set([400, 422]);

/** Tells what an answer means for the stream. */
export function interpret(answer: UpstreamAnswer, asked: Asked): Fetched {
  switch (answer.outcome) {
    case 'ok':
      return readPage(answer, asked);
    case 'retry':
    case 'denied':
      return answer;
    case 'refused':
      return readRefusal(answer, asked);
  }
}

function readPage(
  { body, headers }: Extract<UpstreamAnswer, { outcome: 'ok' }>,
  { doing, query, pagination, id, ignore }: Asked,
): Fetched {
  const retry = (cause: ExportError): Fetched => ({ outcome: 'retry', cause });
  const parsed = readList(body, doing, { items: pagination.items, id, ignore });
  if (!parsed.good) return retry(parsed.cause);
  const { records } = parsed;
  if (records === null)
    return retry(nonsense(doing, `the answer has no array at ${pagination.items}`));
  const next =
    pagination.style === 'cursor' ? nextOf(parsed.value, body, pagination.next) : undefined;
  if (next === odd) return retry(nonsense(doing, `${pagination.next} is neither text nor null`));
  const total = totalOf(parsed.value, pagination.total, headers);
  const { value } = parsed;
  const more = signOfMore({ ...pagination, value, headers, query, count: records.length });
  return { outcome: 'page', page: { body, items: records.items, records, next, total, more } };
}

const odd = Symbol('odd');

/** Empty text can be no cursor: servers write it for "no more". A number keeps its digits as they were sent. */
function nextOf(
  value: Json,
  body: Uint8Array,
  path: string,
): string | null | undefined | typeof odd {
  const next = valueAt(value, path);
  if (next === undefined || next === null) return next;
  if (typeof next === 'string') return next === '' ? null : next;
  return typeof next === 'number' ? sourceTextAt(body, path) : odd;
}

function readRefusal(answer: Refused, { doing, query, pagination, sorting }: Asked): Fetched {
  const { status, cause } = answer;
  if (status === 451) return { outcome: 'blocked', cause };
  const refused = (about: RefusedAbout, why = cause): Extract<Fetched, { outcome: 'refused' }> => ({
    outcome: 'refused',
    about,
    status,
    cause: why,
  });
  // Some name the field with where it stands: `query.cursor`, `/cursor`.
  const field = answer.field?.split(/[./]/).at(-1);
  const { place, limit } = query;
  const isFirst = place.by === 'cursor' ? place.cursor === null : place.offset === 0;
  if (field === 'limit' || (field !== undefined && field === pagination.limit_param)) {
    const isLimit = validationStatuses.has(status) && limit !== null;
    return isLimit ? { ...refused('limit'), isNamed: true } : refused('request');
  }
  if (validationStatuses.has(status) && sorting.some(([name]) => name === field)) {
    return refused('sort');
  }
  const cursorSent = place.by === 'cursor' && !isFirst;
  const namesCursor =
    field === undefined || field === 'cursor' || field === pagination.cursor_param;
  if (cursorSent && namesCursor && cursorStatuses.has(status)) return refused('cursor');
  if (!validationStatuses.has(status)) return refused('request');
  if (field === undefined && isFirst && limit !== null) return refused('limit');
  if (
    place.by === 'offset' &&
    !isFirst &&
    (field === undefined || field === pagination.offset_param)
  ) {
    return refused('request', offsetRefused(doing, place.offset, cause));
  }
  return refused('request');
}

function offsetRefused(doing: string, offset: number, cause: ExportError): ExportError {
  return new ExportError(
    'upstream_refused',
    `${doing}: upstream refuses to go as far as offset ${offset}: ${cause.message}`,
    {
      next: 'Narrow the list with params, or read it newest first with order_by and order; all before this offset is held.',
      details: { ...cause.details, offset },
      cause,
    },
  );
}

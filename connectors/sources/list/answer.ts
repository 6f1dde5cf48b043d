// What the answer of a list endpoint means: a whole page, or why there is none. The envelope is checked and never
// guessed at: an answer without its array of records says nothing about the list's end. What shows that the endpoint is
// paged otherwise than configured is noticed on the way (more.ts).

import type { Answer, Failure } from '../../../src/contracts/answer.ts';
import { ExportError } from '../../../src/contracts/errors.ts';
import type { Json } from '../../../src/contracts/json.ts';
import type { PageAnswer, PageQuery } from '../../../src/contracts/source.ts';
import type { Body } from '../../../src/contracts/upstream.ts';
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

/** Statuses that a cursor which upstream no longer takes can meet. */
const cursorStatuses = new Set([400, 404, 409, 410, 422]);
const validationStatuses = new Set([400, 422]);

/** Tells what an answer means for the stream. */
export function interpret(answer: Answer<Body>, asked: Asked): PageAnswer {
  if (answer.outcome === 'ok') return readPage(answer, asked);
  return answer.outcome === 'refused' ? readRefusal(answer, asked) : answer;
}

function readPage(
  { body, headers }: Body,
  { doing, query, pagination, id, ignore }: Asked,
): PageAnswer {
  const retry = (cause: ExportError): Failure => ({ outcome: 'retry', cause });
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
  return { outcome: 'ok', page: { body, items: records.items, records, next, total, more } };
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

function readRefusal(answer: Failure, { doing, query, pagination, sorting }: Asked): Failure {
  const { status = 0, cause } = answer;
  // Some name the field with where it stands: `query.cursor`, `/cursor`.
  const field = answer.field?.split(/[./]/).at(-1);
  const { place, limit } = query;
  const isFirst = place.by === 'cursor' ? place.cursor === null : place.offset === 0;
  if (field === 'limit' || (field !== undefined && field === pagination.limit_param)) {
    const isLimit = validationStatuses.has(status) && limit !== null;
    return isLimit ? { ...answer, about: 'limit', isNamed: true } : answer;
  }
  if (validationStatuses.has(status) && sorting.some(([name]) => name === field)) {
    return { ...answer, about: 'sort' };
  }
  const cursorSent = place.by === 'cursor' && !isFirst;
  const namesCursor =
    field === undefined || field === 'cursor' || field === pagination.cursor_param;
  if (cursorSent && namesCursor && cursorStatuses.has(status)) {
    return { ...answer, about: 'cursor' };
  }
  if (!validationStatuses.has(status)) return answer;
  if (field === undefined && isFirst && limit !== null) return { ...answer, about: 'limit' };
  if (
    place.by === 'offset' &&
    !isFirst &&
    (field === undefined || field === pagination.offset_param)
  ) {
    return { ...answer, cause: offsetRefused(doing, place.offset, cause) };
  }
  return answer;
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

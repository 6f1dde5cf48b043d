// The config keys of every source that reads list endpoints: where the records stand, how the endpoint is paged, and
// how the engine is to read it. What the upstream documents leave open has a default that is right under most
// servers, and a key for the rest.

import { z } from 'zod';
import type { ListReading, RecordReading, Settings } from '../../../src/contracts/definition.ts';
import { count, duration } from '../../../src/contracts/settings.ts';

const dottedPath = () => z.string().min(1);

/** How a list endpoint is paged, and what its parameters and members are called. */
const paginationFields = {
  style: z
    .enum(['cursor', 'offset', 'none'])
    .default('cursor')
    .describe('cursor: the answer names the next page; offset: rows are counted; none: one answer'),
  cursor_param: z.string().min(1).default('cursor').describe('query parameter of the cursor'),
  limit_param: z.string().min(1).default('limit').describe('query parameter of the page’s size'),
  offset_param: z.string().min(1).default('offset').describe('query parameter of the offset'),
  items: z
    .string()
    .default('data')
    .describe(
      'path of the records within the answer; an answer that is itself an array is read as such',
    ),
  next: dottedPath().default('next_cursor').describe('path of the next page’s cursor'),
  total: dottedPath()
    .nullable()
    .default('total')
    .describe(
      'path of the list’s length, where there is one; null: nothing is concluded from lengths',
    ),
};

/** The keys that all list sources have; `path` is each source's own. */
export const listFields = {
  params: z
    .record(z.string().min(1), z.string())
    .default({})
    .describe('fixed query parameters, sent with each request'),
  page_limit: count(1, 100_000)
    .nullable()
    .default(100)
    .describe('records a page, sent as limit=; learned down if refused; null: not sent'),
  start: z
    .string()
    .refine(
      (text) => startOf(text) !== null,
      'expected beginning, now or an RFC 3339 time such as 2026-01-31T00:00:00Z',
    )
    .transform((text) => startOf(text) ?? 'beginning')
    .prefault('beginning')
    .describe(
      'where a new stream begins: beginning; now: what the list holds is left out, unless it turns up later, up to lookback late; or an RFC 3339 time: what happened before is left out',
    ),
  lookback: duration().prefault('10m').describe('how late a record may turn up and still be found'),
  rewind_every: duration().prefault('15m').describe('how often late records are looked for'),
  reconcile_every: duration()
    .prefault('1h')
    .describe('how often the whole list is read again while its order or tail is not proven'),
  on_cursor_invalid: z
    .enum(['rewalk', 'halt', 'from_now'])
    .default('rewalk')
    .describe(
      'when a cursor is refused for good: read the list again without repeats, halt, or go on from now and tell the sinks of the gap',
    ),
  id: dottedPath()
    .nullable()
    .default('id')
    .describe('path of a record’s id; null: records have none'),
  ignore: z
    .array(dottedPath())
    .default([])
    .describe(
      'paths within a record that make no new version of it, such as an age or a counter that differs at each reading',
    ),
  time: z
    .array(dottedPath())
    .default(['timestamp', 'time', 'created_at'])
    .describe('paths of a record’s time; the first that parses wins'),
  pagination: z
    .strictObject(paginationFields)
    .prefault({})
    .describe('how the endpoint is paged, and its names'),
};

/** The parsed keys that the reading of a list needs. */
export type ListSettings = Settings<typeof listFields> & {
  readonly path: string;
  readonly order: ListReading['order'];
};

/** How the engine reads the list. */
export function listReading(settings: ListSettings): ListReading {
  return {
    order: settings.order,
    start: settings.start,
    lookbackMs: settings.lookback,
    rewindEveryMs: settings.rewind_every,
    reconcileEveryMs: settings.reconcile_every,
    onCursorInvalid: settings.on_cursor_invalid,
  };
}

/** Where the normaliser finds id and time. */
export function recordReading({ id, time }: Pick<ListSettings, 'id' | 'time'>): RecordReading {
  return { id, time };
}

/** Fixed parameters that would clash with those of paging; null when none does. */
export function paramsFlaw({ params, pagination }: ListSettings): string | null {
  const { cursor_param, limit_param, offset_param } = pagination;
  const clash = [cursor_param, limit_param, offset_param].find((name) => name in params);
  return clash === undefined
    ? null
    : `params holds ${clash}, which paging sets itself: use page_limit or pagination instead`;
}

function startOf(text: string): ListReading['start'] | null {
  if (text === 'beginning' || text === 'now') return text;
  const isTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/i.test(text);
  const time = isTime ? Date.parse(text) : Number.NaN;
  return Number.isFinite(time) ? time : null;
}

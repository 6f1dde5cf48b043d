// The config keys for the requests and the paging of a list endpoint, for every source that reads
// one. A key of another style than the configured one is a flaw, because it would have no effect.

import { z } from 'zod';
import { count, duration } from '../../src/contracts/config.ts';
import type { JsonObject, Pagination, UpstreamRequest } from '../../src/contracts/index.ts';

const name = () => z.string().min(1);

const styles = ['cursor', 'offset', 'page', 'link', 'next_url', 'window', 'none'] as const;

/** The default paging style of a source's endpoint. */
export type Style = (typeof styles)[number];

const names = () => ({
  cursor_param: name().default('cursor').describe('query parameter of the cursor'),
  limit_param: name().default('limit').describe('query parameter of the page’s size'),
  offset_param: name().default('offset').describe('query parameter of the offset'),
  page_param: name().optional().describe('page: query parameter of the number; else page'),
  size_param: name().optional().describe('page: query parameter of the size; else page_size'),
  first_page: count(0, 1).optional().describe('page: the number of the first page; else 1'),
  items: z
    .string()
    .default('data')
    .describe('path of the records within the response; a response may also be an array'),
  next: name()
    .default('next_cursor')
    .describe('path of the next page’s cursor, or with next_url of its address'),
  more: name().optional().describe('path of a flag for more records'),
  rebase: z
    .boolean()
    .optional()
    .describe(
      'link, next_url: request a next address with another scheme or host at the origin of base_url',
    ),
  total: name()
    .nullable()
    .default('total')
    .describe('path of the list’s length, if present; null: lengths are ignored'),
});

const windows = () => ({
  from_param: name().optional().describe('window: query parameter of the start; else from'),
  to_param: name().optional().describe('window: query parameter of the exclusive end; else to'),
  step: duration()
    .refine((ms) => ms >= 1_000 && ms % 1_000 === 0, 'expected whole seconds')
    .optional()
    .describe('window: longest window; else 1h'),
  lag: duration()
    .optional()
    .describe('window: records younger than this are not requested yet; else 30s'),
  time_format: z
    .enum(['rfc3339', 'epoch_s', 'epoch_ms'])
    .optional()
    .describe('window: format of start and end; else rfc3339'),
  within: z
    .enum(['cursor', 'offset', 'page'])
    .optional()
    .describe('window: paging within each window; else cursor'),
});

const kinds =
  'cursor: the response names the next page; offset: counts rows; page: counts pages; link: a Link header has the next page’s address; next_url: a member has the address; none: one response';

const answers = () => ({
  method: z
    .enum(['GET', 'POST'])
    .default('GET')
    .describe('POST: the parameters of paging and order go into a JSON body'),
  body: z.record(name(), z.unknown()).optional().describe('fixed members of the body'),
  response: z
    .enum(['json', 'ndjson'])
    .default('json')
    .describe('ndjson: each line of the response is a record'),
});

/** The keys for the requests and the paging of a list of records. */
export const requestFields = (style: Style) => ({
  pagination: z
    .strictObject({
      style: z
        .enum(styles)
        .default(style)
        .describe(`${kinds}; window: time windows are requested one after another`),
      ...names(),
      ...windows(),
    })
    .prefault({})
    .describe('paging of the endpoint, and names of its parameters'),
  ...answers(),
});

/** As `requestFields`, for a list that is read as a whole: without windows. */
export const wholeRequestFields = () => ({
  pagination: z
    .strictObject({
      style: z
        .enum(styles)
        .exclude(['window'])
        .optional()
        .describe(`${kinds}; default: as the first response shows`),
      ...names(),
    })
    .prefault({})
    .describe('paging of the list, and names of its parameters'),
  ...answers(),
});

type Output<F extends () => z.core.$ZodShape> = Readonly<z.output<z.ZodObject<ReturnType<F>>>>;

/** The parsed settings. */
export interface PagingSettings extends Output<typeof answers> {
  readonly pagination: { readonly style?: Style | undefined } & Output<typeof names> &
    Output<typeof windows>;
}

const ofPages = ['page_param', 'size_param', 'first_page'] as const;
const ofWindows = ['from_param', 'to_param', 'step', 'lag', 'time_format', 'within'] as const;

/** In the engine's form. */
export function paginationOf({ pagination }: Pick<PagingSettings, 'pagination'>): Pagination {
  const { page_param, size_param, first_page, more, rebase, ...rest } = pagination;
  const { from_param, to_param, step, lag, time_format, within, style = 'shown', ...paging } = rest;
  const pages = isByNumber(pagination) && {
    page_param: page_param ?? 'page',
    limit_param: size_param ?? 'page_size',
    first_page: first_page ?? 1,
  };
  const window = style === 'window' && {
    window: {
      from_param: from_param ?? 'from',
      to_param: to_param ?? 'to',
      time_format: time_format ?? 'rfc3339',
      within: within ?? 'cursor',
      stepMs: step ?? 3_600_000,
      lagMs: lag ?? 30_000,
    },
  };
  const flags = { ...(more !== undefined && { more }), ...(rebase === true && { rebase }) };
  return { style, ...paging, ...flags, ...pages, ...window };
}

function isByNumber({ style, within }: PagingSettings['pagination']): boolean {
  return style === 'page' || (style === 'window' && within === 'page');
}

/** The part that all requests share, except the path. */
export function requestOf({
  method,
  body,
  response,
}: PagingSettings): Pick<UpstreamRequest, 'body' | 'response'> {
  return {
    ...(method === 'POST' && { body: (body ?? {}) as JsonObject }), // Parsed YAML.
    ...(response === 'ndjson' && { response }),
  };
}

/**
 * Parts of a fingerprint (see ListStream): another query is another list; another paging reads the
 * same list from its start. Keys of newer versions are absent if unused.
 */
export function fingerprintParts(settings: PagingSettings): {
  readonly query: readonly (readonly [string, string])[];
  readonly paging: readonly unknown[];
} {
  const { method, body = {}, response } = settings;
  const { style, items, next, total: _, ...names } = paginationOf(settings);
  // The address of a page does not make it another list.
  const { cursor_param, offset_param, limit_param, rebase: _r, ...newer } = names;
  const more = { ...newer, ...(isByNumber(settings.pagination) && { limit_param }) };
  const isNewer = Object.keys(more).length > 0 || response === 'ndjson';
  return {
    query: method === 'POST' ? [['POST', JSON.stringify(body)]] : [],
    paging: [
      ...[style, [items, next, cursor_param, offset_param]],
      ...(isNewer ? [more, response] : []),
    ],
  };
}

/** A conflict between the keys; null: none. */
export function requestFlaw(
  settings: PagingSettings & { readonly params?: object; readonly start?: unknown },
): string | null {
  const { pagination, method, body, response, params = {}, start } = settings;
  const { style, within = 'cursor', more } = pagination;
  const given = (keys: readonly (keyof typeof pagination)[]) =>
    keys.find((key) => pagination[key] !== undefined);
  const ofOther =
    (isByNumber(pagination) ? undefined : given(ofPages)) ??
    (style === 'window' ? undefined : given(ofWindows));
  if (ofOther !== undefined)
    return `pagination.${ofOther} has no meaning with style ${style ?? 'cursor, offset or none (not set)'}`;
  if (style === 'window' && start === 'beginning') {
    return 'pagination of style window needs start: the time of the first window, or now';
  }
  if (body !== undefined && method !== 'POST') return 'body needs method: POST';
  const isAddress = style === 'link' || style === 'next_url';
  if (pagination.rebase === true && !isAddress) {
    return `pagination.rebase needs style link or next_url, and style is ${style ?? 'not set'}`;
  }
  if (method === 'POST' && isAddress) {
    return `method: POST has no parameter to put into its body with pagination of style ${style}`;
  }
  const paged = style === 'window' ? within : style;
  const isShown = paged === undefined || paged === 'cursor' || paged === 'next_url';
  if (response === 'ndjson' && (isShown || more !== undefined)) {
    return 'response: ndjson cannot carry a cursor, an address or a flag: use link, offset, page or none';
  }
  const clash = parametersOf(settings).find((one) => one in params || one in (body ?? {}));
  return clash === undefined
    ? null
    : `${clash in params ? 'params' : 'body'} holds ${clash}, which paging sets itself: use page_limit or pagination instead`;
}

/** The styles in which a key of every style has an effect. */
const effects = {
  cursor_param: ['cursor'],
  offset_param: ['offset'],
  limit_param: ['cursor', 'offset', 'link', 'next_url', 'none'],
  next: ['cursor', 'next_url'],
} as const satisfies Partial<Record<keyof ReturnType<typeof names>, readonly Style[]>>;

/** Advice about keys that were changed and have no effect with the configured style. */
export function requestAdvice({ pagination }: Pick<PagingSettings, 'pagination'>): string[] {
  const { style, within = 'cursor' } = pagination;
  const paged = style === 'window' ? within : style;
  // A placeholder may stand for any style.
  if (!styles.some((one) => one === paged)) return [];
  const defaults = z.strictObject(names()).parse({});
  return (Object.keys(effects) as (keyof typeof effects)[]).flatMap((key) => {
    const fitting: readonly string[] = effects[key];
    if (pagination[key] === defaults[key] || fitting.includes(paged ?? '')) return [];
    const setting = style === 'window' ? 'within' : 'style';
    const instead = key === 'limit_param' ? 'use size_param' : `set ${setting}: ${fitting[0]}`;
    return `pagination.${key} has no effect with ${setting}: ${paged}: remove the key, or ${instead}`;
  });
}

function parametersOf(settings: PagingSettings): readonly string[] {
  const { cursor_param, limit_param, offset_param, page_param, window } = paginationOf(settings);
  const names = [cursor_param, limit_param, offset_param, page_param];
  return [...names, window?.from_param, window?.to_param].flatMap((one) => one ?? []);
}

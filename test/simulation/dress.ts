// The same server with another interface: its parameters and its next-page links, in the styles of paging beside cursor
// and offset. Drawn apart from the traits, so that a seed is the same server as before.

import type { Pagination } from '../../src/contracts/source.ts';
import type { UpstreamRequest } from '../../src/contracts/upstream.ts';
import type { PageQuery, TimeWindow } from '../../src/list/page.ts';
import type { Random } from '../../src/sandbox/random.ts';
import { pagination, queryIn } from '../support/made-up-list.ts';
import type { Traits } from './traits.ts';

/** How a list is paged as its reader sees it. */
export interface Dress {
  readonly style: Pagination['style'];
  /** With `window`: how each is paged. */
  readonly within: 'cursor' | 'offset' | 'page';
  /** A flag says whether there is more, and a cursor stands there always. */
  readonly flagged: boolean;
  /** The response after the last page, if pages have numbers; a rejection has a flag before it. */
  readonly beyond: 'nothing' | 'last' | 'refusal';
  readonly stepMs: number;
  readonly lagMs: number;
  /** Parameters stand in a JSON body. */
  readonly posted: boolean;
  /** An answer is lines, a record each, and nothing beside them. */
  readonly lines: boolean;
  /** A length that is wrong is left alone. */
  readonly total: string | null;
}

const minuteMs = 60_000;

/** Draws one that fits. */
export function dressOf({ paging, cursor, total, shared }: Traits, random: Random): Dress {
  const isOpen = cursor.end !== 'endless' && cursor.end !== 'again' && cursor.end !== 'same';
  const styles: Record<string, readonly Pagination['style'][]> = {
    cursor: ['cursor', 'cursor', 'link', 'next_url', 'window'],
    offset: ['offset', 'page', 'page', 'window'],
  };
  const drawn = random.pick(styles[paging] ?? [paging]);
  // That its cursors lead to the same page again and again looks like a window of which no more is shown.
  const isStuck = paging === 'cursor' && cursor.end === 'again';
  const style = drawn === 'window' && isStuck ? 'next_url' : drawn;
  const beyond = random.pick(['nothing', 'nothing', 'last', 'refusal'] as const);
  const within = paging === 'offset' ? random.pick(['offset', 'page'] as const) : 'cursor';
  const flagged = style === 'cursor' && isOpen && random.chance(0.3);
  // If no end is marked, each window takes many requests.
  const stepMs = random.pick([
    isOpen ? 5 * minuteMs : 60 * minuteMs,
    60 * minuteMs,
    600 * minuteMs,
  ]);
  const isAddress = style === 'link' || style === 'next_url';
  const posted = !isAddress && random.chance(0.2);
  // There is no position for a cursor or a flag beside lines.
  const isFlagged = isNumbered({ style, within }) && beyond === 'refusal';
  const isBare = style === 'link' || (paging !== 'cursor' && style !== 'next_url');
  const lines = isBare && !isFlagged && random.chance(0.3);
  // Rows of two pages that share an id look like rows that have moved, which count but once.
  const isMiscounted = shared && style === 'window' && within === 'page';
  const isWrong = total === 'wrong' && (style === 'window' || beyond === 'last');
  return {
    ...{ style, within, flagged, beyond, stepMs, posted, lines },
    total: isWrong || isMiscounted ? null : 'total',
    lagMs: style === 'window' ? 3_000 : 0,
  };
}

/** True where pages have numbers. */
export function isNumbered({ style, within }: Pick<Dress, 'style' | 'within'>): boolean {
  return style === 'page' || (style === 'window' && within === 'page');
}

/** As the config would have it. */
export function pagingOf(dress: Dress): Pagination {
  const { style, within, beyond, stepMs, lagMs, total } = dress;
  const flagged = dress.flagged || (isNumbered(dress) && beyond === 'refusal');
  const times = { from_param: 'from', to_param: 'to', time_format: 'epoch_ms' } as const;
  return {
    ...pagination,
    ...{ style, total },
    ...(style === 'next_url' && { next: 'paging.next' }),
    ...(flagged && { more: 'has_more' }),
    ...(isNumbered(dress) && { page_param: 'page', first_page: 1 }),
    ...(style === 'window' && { window: { ...times, within, stepMs, lagMs } }),
  };
}

/** What all its requests have in common. */
export function requestOf({ posted, lines }: Dress): UpstreamRequest {
  const request = { path: '/list', template: '/list', query: [] };
  return { ...request, ...(posted && { body: {} }), ...(lines && { response: 'ndjson' }) };
}

/** The page that a request is for. */
export function askedFor(
  request: UpstreamRequest,
  dress: Dress,
): PageQuery & { readonly window: TimeWindow | null } {
  const { address, body } = request;
  const named = address === undefined ? [] : new URL(address, 'http://upstream').searchParams;
  const posted = Object.entries(body ?? {}).map(([name, value]) => [name, String(value)] as const);
  const query = address === undefined ? [...request.query, ...posted] : [...named];
  const { page, from, to } = Object.fromEntries(query);
  const plain = queryIn({ ...request, query });
  const window = from === undefined ? null : { from: Number(from), to: Number(to) };
  // In pages, until the server knows how long they are.
  const position = isNumbered(dress)
    ? ({ by: 'offset', offset: Number(page) - 1 } as const)
    : plain.position;
  return { ...plain, position, window };
}

/** What an answer has beside its records: a member each, and headers. */
export function envelopeOf(
  next: string | null | undefined,
  query: PageQuery,
  { style, flagged }: Dress,
): { readonly members: object; readonly headers: Readonly<Record<string, string>> } {
  const limit = query.limit === null ? '' : `&limit=${query.limit}`;
  const address =
    typeof next === 'string' ? `/list?cursor=${encodeURIComponent(next)}${limit}` : next;
  if (style === 'next_url') return { members: { paging: { next: address } }, headers: {} };
  if (style === 'link') {
    const first = '</list>; rel="first"';
    const links = typeof address === 'string' ? `<${address}>; rel="next", ${first}` : first;
    return { members: {}, headers: { link: links } };
  }
  const has_more = typeof next === 'string';
  const members = flagged
    ? { has_more, next_cursor: next ?? '{"after":null}' }
    : { next_cursor: next };
  return { members, headers: {} };
}

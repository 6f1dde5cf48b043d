// The same lists in paging styles that neither document shows, for clients configured for
// them: at /api/lists/v1/companies/{company_id}/{list}/{style}. `list` is `web` (log records), or
// hosts, tickets, block-list-entries. Pages are cut as for all lists, and formatted in the style
// last, so faults and behaviours are the same for all.
//   page      ?page=1&page_size=     {data, page, page_size, total_pages, total}
//   link      ?limit=&cursor=        a bare array; Link: <address>; rel="next"
//   next-url  ?limit=&cursor=        {data, paging: {next: address or null}}
//   window    ?from=&to=             needs both; within it cursor, or offset, or page
//   search    POST {limit, cursor}   {data, limit, next_cursor, prev_cursor}; or with offset
//   ndjson    ?limit=&cursor=        a record a line; Link as above; or with offset, without
//   more      ?limit=&cursor=        {data, has_more, cursor}, a cursor at the end, too; or offset
import { failed, type SandboxPage, type SandboxRequest, type ShapedPage } from './answers.ts';
import { entityList } from './entity-list.ts';
import { GrowingList, logPath, type PagedList } from './lists.ts';
import { cursorPage, offsetPage, type Paged } from './paging.ts';
import {
  forCompany,
  pageAnswer,
  pageCutOf,
  type SandboxRoute,
  seen,
  type World,
} from './routes.ts';

type Style = (ask: SandboxRequest, list: PagedList, world: World) => Paged;
type Shape = NonNullable<SandboxPage['shape']>;

const STYLES: Readonly<Record<string, Style>> = {
  page: numberedPage,
  link: (ask, list, world) => shapedAs(pageOf(ask, list, world), linked(ask, arrayOf)),
  'next-url': (ask, list, world) => shapedAs(pageOf(ask, list, world), nextAddress(ask)),
  window: windowPage,
  search: searchedPage,
  ndjson: (ask, list, world) => shapedAs(pageOf(ask, list, world), linked(ask, linesOf)),
  more: flaggedPage,
};

/** The endpoints of all styles. */
export const STYLE_ROUTES: readonly SandboxRoute[] = Object.entries(STYLES).map(([name, style]) =>
  forCompany({
    path: `/api/lists/v1/companies/{company_id}/{list}/${name}`,
    method: name === 'search' ? 'POST' : 'GET',
    answer(ask, { company_id: company = '', list: named = '' }, world) {
      const list = listOf(world, company, named);
      return list === null
        ? failed(ask.api, { status: 404, message: 'no such list' })
        : pageAnswer(ask, style(ask, list, world));
    },
  }),
);

function listOf(world: World, company: string, name: string): PagedList | null {
  if (name === 'web') return world.lists.get(logPath(company, 'web')) ?? null;
  const collection = [...world.collections.values()].find(
    ({ plan }) => plan.company === company && plan.path.endsWith(`/${name}`),
  );
  return collection === undefined ? null : entityList(collection);
}

function pageOf(ask: SandboxRequest, list: PagedList, world: World): Paged {
  const style = ask.query.has('offset') ? offsetPage : cursorPage;
  return style(seen(ask, list, world), pageCutOf(ask, world));
}

function shapedAs(paged: Paged, shape: Shape): Paged {
  return paged.outcome === 'refused' ? paged : { ...paged, page: { ...paged.page, shape } };
}

function numberedPage(ask: SandboxRequest, list: PagedList, world: World): Paged {
  const [number, size] = [ask.query.get('page') ?? '1', ask.query.get('page_size') ?? '100'];
  if (!/^[1-9]\d{0,8}$/.test(number)) return refused('page', 'must be a whole number, 1 or more');
  const offset = String((Number(number) - 1) * Number(size));
  const query = new URLSearchParams({ limit: size, offset });
  return shapedAs(pageOf({ ...ask, query }, list, world), (page) => {
    const [limit, total] = [numberIn(page, 'limit'), numberIn(page, 'total')];
    const total_pages = Math.ceil(total / limit);
    return json(page, { page: Number(number), page_size: limit, total_pages, total });
  });
}

function windowPage(ask: SandboxRequest, list: PagedList, world: World): Paged {
  const [from, to] = ['from', 'to'].map((name) => timeOf(ask.query.get(name) ?? ''));
  if (from === undefined || Number.isNaN(from)) return refused('from', 'must be a time');
  if (to === undefined || Number.isNaN(to)) return refused('to', 'must be a time');
  if (!(list instanceof GrowingList)) return refused('from', 'does not apply to this list');
  const style = ask.query.has('page') ? numberedPage : pageOf;
  return style(ask, list.within(from, to), world);
}

function flaggedPage(ask: SandboxRequest, list: PagedList, world: World): Paged {
  // The cursor is also on the last page: only the flag marks the end.
  const behaviour = (path: string) => ({ ...world.behaviour(path), tail: 'same' as const });
  const always = pageOf(ask, list, { ...world, behaviour });
  return shapedAs(pageOf(ask, list, world), (page) => {
    if (ask.query.has('offset')) {
      const [offset, total] = [numberIn(page, 'offset'), numberIn(page, 'total')];
      return json(page, { has_more: offset + page.items().length < total, offset });
    }
    const next = page.fields.get('next_cursor');
    const has_more = next !== undefined && next !== 'null';
    const last = always.outcome === 'page' ? always.page.fields.get('next_cursor') : undefined;
    return json(page, { has_more, cursor: JSON.parse((has_more ? next : last) ?? 'null') });
  });
}

// Treats the JSON body's members as query parameters.
function searchedPage(ask: SandboxRequest, list: PagedList, world: World): Paged {
  try {
    const body: unknown = JSON.parse(ask.body);
    const members = Object.entries(Object(body)).map(([name, value]) => [name, String(value)]);
    return pageOf({ ...ask, query: new URLSearchParams(members) }, list, world);
  } catch {
    return refused('body', 'must be JSON');
  }
}

function linked(
  ask: SandboxRequest,
  body: (page: SandboxPage) => Omit<ShapedPage, 'headers'>,
): Shape {
  return (page) => {
    const [next, first] = [addressAfter(ask, page), addressOf(ask, page, null)];
    const links = [...(next === null ? [] : [`<${next}>; rel="next"`]), `<${first}>; rel="first"`];
    return { ...body(page), headers: { link: links.join(', ') } };
  };
}

function nextAddress(ask: SandboxRequest): Shape {
  return (page) => json(page, { paging: { next: addressAfter(ask, page) } });
}

function arrayOf(page: SandboxPage): Omit<ShapedPage, 'headers'> {
  return { text: `[${page.items().join(',')}]`, type: 'application/json' };
}

function linesOf(page: SandboxPage): Omit<ShapedPage, 'headers'> {
  const text = page.items().map((item) => `${item}\n`);
  return { text: text.join(''), type: 'application/x-ndjson' };
}

function json(page: SandboxPage, fields: object): ShapedPage {
  const rest = JSON.stringify(fields).slice(1);
  const text = `{"data":[${page.items().join(',')}],${rest}`;
  return { headers: {}, text, type: 'application/json' };
}

function addressAfter(ask: SandboxRequest, page: SandboxPage): string | null {
  const next: unknown = JSON.parse(page.fields.get('next_cursor') ?? 'null');
  return typeof next === 'string' ? addressOf(ask, page, next) : null;
}

function addressOf(ask: SandboxRequest, page: SandboxPage, cursor: string | null): string {
  const query = new URLSearchParams(ask.query);
  query.delete('cursor');
  if (cursor !== null) query.set('cursor', cursor);
  const origin = page.origin ?? `${ask.scheme}://${ask.headers.host}`;
  return `${origin}${ask.path}?${query}`;
}

function numberIn(page: SandboxPage, field: string): number {
  return Number(page.fields.get(field) ?? Number.NaN);
}

/** RFC 3339, or seconds or milliseconds since 1970. */
function timeOf(text: string): number {
  if (!/^\d+$/.test(text)) return Date.parse(text);
  return Number(text) * (text.length > 11 ? 1 : 1000);
}

function refused(field: string, message: string): Paged {
  return { outcome: 'refused', failure: { status: 400, message: `${field} ${message}`, field } };
}

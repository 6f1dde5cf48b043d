// The earlier form of the ledger, as the services document's table describes the API before it: camelCase names,
// integer ids, pages by number, an API key, plain errors. Every record is made from the text that the later forms
// serve, so the three differ in form only. Details missing from the document (paths of audit events and block lists,
// the envelope) are the sandbox's own.
import { failed, type SandboxPage, type SandboxRequest, type SandboxResponse } from './answers.ts';
import type { Collection } from './collection.ts';
import { entityList } from './entity-list.ts';
import type { PagedList } from './lists.ts';
import { offsetPage, type Paged } from './paging.ts';
import { hostsPath, listedHost } from './resources/fleet.ts';
import { listPath } from './resources/threat-lists.ts';
import { ticketEvents, ticketsPath } from './resources/tickets.ts';
import {
  pageAnswer,
  pageCutOf,
  type SandboxRoute,
  sandboxCollectionOf,
  seen,
  type World,
} from './routes.ts';

/** Prefix of its addresses; `base_url` ends with it. */
export const EARLIER_BASE = '/earlier/v1';

/** The path of its audit events. */
export const EARLIER_AUDIT_PATH = `${EARLIER_BASE}/audit/events`;

/** The earlier API's endpoints. */
export const EARLIER_ROUTES: readonly SandboxRoute[] = [
  route('/audit/events', (_params, { lists }) => lists.get(EARLIER_AUDIT_PATH) ?? null),
  route('/tickets', (_params, world) => entitiesOf(world, ticketsPath)),
  route('/tickets/{ticket_id}/events', ({ ticket_id: id = '' }, world) => {
    for (const company of world.companies) {
      const tickets = sandboxCollectionOf(world, ticketsPath(company));
      const index = tickets.indexOf(id);
      const moment = index === null ? null : tickets.moment(index);
      if (moment !== null) return textList(ticketEvents(moment).map(textOf));
    }
    return null;
  }),
  route('/hosts', (_params, world) => entitiesOf(world, hostsPath, listedHost)),
  route('/utp/block-list', (_params, world) =>
    entitiesOf(world, (company) => listPath(company, 'block-list-entries')),
  ),
  route('/utp/exclusion-list', (_params, world) =>
    entitiesOf(world, (company) => listPath(company, 'exclusion-list-entries')),
  ),
];

/** A record's text in the earlier form, identical except for names and ids. */
export function earlierText(text: string): string {
  // In JSON a quote within a text is escaped, so only names match.
  const named = text.replace(/"([a-z\d]+(?:_[a-z\d]+)+)":/g, (_, name: string) => {
    return `"${name.replace(/_([a-z\d])/g, (_all, deadLetter: string) => deadLetter.toUpperCase())}":`;
  });
  return named.replace(/"(id|[a-z]\w*Id)":"([1-9]\d{0,14})"/g, '"$1":$2');
}

function route(
  below: string,
  find: (params: Readonly<Record<string, string>>, world: World) => PagedList | null,
): SandboxRoute {
  return {
    path: `${EARLIER_BASE}${below}`,
    answer(ask, params, world) {
      const list = find(params, world);
      return list === null
        ? failed(ask.api, { status: 404, message: 'not found' })
        : numberedAnswer(ask, list, world);
    },
  };
}

/** `?page=1&page_size=100`, as `{data, page, pageSize, totalPages, total}`. */
function numberedAnswer(ask: SandboxRequest, list: PagedList, world: World): SandboxResponse {
  const [page, size] = [ask.query.get('page') ?? '1', ask.query.get('page_size') ?? '100'];
  if (![page, size].every((number) => /^[1-9]\d{0,8}$/.test(number))) {
    return failed(ask.api, { status: 400, message: 'page and page_size are numbers from 1' });
  }
  const limit = Math.min(Number(size), world.limitMax);
  const query = new URLSearchParams({
    limit: String(limit),
    offset: String((Number(page) - 1) * limit),
  });
  const cut: Paged = offsetPage(seen(ask, list, world), pageCutOf({ ...ask, query }, world));
  return pageAnswer(ask, cut.outcome === 'refused' ? cut : { ...cut, page: named(cut.page, page) });
}

function named(page: SandboxPage, number: string): SandboxPage {
  const [pageSize, total] = ['limit', 'total'].map((name) => Number(page.fields.get(name)));
  const totalPages = Math.ceil((total ?? 0) / (pageSize ?? 1));
  const fields = Object.entries({ page: number, pageSize, totalPages, total });
  return { ...page, fields: new Map(fields.map(([name, value]) => [name, String(value)])) };
}

/** Of all companies: the earlier API names a company only in its records. */
function entitiesOf(
  world: World,
  path: (company: string) => string,
  shown?: (entity: object) => object,
): PagedList {
  const collections = world.companies.map((company) => sandboxCollectionOf(world, path(company)));
  return textList(collections.flatMap((one) => textsOf(one, shown)));
}

function textsOf(collection: Collection, shown?: (entity: object) => object): readonly string[] {
  const list = entityList(collection, shown === undefined ? {} : { shown });
  return Array.from({ length: list.size() }, (_, index) => earlierText(list.textAt(index)));
}

function textOf(value: object): string {
  return earlierText(JSON.stringify(value));
}

function textList(texts: readonly string[]): PagedList {
  return {
    path: EARLIER_BASE,
    size: () => texts.length,
    first: () => 0,
    visible: () => true,
    dense: () => true,
    textAt: (index) => texts[index] ?? 'null',
  };
}

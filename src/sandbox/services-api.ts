// The services API's read endpoints: logs of a company in all three list styles, its firewall, the
// fleet, tickets and the IANA look-ups. The document shows no path for logs; those here are the
// sandbox's own, and log sources have to be configured with them as with a real platform.
import { type Answer, type Ask, failed, ok } from './answers.ts';
import { SITES } from './company.ts';
import type { Firewall } from './firewall.ts';
import { fixedList, type PagedList } from './lists.ts';
import { cursorAnswer, offsetAnswer, type Route, type World } from './routes.ts';

/** The growing lists of a company, by the last part of their path. */
export const LOG_LISTS = ['events', 'web', 'all'] as const;

/** Where a company's log list is served. */
export function logPath(company: string, list: (typeof LOG_LISTS)[number]): string {
  return `/api/logs/v1/companies/${encodeURIComponent(company)}/${list}`;
}

const COMPANY = '/companies/{company_id}';
const FIREWALL = `/api/firewall/v1${COMPANY}`;
const TICKETS = `/api/ticketing/v1${COMPANY}/tickets`;

/** When the deprecated endpoint ends, as RFC 9745 (a structured date) and RFC 8594 write it. */
const SUNSET_S = Date.UTC(2026, 11, 31) / 1000;
const DEPRECATED = {
  deprecation: `@${SUNSET_S}`,
  sunset: new Date(SUNSET_S * 1000).toUTCString(),
  link: '</docs/fleet-v2>; rel="deprecation"',
};

/** The services API's endpoints, token endpoint excepted. */
export const SERVICES_ROUTES: readonly Route[] = [
  log('events', cursorAnswer),
  log('web', (ask, list, world) => {
    const orderBy = ask.query.get('order_by');
    const order = ask.query.get('order');
    if (orderBy !== null && orderBy !== 'timestamp')
      return wrong(ask, 'order_by', 'must be timestamp');
    if (order !== null && order !== 'ASC' && order !== 'DESC')
      return wrong(ask, 'order', 'must be ASC or DESC');
    return offsetAnswer(ask, list, world);
  }),
  log('all', (_ask, list) => {
    const data: string[] = [];
    for (let index = list.first(); index < list.size(); index += 1) {
      if (list.visible(index)) data.push(list.textAt(index));
    }
    const page = {
      items: () => data,
      joined: () => Buffer.from(data.join(',')),
      fields: new Map<string, string>(),
      startCursor: () => 'null',
    };
    return { status: 200, headers: {}, content: { form: 'page', page } };
  }),
  firewall('/objects', (ask, held, { world }) => {
    return offsetAnswer(ask, fixedList(ask.path, held.objects(world.now())), world);
  }),
  firewall('/policies', (ask, held, { world }) => {
    const policies = held
      .policies(world.now())
      .map(({ forward_rules, nat_rules, ...metadata }) => ({
        ...metadata,
        forward_rule_count: forward_rules.length,
        nat_rule_count: nat_rules.length,
      }));
    return offsetAnswer(ask, fixedList(ask.path, policies), world);
  }),
  firewall('/policies/{policy_id}', (ask, held, { params, world }) => {
    const policy = held.policies(world.now()).find(({ id }) => id === params.policy_id);
    return policy === undefined
      ? failed(ask.api, { status: 404, message: 'no such policy' })
      : ok(policy);
  }),
  lookup('/api/firewall/v1/ip-protocols', [
    [1, 'ICMP'],
    [6, 'TCP'],
    [17, 'UDP'],
    [47, 'GRE'],
    [50, 'ESP'],
    [58, 'IPv6-ICMP'],
  ]),
  lookup('/api/firewall/v1/icmp-types', [
    [0, 'Echo Reply'],
    [3, 'Destination Unreachable'],
    [8, 'Echo'],
    [11, 'Time Exceeded'],
  ]),
  lookup('/api/firewall/v1/icmpv6-types', [
    [1, 'Destination Unreachable'],
    [128, 'Echo Request'],
    [129, 'Echo Reply'],
  ]),
  forCompany(`/api/fleet/v1${COMPANY}`, (_ask, { company_id: id }) =>
    ok({ id, name: `Company ${id}`, hosts: SITES.length }),
  ),
  forCompany(`/api/fleet/v1${COMPANY}/hosts`, (ask, { company_id: company = '' }, world) => {
    const answer = offsetAnswer(ask, fixedList(ask.path, hostsOf(company)), world);
    return { ...answer, headers: { ...answer.headers, ...DEPRECATED } };
  }),
  forCompany(TICKETS, (ask, { company_id: company = '' }, world) => {
    return offsetAnswer(ask, fixedList(ask.path, ticketsOf(company)), world);
  }),
  forCompany(`${TICKETS}/{ticket_id}/events`, (ask, { ticket_id: ticket = '' }, world) => {
    const entries = ['created', 'comment', 'status_changed'].map((type, n) => ({
      id: `${ticket}-${n + 1}`,
      ticket_id: ticket,
      type,
      created_at: new Date(Date.UTC(2026, 0, 5 + n)).toISOString(),
    }));
    return cursorAnswer(ask, fixedList(ask.path, entries), world);
  }),
];

function log(
  name: (typeof LOG_LISTS)[number],
  answer: (ask: Ask, list: PagedList, world: World) => Answer,
): Route {
  return forCompany(
    `/api/logs/v1${COMPANY}/${name}`,
    (ask, { company_id: company = '' }, world) => {
      const list = world.lists.get(logPath(company, name));
      return list === undefined
        ? failed(ask.api, { status: 404, message: 'no such log' })
        : answer(ask, list, world);
    },
  );
}

interface FirewallAsk {
  readonly params: Readonly<Record<string, string>>;
  readonly world: World;
}

function firewall(
  path: string,
  answer: (ask: Ask, held: Firewall, more: FirewallAsk) => Answer,
): Route {
  return forCompany(`${FIREWALL}${path}`, (ask, params, world) => {
    const held = world.firewalls.get(params.company_id ?? '');
    return held === undefined
      ? failed(ask.api, { status: 404, message: 'no such company' })
      : answer(ask, held, { params, world });
  });
}

function forCompany(path: string, answer: Route['answer']): Route {
  return {
    path,
    answer(ask, params, world) {
      const known = world.companies.includes(params.company_id ?? '');
      return known
        ? answer(ask, params, world)
        : failed(ask.api, { status: 404, message: 'no such company' });
    },
  };
}

function lookup(path: string, rows: readonly (readonly [number, string])[]): Route {
  return {
    path,
    answer: () =>
      ok({ data: rows.map(([number, name]) => ({ id: String(number), number, name })) }),
  };
}

function wrong(ask: Ask, field: string, message: string): Answer {
  return failed(ask.api, { status: 400, message: `${field} ${message}`, field });
}

function hostsOf(company: string): readonly object[] {
  return SITES.map((site) => ({
    id: `host-${site.id.slice(5)}`,
    company_id: company,
    name: `fw-${site.id.slice(5)}`,
    site: site.name,
    status: site.status,
  }));
}

function ticketsOf(company: string): readonly object[] {
  return SITES.map((site, n) => ({
    id: `tkt-${4711 + n}`,
    company_id: company,
    customer_reference: n % 3 === 0 ? `CHG|${n}=\\open` : null,
    subject: `Rule change at ${site.name}`,
    status: n % 4 === 0 ? 'open' : 'closed',
  }));
}

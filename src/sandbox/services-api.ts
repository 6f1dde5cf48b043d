// The endpoints of the services API: all GETs of its document, and the logs of a company in all three list styles. The
// document shows no path for logs; these are the sandbox's own, and log sources must be configured with them, as with a
// real platform.
import { failed, ok, type SandboxRequest, type SandboxResponse } from './answers.ts';
import type { Firewall } from './firewall.ts';
import { ICMP_TYPES, ICMPV6_TYPES, IP_PROTOCOLS, type LookupRow } from './iana.ts';
import { fixedList, type LOG_LISTS, logPath, type PagedList } from './lists.ts';
import { CHANGE_ROUTES } from './resources/changes.ts';
import { FLEET_ROUTES } from './resources/fleet.ts';
import { THREAT_LIST_ROUTES } from './resources/threat-lists.ts';
import { TICKET_ROUTES } from './resources/tickets.ts';
import {
  cursorAnswer,
  forCompany,
  offsetAnswer,
  plainAnswer,
  type SandboxRoute,
  type World,
} from './routes.ts';
import { STYLE_ROUTES } from './styles.ts';

/** The path of audit events in the form that succeeds the earlier API. */
export const LOGS_AUDIT_PATH = '/api/logs/v1/audit';

const COMPANY = '/companies/{company_id}';
const FIREWALL = `/api/firewall/v1${COMPANY}`;

/** The endpoints of the services API, without tokens and description. */
export const SERVICES_ROUTES: readonly SandboxRoute[] = [
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
  {
    path: LOGS_AUDIT_PATH,
    about: null,
    answer(ask, _params, world) {
      const list = world.lists.get(LOGS_AUDIT_PATH);
      if (list === undefined) return failed(ask.api, { status: 404, message: 'no such log' });
      return (ask.query.has('offset') ? offsetAnswer : cursorAnswer)(ask, list, world);
    },
  },
  log('all', (_ask, list) => plainAnswer(list)),
  firewall('/objects', 'All firewall objects of a company', (ask, held, { world }) => {
    return offsetAnswer(ask, fixedList(ask.path, held.objects(world.now())), world);
  }),
  firewall('/policies', 'The metadata of policies', (ask, held, { world }) => {
    const policies = held
      .policies(world.now())
      .map(({ forward_rules, nat_rules, ...metadata }) => ({
        ...metadata,
        forward_rule_count: forward_rules.length,
        nat_rule_count: nat_rules.length,
      }));
    return offsetAnswer(ask, fixedList(ask.path, policies), world);
  }),
  firewall(
    '/policies/{policy_id}',
    'A policy with all its rules',
    (ask, held, { params, world }) => {
      const policy = held.policies(world.now()).find(({ id }) => id === params.policy_id);
      return policy === undefined
        ? failed(ask.api, { status: 404, message: 'no such policy' })
        : ok(policy);
    },
  ),
  lookup('ip-protocols', IP_PROTOCOLS),
  lookup('icmp-types', ICMP_TYPES),
  lookup('icmpv6-types', ICMPV6_TYPES),
  ...FLEET_ROUTES,
  ...TICKET_ROUTES,
  ...THREAT_LIST_ROUTES,
  ...CHANGE_ROUTES,
  ...STYLE_ROUTES,
];

function log(
  name: (typeof LOG_LISTS)[number],
  answer: (ask: SandboxRequest, list: PagedList, world: World) => SandboxResponse,
): SandboxRoute {
  return forCompany({
    path: `/api/logs/v1${COMPANY}/${name}`,
    answer(ask, { company_id: company = '' }, world) {
      const list = world.lists.get(logPath(company, name));
      return list === undefined
        ? failed(ask.api, { status: 404, message: 'no such log' })
        : answer(ask, list, world);
    },
  });
}

interface FirewallAsk {
  readonly params: Readonly<Record<string, string>>;
  readonly world: World;
}

function firewall(
  path: string,
  about: string,
  answer: (ask: SandboxRequest, held: Firewall, more: FirewallAsk) => SandboxResponse,
): SandboxRoute {
  return forCompany({
    path: `${FIREWALL}${path}`,
    about,
    query: path.endsWith('}') ? [] : ['limit', 'offset'],
    answer(ask, params, world) {
      const held = world.firewalls.get(params.company_id ?? '');
      return held === undefined
        ? failed(ask.api, { status: 404, message: 'no such company' })
        : answer(ask, held, { params, world });
    },
  });
}

function lookup(name: string, data: readonly LookupRow[]): SandboxRoute {
  return {
    path: `/api/firewall/v1/${name}`,
    about: `The IANA registry of ${name.replace('-', ' ')}`,
    answer: () => ok({ data }),
  };
}

function wrong(ask: SandboxRequest, field: string, message: string): SandboxResponse {
  return failed(ask.api, { status: 400, message: `${field} ${message}`, field });
}

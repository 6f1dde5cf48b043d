// The fleet: a company as one object, its hosts as an offset list, and each host by id with fields that the list does
// not show, so some changes are visible only there.
import { failed, ok } from '../answers.ts';
import type { CollectionPlan, EntityContext } from '../collection.ts';
import { ADMINS, privateAddress, publicAddress, SITES } from '../company.ts';
import { entityList } from '../entity-list.ts';
import { lifeOf } from '../life.ts';
import { forCompany, offsetAnswer, type SandboxRoute, sandboxCollectionOf } from '../routes.ts';

const COMPANY = '/api/fleet/v1/companies/{company_id}';
const CORE = SITES.length;

/** When the deprecated endpoint ends, as RFC 9745 (a structured date) and RFC 8594 write it. */
const SUNSET_S = Date.UTC(2026, 11, 31) / 1000;
const DEPRECATED = {
  deprecation: `@${SUNSET_S}`,
  sunset: new Date(SUNSET_S * 1000).toUTCString(),
  link: '</docs/fleet-v2>; rel="deprecation"',
};

/** The path of a company's hosts. */
export function hostsPath(company: string): string {
  return `${companyPath(company)}/hosts`;
}

function companyPath(company: string): string {
  return `/api/fleet/v1/companies/${encodeURIComponent(company)}`;
}

/** The company itself. */
export function companyPlan(company: string): CollectionPlan {
  return {
    kind: 'company',
    path: companyPath(company),
    company,
    life: lifeOf({ core: 1, start: 1, ages: [0, 0, 0] }),
    ids: { prefix: '', first: 0, core: [company] },
    record: companyRecord,
  };
}

/** A company's hosts; `start` at the start. `no` numbers companies, so that ids are unique. */
export function hostsPlan(
  company: string,
  no: number,
  { start = CORE + 26, digits }: { readonly start?: number | undefined; readonly digits: boolean },
): CollectionPlan {
  const [before, first] = [digits ? '' : 'host-', 1_000 + no * 10_000_000];
  return {
    kind: 'host',
    path: hostsPath(company),
    company,
    life: lifeOf({ core: CORE, start, ages: [0, 1, 3] }),
    ids: {
      ...{ prefix: before, first },
      core: digits
        ? SITES.map((_, index) => String(first + index))
        : SITES.map(({ id }) => hostId(id.slice(5), no)),
    },
    record: (moment) => hostRecord(moment, company),
  };
}

/** The fleet's endpoints. */
export const FLEET_ROUTES: readonly SandboxRoute[] = [
  forCompany({
    path: COMPANY,
    about: 'A company',
    answer: (_ask, { company_id: company = '' }, world) =>
      ok(sandboxCollectionOf(world, companyPath(company)).entity(0)),
  }),
  forCompany({
    path: `${COMPANY}/hosts`,
    about: 'The hosts of a company',
    query: ['limit', 'offset'],
    deprecated: true,
    answer(ask, { company_id: company = '' }, world) {
      const hosts = sandboxCollectionOf(world, hostsPath(company));
      const answer = offsetAnswer(ask, entityList(hosts, { shown: listedHost }), world);
      // An API to which another one moves has no end of its own.
      if (world.isSuccessor) return answer;
      return { ...answer, headers: { ...answer.headers, ...DEPRECATED } };
    },
  }),
  {
    path: '/api/fleet/v1/hosts/{host_id}',
    about: 'One host',
    answer(ask, { host_id: id = '' }, world) {
      for (const company of world.companies) {
        const hosts = sandboxCollectionOf(world, hostsPath(company));
        const index = hosts.indexOf(id);
        if (index !== null && hosts.stands(index)) return ok(hosts.entity(index));
      }
      return failed(ask.api, { status: 404, message: 'no such host' });
    },
  },
];

// The hosts in log records and policies belong to the first company; the others have similar ones.
function hostId(code: string, no: number): string {
  return no === 0 ? `host-${code}` : `host-${code}-${no + 1}`;
}

function companyRecord({ id, version, times, base, fresh }: EntityContext): object {
  const contact = base.pick(ADMINS);
  return {
    company_id: id,
    name: `Company ${id} – Müller & Söhne AG`,
    legal_name: null,
    plan: version === 0 ? 'premium' : fresh.pick(['premium', 'premium', 'standard']),
    contacts: [{ name: contact.name, email: contact.email, role: 'technical' }],
    time_zone: 'Europe/Zurich',
    settings: {
      mfa_required: true,
      session_minutes: version === 0 ? 60 : 15 * (1 + fresh.below(8)),
    },
    updated_at: times.at(-1),
  };
}

function hostRecord(
  { id, index, version, times, base, fresh }: EntityContext,
  company: string,
): object {
  const site = SITES[index] ?? base.pick(SITES);
  // Every other change is visible only on the host's own endpoint.
  const shown = version - (version % 2);
  const serial = `${base.hex(8)}${base.hex(4)}`.toUpperCase();
  const updates = Array.from({ length: shown / 2 }, () => fresh.below(2)).length;
  return {
    host_id: id,
    company_id: company,
    name: `fw-${index < CORE ? site.id.slice(5) : id.slice(5)}`,
    site: site.name,
    ...(index % 13 !== 6 && { status: index % 17 === 9 ? 'unreachable' : 'online' }),
    model: base.pick(['SX-200', 'SX-200', 'SX-400', 'vSX']),
    software_version: `7.${base.below(4)}.${updates}`,
    updated_at: times[shown] ?? times[0],
    serial_number: index % 11 === 2 ? null : serial,
    interfaces: [
      { name: 'wan0', address: publicAddress(base), mtu: 1_500 },
      {
        name: 'lan0',
        address: `${privateAddress(base)}/24`,
        mtu: 9_000,
        vlans: [10, 20 + version],
      },
    ],
    high_availability: { role: base.pick(['primary', 'standby', 'none']), peer: null },
    licences: version % 2 === 1 ? ['firewall', 'ndr', 'web'] : ['firewall', 'ndr'],
    configured_at: times.at(-1),
  };
}

/** The listed fields of a host. */
export function listedHost(host: object): object {
  const shown = [
    'host_id',
    'company_id',
    'name',
    'site',
    'status',
    'model',
    'software_version',
    'updated_at',
  ];
  return Object.fromEntries(Object.entries(host).filter(([field]) => shown.includes(field)));
}

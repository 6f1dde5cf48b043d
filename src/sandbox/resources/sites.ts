// Sites, at `/v1/sites`: the core sites change bandwidth and status; pop-up sites are created, active for a while and
// decommissioned. The document shows seven fields; the others are plausible, and some sites lack one.
import type { CollectionPlan, EntityContext } from '../collection.ts';
import { SITES } from '../company.ts';
import { entityList } from '../entity-list.ts';
import { lifeOf } from '../life.ts';
import { cursorAnswer, type SandboxRoute, sandboxCollectionOf } from '../routes.ts';

const PATH = '/v1/sites';
const CORE = SITES.length;

/** The sites; `start` of them at the start. */
export function sitesPlan(start = CORE + 6): CollectionPlan {
  return {
    kind: 'site',
    path: PATH,
    company: null,
    life: lifeOf({ core: CORE, start, ages: [0, 1, 2] }),
    ids: { prefix: 'site_', first: 5_000, core: SITES.map(({ id }) => id) },
    record: siteRecord,
    verb: (op, version) =>
      ({
        created: 'create',
        updated: version === 1 ? 'activate' : 'update',
        deleted: 'decommission',
      })[op],
  };
}

/** `GET /v1/sites`, with both filters. */
export const SITES_ROUTE: SandboxRoute = {
  path: PATH,
  scope: 'platform:read',
  about: 'Sites, filtered by status and region',
  query: ['limit', 'cursor', 'status', 'region'],
  answer(ask, _params, world) {
    const filters = ['status', 'region'].flatMap((field) => {
      const requested = ask.query.get(field);
      return requested === null ? [] : [(site: object) => Reflect.get(site, field) === requested];
    });
    const list = entityList(sandboxCollectionOf(world, PATH), {
      keep: (site) => filters.every((filter) => filter(site)),
    });
    return cursorAnswer(ask, list, world);
  },
};

const POP_UP_STATUS = ['provisioning', 'active', 'active', 'decommissioning'];

function siteRecord({ id, index, version, times, base, fresh }: EntityContext): object {
  const created_at = times[0];
  const updated_at = times.at(-1);
  const known = SITES[index];
  if (known !== undefined) {
    if (version === 0) return { ...known, created_at, updated_at };
    const status = fresh.chance(0.2) ? 'degraded' : 'active';
    const bandwidth_mbps = fresh.pick([500, 1_000, 2_000, 4_000, 10_000]);
    return { ...known, status, bandwidth_mbps, created_at, updated_at };
  }
  const near = base.pick(SITES);
  return {
    id,
    name: `${near.name} pop-up ${index - CORE + 1}`,
    ...(index % 9 !== 4 && { region: near.region }),
    status: POP_UP_STATUS[Math.min(version, 3)],
    ztna: index % 7 === 3 ? null : base.chance(0.7),
    bandwidth_mbps: 100 * (1 + fresh.below(20)),
    ha: false,
    labels: index % 2 === 0 ? ['pop-up', `cost-center=${4_000 + index}`] : [],
    created_at,
    updated_at,
  };
}

// Web categories, at `/v1/web/categories`: URL and application categories in one response without pages. The vendor's
// categories change their risk; a tenant's are created and deleted.
import type { CollectionPlan, EntityContext } from '../collection.ts';
import { entityList } from '../entity-list.ts';
import { lifeOf } from '../life.ts';
import { plainAnswer, type SandboxRoute, sandboxCollectionOf } from '../routes.ts';

const PATH = '/v1/web/categories';

const VENDOR =
  'malware phishing command-and-control newly-seen-domains parked-domains proxies-anonymizers adult ' +
  'gambling weapons drugs hate violence business finance government healthcare education news sports ' +
  'travel shopping auctions social-networking streaming games dating chat webmail file-sharing ' +
  'cloud-storage remote-access software-updates cdn advertising search-engines ai-assistants ' +
  'cryptocurrency job-search real-estate uncategorized';
const VENDOR_IDS = VENDOR.split(' ');
const SECURITY = 6;

/** The categories; `start` of them at the start. */
export function webCategoriesPlan(start = VENDOR_IDS.length + 6): CollectionPlan {
  return {
    kind: 'web_category',
    path: PATH,
    company: null,
    life: lifeOf({ core: VENDOR_IDS.length, start, ages: [0, 2, 4] }),
    ids: { prefix: 'custom-', first: 1, core: VENDOR_IDS },
    record: categoryRecord,
  };
}

/** `GET /v1/web/categories`. */
export const WEB_CATEGORIES_ROUTE: SandboxRoute = {
  path: PATH,
  scope: 'platform:read',
  about: 'URL and application categories',
  answer: (_ask, _params, world) => plainAnswer(entityList(sandboxCollectionOf(world, PATH))),
};

function categoryRecord({ id, index, version, times, base, fresh }: EntityContext): object {
  const vendor = index < VENDOR_IDS.length;
  const name = vendor ? id.replaceAll('-', ' ') : `Tenant list ${index} (“${base.hex(4)}”)`;
  return {
    id,
    name,
    type: base.chance(0.8) ? 'url' : 'application',
    group: index < SECURITY ? 'security' : vendor ? 'content' : 'custom',
    risk: index < SECURITY ? 5 : version === 0 ? 1 + base.below(4) : 1 + fresh.below(5),
    ...(index % 5 !== 2 && { description: `Sites about ${name}; see "help" | category=${index}` }),
    members: vendor ? null : Array.from({ length: 1 + version }, (_, n) => `list${n}.example.net`),
    updated_at: times.at(-1),
  };
}

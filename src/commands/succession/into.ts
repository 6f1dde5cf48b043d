// Where successors are read: the config's upstream with api: services, or a new block for one, with its open values.
// Invariant: the block contains no secret.

import type { Config, UpstreamSettings } from '../../config/index.ts';
import { isObject, type JsonObject } from '../../contracts/index.ts';

/** An upstream: its name and whole block, and its open values. */
export interface Into {
  readonly name: string;
  readonly block: JsonObject;
  readonly isNew: boolean;
  readonly notes: readonly string[];
}

const openCompany = 'COMPANY_ID';

/** The services upstream of the config, or one to be added; `old`: the first that ends. */
export function intoOf(config: Config, ending: ReadonlyMap<string, string>, old: string): Into {
  const all = Object.entries(config.upstreams).filter(([, { api }]) => api === 'services');
  const lasting = all.filter(([name]) => !ending.has(name));
  // Another version of a service is usually at the same address.
  const services = lasting.length > 0 ? lasting : all;
  const found = services.find(([, { companies }]) => companies.length > 0) ?? services[0];
  const companies = companiesOf(config.upstreams[old]);
  if (found !== undefined) {
    const [name, settings] = found;
    const others = services.length - 1;
    const block = blockAt(config, 'upstreams', name);
    const lacks = settings.companies.length === 0;
    return {
      name,
      isNew: false,
      block: lacks ? { ...block, companies } : block,
      notes: [
        ...(others > 0
          ? [
              `the config has ${services.length} upstreams with api: services; check that ${name} is the one`,
            ]
          : []),
        ...(lacks ? ['companies: name the company ids; their paths need them'] : []),
      ],
    };
  }
  const name =
    ['services', 'services_api', 'successor'].find(
      (one) => !Object.hasOwn(config.upstreams, one),
    ) ?? 'successor_api';
  return {
    name,
    isNew: true,
    block: {
      api: 'services',
      base_url: 'https://svc.example.com',
      auth: {
        client_id: '${env:SERVICES_CLIENT_ID:-open}',
        client_secret: '${env:SERVICES_CLIENT_SECRET:-open}',
        scope: 'urn:vendor:api:public',
      },
      companies,
    },
    notes: [
      'base_url, scope and companies are open: set them to the values of the new API',
      'create an API user with read access in the operations portal, and give its id and secret as SERVICES_CLIENT_ID and SERVICES_CLIENT_SECRET',
    ],
  };
}

function companiesOf(old: UpstreamSettings | undefined): readonly string[] {
  return old === undefined || old.companies.length === 0 ? [openCompany] : old.companies;
}

/** A block as it is written, without its secrets. */
export function blockAt(
  { kept }: Config,
  section: 'sources' | 'upstreams',
  name: string,
): JsonObject {
  const blocks = isObject(kept) ? kept[section] : null;
  const block = isObject(blocks ?? null) ? (blocks as JsonObject)[name] : null;
  return isObject(block ?? null) ? (block as JsonObject) : {};
}

// The firewall configuration of a company: objects, policies and each policy's rules, read
// completely and reported as changes. The document shows the three endpoints and not their fields,
// so entities are known by their ids alone. Shared objects are in each company's list. A removed
// policy is confirmed by a request for its id; an object has no such request, so its removal
// depends on complete scans alone.

import { z } from 'zod';
import { enrichField } from '../../src/contracts/config.ts';
import { type CollectionFacts, collectionFields, defineCollections } from './collection.ts';

const path = '/api/firewall/v1/companies/{company_id}';

const objects: CollectionFacts = {
  resource: 'objects',
  path: `${path}/objects`,
  entity: { kind: 'object', ids: ['id', 'object_id'] },
};

const policies: CollectionFacts = {
  resource: 'policies',
  path: `${path}/policies`,
  entity: { kind: 'policy', ids: ['id', 'policy_id'] },
  detail: {
    path: `${path}/policies/{policy_id}`,
    placeholder: 'policy_id',
    // `forward_rules`, `nat_rules` and other lists that a policy may have.
    parts: { kind: 'rule', ids: ['id', 'rule_id'], isList: (name) => /rules$/i.test(name) },
  },
};

/** `type: firewall`. */
export const firewallSource = defineCollections({
  type: 'firewall',
  apis: ['services'],
  summary:
    'Reads firewall objects, policies and rules of the services API and reports their changes.',
  fields: () => ({
    resources: z
      .array(z.enum(['objects', 'policies']))
      .min(1)
      .refine((names) => new Set(names).size === names.length, 'each resource may be here once')
      .default(['objects', 'policies'])
      .describe('resources to read; policies include each policy’s rules'),
    ...collectionFields(),
    enrich: enrichField(),
    shared_objects: z
      .enum(['per_company', 'once'])
      .default('per_company')
      .describe('objects marked as shared: reported for each company, or for the first one only'),
  }),
  collections({ resources, shared_objects: shared }, index) {
    const isReported = shared === 'per_company' || index === 0;
    const own = {
      ...objects,
      holds: (object: { shared?: unknown }) => isReported || object.shared !== true,
    };
    return resources.map((name) => (name === 'objects' ? own : policies));
  },
});

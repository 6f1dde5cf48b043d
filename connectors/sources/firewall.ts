// The firewall configuration of a company: objects, policies and each policy's rules, read whole and told as changes.
// The document shows the three endpoints and neither their fields nor whether they are paged, so entities are known by
// their ids alone. Shared objects stand in each company's list. A removed policy is asked for by its id; there is nothing
// to read an object by its id with, so that its removal rests on complete readings alone.

import { z } from 'zod';
import { defineSource } from '../../src/contracts/definition.ts';
import { collectionFields, collectionReading } from './collection/fields.ts';
import { type CollectionFacts, collectionStream } from './collection/stream.ts';

const path = '/api/firewall/v1/companies/{company_id}';

const resources = {
  objects: {
    resource: 'objects',
    path: `${path}/objects`,
    entity: { kind: 'object', ids: ['id', 'object_id'] },
  },
  policies: {
    resource: 'policies',
    path: `${path}/policies`,
    entity: { kind: 'policy', ids: ['id', 'policy_id'] },
    detail: {
      path: `${path}/policies/{policy_id}`,
      placeholder: 'policy_id',
      // `forward_rules`, `nat_rules` and whatever else a policy may have.
      parts: { kind: 'rule', ids: ['id', 'rule_id'], isList: (name) => /rules$/i.test(name) },
    },
  },
} satisfies Record<string, CollectionFacts>;

/** `type: firewall`. */
export const firewallSource = defineSource({
  type: 'firewall',
  summary:
    'Reads firewall objects, policies and rules of the services API and tells their changes.',
  apis: ['services'],
  fields: {
    resources: z
      .array(z.enum(['objects', 'policies']))
      .min(1)
      .refine((names) => new Set(names).size === names.length, 'each resource may stand here once')
      .default(['objects', 'policies'])
      .describe('what to read; policies include each policy’s rules'),
    ...collectionFields,
    shared_objects: z
      .enum(['per_company', 'once'])
      .default('per_company')
      .describe('objects marked as shared: told for each company, or for the first one only'),
  },
  flaw: (_settings, { companies }) =>
    companies.length === 0
      ? 'a firewall is read per company, so the upstream needs companies'
      : null,
  streams: (settings, opening) =>
    opening.upstream.companies.flatMap((company, index) => {
      const tellsShared = settings.shared_objects === 'per_company' || index === 0;
      const holds: CollectionFacts['holds'] = ({ shared }) => tellsShared || shared !== true;
      return settings.resources.map((name) => {
        const facts = { ...resources[name], ...(name === 'objects' ? { holds } : {}) };
        return collectionStream(opening, company, facts, settings.ignore);
      });
    }),
  reading: () => ({ id: null, time: [] }),
  snapshot: collectionReading,
});

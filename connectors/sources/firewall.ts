// The firewall configuration of a company: objects, policies and each policy's rules, read whole and told as changes.
// The document shows the three endpoints and neither their fields nor whether they are paged, so pages are followed as
// found (firewall/listing.ts) and entities are known by their ids alone (firewall/entities.ts). What must stay true: a
// reading says that it is complete only if every request of it was answered as it should be.

import { z } from 'zod';
import { defineSource } from '../../src/contracts/definition.ts';
import { count, duration } from '../../src/contracts/settings.ts';
import type { FirewallScope } from './firewall/endpoints.ts';
import { objectsStream } from './firewall/objects.ts';
import { policiesStream } from './firewall/policies.ts';

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
    confirm_after: duration()
      .prefault('30s')
      .describe('a change is read a second time after this, before it is told (0s: at once)'),
    settle: duration().prefault('10m').describe('how long an absence must last to be a removal'),
    removals_after: count(1, 100)
      .default(2)
      .describe('complete readings in a row that an entity must be missing from'),
    brake: z
      .strictObject({
        share: z.number().min(0).max(1).default(0.3).describe('share of all entities'),
        count: count(0, 1_000_000).default(10).describe('number of entities'),
      })
      .prefault({})
      .describe(
        'more removals at once than both of these are held until three complete readings show them',
      ),
    baseline: z
      .enum(['summary', 'full'])
      .default('summary')
      .describe('the first reading: one summary event per resource, or each entity in full'),
    ignore: z
      .array(z.string().min(1))
      .default(['updated_at'])
      .describe('paths within an entity that are not compared'),
    unordered: z
      .array(z.string().min(1))
      .default([])
      .describe('paths of arrays whose order says nothing'),
    shared_objects: z
      .enum(['per_company', 'once'])
      .default('per_company')
      .describe('objects marked as shared: told for each company, or for the first one only'),
  },
  flaw: (_settings, { companies }) =>
    companies.length === 0
      ? 'a firewall is read per company, so the upstream needs companies'
      : null,
  streams: (settings, { name, upstream }) =>
    upstream.companies.flatMap((company, index) => {
      const scope: FirewallScope = {
        source: name,
        company,
        upstream,
        withShared: settings.shared_objects === 'per_company' || index === 0,
      };
      return settings.resources.map((resource) =>
        resource === 'objects' ? objectsStream(scope) : policiesStream(scope),
      );
    }),
  reading: () => ({ id: null, time: [] }),
  snapshot: (settings) => ({
    confirmAfterMs: settings.confirm_after,
    settleMs: settings.settle,
    removalsAfter: settings.removals_after,
    brake: settings.brake,
    baseline: settings.baseline,
    ignore: settings.ignore,
    unordered: settings.unordered,
  }),
});

// Any list or single object that is returned as a whole and changes: the resources that the
// documents only announce (sites and services of the fleet, DLP rules, rules of the web gateway),
// and other resources of a platform.

import { z } from 'zod';
import { defineCollections } from './collection.ts';
import { collectionFrom, pathField, resourceFields } from './resource.ts';

const apis = ['unified', 'services'] as const;

/** `type: collection`. */
export const collectionSource = defineCollections({
  type: 'collection',
  summary: 'Reads any list or single object of either API that is served whole, as its changes.',
  apis,
  fields: () => ({
    path: pathField(apis),
    kind: z
      .string()
      .regex(/^\w+$/, 'expected letters, digits and _')
      .optional()
      .describe('name of one entity in events; default: the last name in path'),
    single: z.boolean().default(false).describe('true: the response is one entity, not a list'),
    ...resourceFields(),
  }),
  collections: (settings) => [
    collectionFrom(settings, {
      kind: settings.kind ?? lastName(settings.path),
      single: settings.single,
    }),
  ],
  reading: ({ time, time_formats: timeFormats, mapping }) => ({
    ...{ time, timeFormats, ...(mapping && { mapping }) },
  }),
});

/** `dlp_rules` of `/v2/dlp-rules`, `companies` of `/companies/{company_id}`. */
function lastName(path: string): string {
  const names = path.split('/').filter((name) => /^[\w-]+$/.test(name));
  return names.at(-1)?.replaceAll('-', '_') ?? 'entity';
}

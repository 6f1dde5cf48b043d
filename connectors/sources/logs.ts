// Logs: any list endpoint of either API. The services document names a logs API and shows none of its endpoints, so
// everything about one is declared: path, paging, sorting, where id and time stand, and what the fields mean (`mapping`).
// With `{company_id}` in the path there is one stream per company of the upstream.

import { z } from 'zod';
import { defineSource } from '../../src/contracts/definition.ts';
import { endpointPath, isPerCompany } from '../shared/upstream-path.ts';
import { listFields, listReading, paramsFlaw, recordReading } from './list/fields.ts';
import { listStreams } from './list/stream.ts';

/** The services document's own words for the two orders, which a config may use as well. */
const upstreamOrders = { ASC: 'oldest_first', DESC: 'newest_first' } as const;

/** `type: logs`. */
export const logsSource = defineSource({
  type: 'logs',
  summary: 'Reads any list endpoint of either API as a stream of log records.',
  apis: ['unified', 'services'],
  fields: {
    path: endpointPath().describe(
      'where the records are, below base_url; {company_id}: one stream per company of the upstream',
    ),
    order: z
      .enum(['auto', 'oldest_first', 'newest_first', 'ASC', 'DESC'])
      .transform((order) => (order === 'ASC' || order === 'DESC' ? upstreamOrders[order] : order))
      .prefault('auto')
      .describe(
        'the order upstream gives the records in; auto: learned. With order_by: the order to ask for',
      ),
    order_by: z
      .string()
      .min(1)
      .optional()
      .describe(
        'field to sort by, sent as order_by= together with order=ASC or DESC; left out for good where upstream refuses it',
      ),
    mapping: z
      .strictObject({
        class: z.string().min(1).describe('OCSF class of the records, e.g. network_activity'),
        fields: z
          .record(z.string().min(1), z.string().min(1))
          .default({})
          .describe('OCSF attribute: path within the record'),
      })
      .optional()
      .describe('what the records mean; what is not mapped goes to unmapped'),
    ...listFields,
  },
  flaw(settings, { companies }) {
    if (isPerCompany(settings.path) && companies.length === 0) {
      return 'path holds {company_id}, so the upstream needs companies';
    }
    if (settings.order_by !== undefined && settings.order === 'auto') {
      return 'order_by needs order: oldest_first or newest_first';
    }
    return paramsFlaw(settings);
  },
  streams(settings, opening) {
    const { params, order_by: orderBy, order } = settings;
    const direction = order === 'newest_first' ? 'DESC' : 'ASC';
    const sorting: readonly (readonly [string, string])[] =
      orderBy === undefined
        ? []
        : [
            ['order_by', orderBy],
            ['order', direction],
          ];
    return listStreams(settings, opening, {
      records: 'log',
      immutable: false,
      fixed: Object.entries(params),
      sorting,
    });
  },
  reading: (settings) => ({
    ...recordReading(settings),
    ...(settings.mapping === undefined ? {} : { mapping: settings.mapping }),
  }),
  list(settings) {
    const reading = listReading(settings);
    // A server may take the sorting and not heed it: what order the records are in shows in the records.
    return settings.order_by === undefined ? reading : { ...reading, order: 'auto' };
  },
});

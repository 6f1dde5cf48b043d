// Logs: any list endpoint of either API. The services document names a logs API and shows none of
// its endpoints, so everything about one is declared: path, paging, sorting, location of id and
// time, and the meaning of the fields (`mapping`). With `{company_id}` in the path there is one
// stream per company of the upstream.

import { z } from 'zod';
import { enrichField } from '../../src/contracts/config.ts';
import { endpointPath } from '../shared/upstream-path.ts';
import { defineList, listFields, mappingField } from './list.ts';

/** The services document's own terms for the two orders, which a config may use too. */
const upstreamOrders = { ASC: 'oldest_first', DESC: 'newest_first' } as const;

/** `type: logs`. */
export const logsSource = defineList({
  type: 'logs',
  summary: 'Reads any list endpoint of either API as a stream of log records.',
  apis: ['unified', 'services'],
  records: 'log',
  immutable: false,
  fields: () => ({
    path: endpointPath().describe(
      'path of the records below base_url; {company_id}: one stream per company of the upstream',
    ),
    order: z
      .enum(['auto', 'oldest_first', 'newest_first', 'ASC', 'DESC'])
      .transform((order) => (order === 'ASC' || order === 'DESC' ? upstreamOrders[order] : order))
      .prefault('auto')
      .describe(
        'order in which upstream lists the records; auto: learned. With order_by: the order to request',
      ),
    order_by: z
      .string()
      .min(1)
      .optional()
      .describe(
        'field to sort by, sent as order_by= together with order=ASC or DESC; no longer sent if upstream refuses it',
      ),
    mapping: mappingField('record').describe(
      'OCSF class and fields of the records; fields without a mapping go to unmapped',
    ),
    records: z
      .enum(['log', 'audit'])
      .optional()
      .describe(
        'audit: records get the OCSF classes of audit events, without a mapping; log: those of mapping. Default: log; audit if it succeeds a source of audit events and has no mapping',
      ),
    ...listFields(),
    enrich: enrichField(),
  }),
  flaw({ order_by: orderBy, order, records, mapping }) {
    if (records === 'audit' && mapping !== undefined) {
      return 'records: audit and mapping both set the OCSF class; remove one of the two';
    }
    return orderBy !== undefined && order === 'auto'
      ? 'order_by needs order: oldest_first or newest_first'
      : null;
  },
  sorting: ({ order_by: orderBy, order }) =>
    orderBy === undefined
      ? []
      : [
          ['order_by', orderBy],
          ['order', order === 'newest_first' ? 'DESC' : 'ASC'],
        ],
  reading: ({ mapping, records }) => ({
    ...(mapping && { mapping }),
    ...(records === 'audit' && { records }),
  }),
});

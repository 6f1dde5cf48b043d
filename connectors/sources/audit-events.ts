// Audit events: every action of an admin or agent, from the unified API's `/audit/events`. The
// document shows neither the request nor the response, so everything that can differ between
// servers is a setting with the documented conventions as default. Upstream declares these records
// immutable and tamper-proof: a changed one is an integrity violation.

import { endpointPath } from '../shared/upstream-path.ts';
import { defineList, listFields, orders } from './list.ts';

/** `type: audit_events`. */
export const auditEventsSource = defineList({
  type: 'audit_events',
  summary: 'Reads the audit events of the unified API: every action of an admin or agent.',
  apis: ['unified'],
  records: 'audit',
  immutable: true,
  fields: () => ({
    path: endpointPath()
      .refine((path) => !path.includes('{'), 'the unified API has no companies')
      .default('/audit/events')
      .describe('path of the events below base_url'),
    order: orders
      .default('auto')
      .describe('order in which upstream lists the events; auto: learned'),
    ...listFields(),
  }),
});

// Audit events: every action of an admin or agent, from the unified API's `/audit/events`. The document shows neither the
// request nor the answer, so all that can differ between servers is a setting with the documented conventions as
// default. Upstream calls these records immutable and tamper-proof: one that changes is an integrity violation.

import { z } from 'zod';
import { defineSource } from '../../src/contracts/definition.ts';
import { endpointPath } from '../shared/upstream-path.ts';
import { listFields, listReading, paramsFlaw, recordReading } from './list/fields.ts';
import { listStreams } from './list/stream.ts';

/** `type: audit_events`. */
export const auditEventsSource = defineSource({
  type: 'audit_events',
  summary: 'Reads the audit events of the unified API: every action of an admin or agent.',
  apis: ['unified'],
  fields: {
    path: endpointPath()
      .refine((path) => !path.includes('{'), 'the unified API has no companies')
      .default('/audit/events')
      .describe('where the events are, below base_url'),
    order: z
      .enum(['auto', 'oldest_first', 'newest_first'])
      .default('auto')
      .describe('the order upstream gives the events in; auto: learned'),
    ...listFields,
  },
  flaw: paramsFlaw,
  streams: (settings, opening) =>
    listStreams(settings, opening, {
      records: 'audit',
      immutable: true,
      fixed: Object.entries(settings.params),
    }),
  reading: recordReading,
  list: listReading,
});

// The entries of tickets, incidents, investigations and changes. The documents list no fields of
// any: the mapped fields are used if present and never required. The actor is found as in audit
// records.

import { defineParents, isSettled } from './parents.ts';

/** `type: ticket_events`. */
export const ticketEventsSource = defineParents({
  type: 'ticket_events',
  summary: 'Reads the timeline of each ticket of the services API.',
  api: 'services',
  path: '/api/ticketing/v1/companies/{company_id}/tickets/{parent_id}/events',
  parent: 'ticket',
  mapping: {
    class: 'entity_management',
    fields: { 'entity.uid': 'ticket_id', activity_name: 'type', comment: 'text' },
  },
});

/** `type: incident_timeline`. */
export const incidentTimelineSource = defineParents({
  type: 'incident_timeline',
  summary: 'Reads the timeline of each incident of the unified API, which is immutable.',
  api: 'unified',
  path: '/mc/incidents/{parent_id}/timeline',
  parent: 'incident',
  immutable: true,
  mapping: {
    class: 'entity_management',
    fields: { 'entity.uid': 'incident_id', activity_name: 'entry', comment: 'text' },
  },
});

/** `type: investigations`. */
export const investigationsSource = defineParents({
  type: 'investigations',
  summary: 'Reads investigations of the unified API with their evidence, whenever they change.',
  api: 'unified',
  path: '/intelligence/investigations/{parent_id}',
  parent: 'investigation',
  object: { isFinal: () => false },
  mapping: {
    class: 'detection_finding',
    fields: { 'finding_info.uid': 'id', 'finding_info.title': ['name', 'title'] },
  },
});

/** `type: changes`. */
export const changesSource = defineParents({
  type: 'changes',
  summary: 'Reads changes of the services API until they are COMPLETED or FAILED.',
  api: 'services',
  path: '/api/self-service/v1/companies/{company_id}/changes/{parent_id}/output',
  parent: 'change',
  object: { isFinal: isSettled },
  id: 'change_id',
  mapping: {
    class: 'entity_management',
    fields: { 'entity.uid': 'change_id', activity_name: 'status', status: 'status' },
  },
});

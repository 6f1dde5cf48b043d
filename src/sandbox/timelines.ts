// Which kinds of entity have a timeline, and its entries.
import type { EntityContext } from './collection.ts';
import { incidentTimeline } from './resources/incidents.ts';
import { ticketEvents } from './resources/tickets.ts';

/** The entries of an entity's timeline, oldest first; none for kinds without one. */
export function timelineOf(kind: string, moment: EntityContext): readonly object[] {
  if (kind === 'incident') return incidentTimeline(moment);
  return kind === 'ticket' ? ticketEvents(moment) : [];
}

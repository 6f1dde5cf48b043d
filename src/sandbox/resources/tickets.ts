// Tickets of a company and the timeline of each. A ticket is opened, answered, worked on and closed, with an event
// each, and leaves the list after some time; its timeline stays readable for a while.
import { failed } from '../answers.ts';
import type { CollectionPlan, EntityContext } from '../collection.ts';
import { ADMINS, SITES } from '../company.ts';
import { entityList } from '../entity-list.ts';
import { lifeOf } from '../life.ts';
import { fixedList } from '../lists.ts';
import {
  cursorAnswer,
  forCompany,
  offsetAnswer,
  type SandboxRoute,
  sandboxCollectionOf,
} from '../routes.ts';

const TICKETS = '/api/ticketing/v1/companies/{company_id}/tickets';

const STATUS = ['open', 'in_progress', 'waiting_for_customer', 'closed'];
const EVENTS = ['created', 'comment', 'status_changed', 'closed'];

/** How many clock steps a timeline stays after its ticket has left the list. */
const STEPS_KEPT = 12;

/** The path of a company's tickets. */
export function ticketsPath(company: string): string {
  return TICKETS.replace('{company_id}', encodeURIComponent(company));
}

/** A company's tickets; `start` of them at the start. `digits`: ids are digits alone. */
export function ticketsPlan(
  company: string,
  no: number,
  { start = 30, digits }: { readonly start?: number | undefined; readonly digits: boolean },
): CollectionPlan {
  return {
    kind: 'ticket',
    path: ticketsPath(company),
    company,
    life: lifeOf({ core: 0, start, ages: [0, 1, 3] }),
    ids: { prefix: digits ? '' : 'tkt-', first: 4_711 + no * 10_000_000 },
    record: (moment) => ticketRecord(moment, company),
    verb: (op, version) => (op === 'deleted' ? 'archive' : (EVENTS[version] ?? 'comment')),
  };
}

/** The tickets' endpoints. */
export const TICKET_ROUTES: readonly SandboxRoute[] = [
  forCompany({
    path: TICKETS,
    about: 'The tickets of a company',
    query: ['limit', 'offset'],
    answer: (ask, { company_id: company = '' }, world) =>
      offsetAnswer(ask, entityList(sandboxCollectionOf(world, ticketsPath(company))), world),
  }),
  forCompany({
    path: `${TICKETS}/{ticket_id}/events`,
    about: 'The timeline of a ticket',
    query: ['limit', 'cursor'],
    answer(ask, { company_id: company = '', ticket_id: id = '' }, world) {
      const tickets = sandboxCollectionOf(world, ticketsPath(company));
      const index = tickets.indexOf(id);
      const moment = index === null ? null : tickets.moment(index);
      if (index === null || moment === null || tickets.stepsGone(index) > STEPS_KEPT) {
        return failed(ask.api, { status: 404, message: 'no such ticket' });
      }
      return cursorAnswer(ask, fixedList(ask.path, ticketEvents(moment)), world);
    },
  }),
];

/** The events of a ticket, oldest first. */
export function ticketEvents({ id, times, base }: EntityContext): readonly object[] {
  return times.map((created_at, n) => {
    const [author, minutes] = [base.pick(ADMINS), base.below(90)];
    const type = EVENTS[n] ?? 'comment';
    return {
      id: `${id}-${n + 1}`,
      ticket_id: id,
      type,
      created_at,
      author: n % 3 === 2 ? null : { name: author.name, email: author.email },
      ...(type === 'comment' && { text: `done in ${minutes} min\nsee a=b|c "${author.name}"` }),
      ...(type === 'status_changed' && { from: STATUS[n - 1], to: STATUS[n] ?? 'closed' }),
    };
  });
}

function ticketRecord({ id, index, version, times, base }: EntityContext, company: string): object {
  const [site, requester] = [base.pick(SITES), base.pick(ADMINS)];
  return {
    ticket_id: id,
    company_id: company,
    customer_reference: index % 3 === 0 ? `CHG|${index}=\\open` : null,
    subject: index % 10 === 7 ? '' : `Rule change at ${site.name}`,
    status: STATUS[Math.min(version, 3)],
    ...(index % 6 !== 5 && { priority: base.pick(['low', 'normal', 'normal', 'urgent']) }),
    requester: requester.email,
    tags: index % 4 === 0 ? ['firewall', 'change'] : [],
    created_at: times[0],
    updated_at: times.at(-1),
  };
}

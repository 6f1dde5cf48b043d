// The ledger of test/support/moving: records and tickets, and how each of two APIs writes them. The old form has camelCase
// names, integer ids and integer company ids; the new form has snake_case names and text ids. A record carries a mark
// (`rec-000017`) in both forms, so a test counts deliveries without trusting any id.

import { createHash } from 'node:crypto';

/** Which of the two APIs. */
export type Side = 'old' | 'new';

/** A record of the ledger. */
export interface Entry {
  /** In both forms, as the request id. Unique. */
  readonly mark: string;
  /** As the APIs show it; not unique where a test says so. */
  readonly id: number;
  /** Digits, such as `1`. */
  readonly company: string;
  /** When it happened, in milliseconds since 1970. */
  readonly timeMs: number;
  /** The ticket that it is in the timeline of; null: it is in the audit list. */
  readonly ticket: number | null;
  /** Members of the new form that have another value there. */
  readonly differs: Readonly<Record<string, unknown>>;
}

/** A ticket as one side shows it. */
export interface Ticket {
  readonly id: number;
  readonly company: string;
  readonly subject: string;
  readonly status: string;
  readonly customerReference: string | null;
  readonly createdMs: number;
}

/** How the two sides write what they show. */
export interface Forms {
  /** `none`: without ids; `unrelated`: other ids than the other side has. */
  readonly ids: Readonly<Record<Side, 'same' | 'none' | 'unrelated'>>;
  /** How far a side's clock is ahead, in milliseconds. */
  readonly aheadMs: Readonly<Record<Side, number>>;
  /** How the old side writes times. */
  readonly oldTimes: 'rfc3339' | 'epoch_ms' | 'epoch_s';
  /** Whether the old side's records name their company. */
  readonly oldShowsCompany: boolean;
  /** Whether the new side's records name their company, beside the path that does. */
  readonly newShowsCompany: boolean;
}

/** A mark anywhere in a text. */
export const markPattern = /rec-\d{6,}/;

/** The mark of the `number`-th entry. */
export function markOf(number: number): string {
  return `rec-${String(number).padStart(6, '0')}`;
}

/** The exact JSON text of a record as a side shows it. */
export function entryText(entry: Entry, side: Side, forms: Forms): string {
  const { mark, id, company, timeMs, ticket, differs } = entry;
  const shown = timeMs + forms.aheadMs[side];
  const number = Number(mark.slice(4));
  const actor = `admin${number % 7}@example.com`;
  const action = ['policy.update', 'session.login', 'site.update'][number % 3];
  if (side === 'old') {
    return JSON.stringify({
      ...idMember(entry, side, forms),
      eventTime: oldTime(shown, forms.oldTimes),
      actionName: action,
      actorEmail: actor,
      ...(forms.oldShowsCompany && { companyId: Number(company) }),
      ...(ticket !== null && { ticketId: ticket }),
      targetResource: {
        resourceType: 'policy',
        resourceId: 500 + (id % 40),
        isShared: id % 2 === 0,
      },
      requestId: mark,
    });
  }
  return JSON.stringify({
    ...idMember(entry, side, forms),
    event_time: new Date(shown).toISOString(),
    action_name: action,
    actor_email: actor,
    ...(forms.newShowsCompany && { company_id: company }),
    ...(ticket !== null && { ticket_id: String(ticket) }),
    target_resource: {
      resource_type: 'policy',
      resource_id: String(500 + (id % 40)),
      is_shared: id % 2 === 0,
    },
    request_id: mark,
    ...differs,
  });
}

/** The exact JSON text of a ticket as a side shows it. */
export function ticketText(ticket: Ticket, side: Side): string {
  const { id, company, subject, status, customerReference, createdMs } = ticket;
  const created = new Date(createdMs).toISOString();
  if (side === 'old') {
    return JSON.stringify({
      ticketId: id,
      companyId: Number(company),
      customerReference,
      subject,
      status,
      createdAt: created,
    });
  }
  return JSON.stringify({
    ticket_id: String(id),
    company_id: company,
    customer_reference: customerReference,
    subject,
    status,
    created_at: created,
  });
}

function idMember({ id, mark }: Entry, side: Side, { ids }: Forms): object {
  if (ids[side] === 'none') return {};
  const own = side === 'old' ? id : String(id);
  if (ids[side] === 'same') return { id: own };
  const digest = createHash('sha256').update(mark).digest('hex').slice(0, 12);
  return { id: side === 'old' ? Number.parseInt(digest, 16) : `x-${digest}` };
}

function oldTime(timeMs: number, form: Forms['oldTimes']): string | number {
  if (form === 'epoch_ms') return timeMs;
  return form === 'epoch_s' ? Math.floor(timeMs / 1_000) : new Date(timeMs).toISOString();
}

// A complete event for tests of formats, sinks and routes: an administrator's change of a policy, as from the
// normaliser. A test names only what it is about; all else has a default.

import { createHash } from 'node:crypto';
import type { Event, OcsfEvent, OcsfMetadata, PageContext } from '../../src/contracts/event.ts';

/** What a test may say of its event. `ocsf` is laid over the default event, and its `metadata` over the default's. */
export interface EventWishes {
  readonly uid?: string;
  readonly source?: string;
  readonly stream?: string;
  readonly kind?: PageContext['kind'];
  readonly offset?: number;
  /** The record as sent: its text, its bytes, or a value to be sent as JSON. */
  readonly raw?: string | Uint8Array | object;
  readonly ocsf?: Partial<Omit<OcsfEvent, 'metadata'>> & {
    readonly metadata?: Partial<OcsfMetadata>;
  };
}

const record = {
  id: 'evt-0001',
  timestamp: '2026-03-04T05:06:07.089Z',
  action: 'policy.update',
  actor: { id: 'usr-17', email: 'anna.schmidt@example.com', name: 'Anna Schmidt', role: 'admin' },
  source_ip: '203.0.113.7',
  resource: { type: 'policy', id: 'pol-9', name: 'Default policy' },
  result: 'success',
};

/** An event with sensible defaults. The uid follows from the offset, so events of different offsets differ. */
export function anEvent(wishes: EventWishes = {}): Event {
  const offset = wishes.offset ?? 0;
  const uid = wishes.uid ?? createHash('sha256').update(`event ${offset}`).digest('hex');
  const { metadata, ...attributes } = wishes.ocsf ?? {};
  const ocsf: OcsfEvent = {
    ...anOcsfEvent(uid),
    ...attributes,
    metadata: { ...anOcsfEvent(uid).metadata, ...metadata },
  };
  const context: PageContext = {
    source: wishes.source ?? 'audit',
    stream: wishes.stream ?? 'audit/c-1',
    kind: wishes.kind ?? 'audit',
    company: 'c-1',
    fetchedAt: Date.UTC(2026, 2, 4, 5, 6, 37),
  };
  return {
    uid,
    source: context.source,
    stream: context.stream,
    kind: context.kind,
    context,
    offset,
    raw: bytesOf(wishes.raw ?? record),
    ocsf,
  };
}

function bytesOf(raw: string | Uint8Array | object): Uint8Array {
  if (raw instanceof Uint8Array) return raw;
  return new TextEncoder().encode(typeof raw === 'string' ? raw : JSON.stringify(raw));
}

function anOcsfEvent(uid: string): OcsfEvent {
  return {
    activity_id: 3,
    activity_name: 'Update',
    category_uid: 6,
    category_name: 'Application Activity',
    class_uid: 6003,
    class_name: 'API Activity',
    type_uid: 600303,
    type_name: 'API Activity: Update',
    time: Date.UTC(2026, 2, 4, 5, 6, 7, 89),
    severity_id: 1,
    severity: 'Informational',
    status_id: 1,
    status: 'Success',
    message: 'Policy updated',
    actor: {
      user: {
        uid: 'usr-17',
        name: 'Anna Schmidt',
        email_addr: 'anna.schmidt@example.com',
        type: 'Admin',
        type_id: 2,
      },
    },
    api: { operation: 'policy.update' },
    src_endpoint: { ip: '203.0.113.7' },
    resources: [{ type: 'policy', uid: 'pol-9', name: 'Default policy' }],
    metadata: {
      version: '1.8.0',
      product: { name: 'sluice', vendor_name: 'sluice' },
      uid,
      original_event_uid: 'evt-0001',
      original_time: '2026-03-04T05:06:07.089Z',
      event_code: 'policy.update',
      log_name: 'audit',
      tenant_uid: 'c-1',
      logged_time: Date.UTC(2026, 2, 4, 5, 6, 37),
    },
    unmapped: { request_id: 'req-55', session: { mfa: true } },
  };
}

// The content of a webhook delivery: the body of an event, which names the audit event for the same change, and the
// headers with its name, delivery id and signature.
import { createHmac } from 'node:crypto';

/** An event as it is sent. `id` is the audit event's, or an invented one. */
export interface WebhookEvent {
  readonly event: string;
  readonly id: string | null;
  readonly body: string;
}

/** How deliveries are signed. */
export interface Signing {
  readonly secret: string;
  /** The header with the time in seconds; the signature then covers `{timestamp}.{body}`. */
  readonly timestampHeader?: string | undefined;
}

/** The event for an audit event's text. */
export function eventOf(audit: string): WebhookEvent {
  const {
    id = null,
    action,
    timestamp,
    module,
    severity,
    outcome,
    actor,
    resource,
    summary,
  } = JSON.parse(audit);
  const data = { module, severity, outcome, actor, resource, summary };
  const body = JSON.stringify({ id, event: action, created_at: timestamp, data });
  return { event: String(action), id: id === null ? null : String(id), body };
}

/** A similar event that exists nowhere else. */
export function inventedLike({ event, body }: WebhookEvent, id: string): WebhookEvent {
  return { event, id, body: JSON.stringify({ ...JSON.parse(body), id }) };
}

/** The headers of a delivery; without `signing` it is not signed. */
export function headersOf(
  { event, body }: WebhookEvent,
  delivery: string,
  { signing, nowMs }: { readonly signing: Signing | null; readonly nowMs: number },
): Readonly<Record<string, string | number>> {
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'user-agent': 'svc-webhooks/1',
    'SVC-Event': event,
    'SVC-Delivery': delivery,
  };
  if (signing === null) return headers;
  const { secret, timestampHeader } = signing;
  const timestamp = String(Math.floor(nowMs / 1000));
  const signed = timestampHeader === undefined ? body : `${timestamp}.${body}`;
  return {
    ...headers,
    ...(timestampHeader !== undefined && { [timestampHeader]: timestamp }),
    'SVC-Signature': `sha256=${createHmac('sha256', secret).update(signed).digest('hex')}`,
  };
}

// Sends deliveries with retries: any response except 2xx is retried after a wait that doubles, or after Retry-After if
// that is longer, until it is accepted or given up. Deliveries only wait for a free connection, so a receiver gets them
// in any order. Waits and connections end with close().
import { randomUUID } from 'node:crypto';
import { Agent, request as httpRequest } from 'node:http';
import { request as httpsRequest, Agent as TlsAgent } from 'node:https';
import { setTimeout as wait } from 'node:timers/promises';
import { headersOf, type Signing, type WebhookEvent } from './events.ts';

/** One delivery and its outcome. */
export interface WebhookDelivery {
  readonly id: string;
  readonly url: string;
  readonly event: WebhookEvent;
  /** The fault that shaped it, or null. */
  readonly fault: string | null;
  /** Whether a receiver should accept it; forged and unsigned ones are to be rejected. */
  readonly genuine: boolean;
  readonly attempts: number;
  /** The status of the last response, or 0 if there was none. */
  readonly answered: number;
  readonly state: 'waiting' | 'accepted' | 'given_up' | 'lost';
}

/** The delivery to send. */
export interface WebhookOrder extends Pick<WebhookDelivery, 'url' | 'event' | 'fault' | 'genuine'> {
  /** Null sends it unsigned; default: signed as configured. */
  readonly signing?: Signing | null;
  /** Default: a new one. */
  readonly id?: string;
  readonly afterMs?: number;
}

/** How deliveries are sent. `retryMs` is the wait before the second attempt. */
export interface SenderPlan {
  readonly signing: () => Signing;
  readonly retryMs: number;
  readonly ca?: string | undefined;
  readonly now: () => number;
}

const CONNECTIONS_MAX = 32;
const WAITING_MAX = 10_000;
const KEPT_MAX = 20_000;
const ATTEMPTS_MAX = 12;
const WAIT_MAX_MS = 60_000;
const ANSWER_TIMEOUT_MS = 10_000;

type Mutable = { -readonly [K in keyof WebhookDelivery]: WebhookDelivery[K] };

/** The sender of all deliveries. */
export class WebhookSender {
  readonly #plan: SenderPlan;
  readonly #kept: Mutable[] = [];
  readonly #closing = new AbortController();
  readonly #agents: { readonly http: Agent; readonly https: TlsAgent };
  #waiting = 0;

  constructor(plan: SenderPlan) {
    this.#plan = plan;
    const options = { keepAlive: true, maxSockets: CONNECTIONS_MAX };
    this.#agents = {
      http: new Agent(options),
      https: new TlsAgent({ ...options, ...(plan.ca !== undefined && { ca: plan.ca }) }),
    };
  }

  /** The newest deliveries, oldest first. */
  deliveries(): readonly WebhookDelivery[] {
    return this.#kept;
  }

  /** Starts a delivery. One above the limit is lost at once, as in a real sender's full queue. */
  send(order: WebhookOrder): WebhookDelivery {
    const { url, event, fault, genuine, id = `dlv_${randomUUID()}` } = order;
    const full = this.#waiting >= WAITING_MAX || fault === 'lost';
    const state = full ? 'lost' : 'waiting';
    const delivery: Mutable = { id, url, event, fault, genuine, attempts: 0, answered: 0, state };
    this.#kept.push(delivery);
    if (this.#kept.length > KEPT_MAX) this.#kept.splice(0, KEPT_MAX / 10);
    if (!full) void this.#attempts(delivery, order);
    return delivery;
  }

  close(): void {
    this.#closing.abort();
    this.#agents.http.destroy();
    this.#agents.https.destroy();
  }

  // Never rejects: close() is the only early end of a wait.
  async #attempts(delivery: Mutable, { signing, afterMs = 0 }: WebhookOrder): Promise<void> {
    const { signal } = this.#closing;
    let waitMs = afterMs;
    this.#waiting += 1;
    try {
      while (delivery.attempts < ATTEMPTS_MAX) {
        if (waitMs > 0) await wait(waitMs, undefined, { signal });
        delivery.attempts += 1;
        const answer = await this.#post(delivery, signing);
        if (signal.aborted) return;
        delivery.answered = answer.status;
        if (answer.status >= 200 && answer.status < 300) {
          delivery.state = 'accepted';
          return;
        }
        // A delivery that a receiver rejects correctly is not sent again.
        if (!delivery.genuine) break;
        const doubled = this.#plan.retryMs * 2 ** (delivery.attempts - 1);
        waitMs = Math.min(WAIT_MAX_MS, Math.max(doubled, answer.retryAfterMs));
      }
      delivery.state = 'given_up';
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#waiting -= 1;
    }
  }

  #post(
    { url, event, id }: WebhookDelivery,
    signing: Signing | null = this.#plan.signing(),
  ): Promise<{ readonly status: number; readonly retryAfterMs: number }> {
    const { promise, resolve } = Promise.withResolvers<{ status: number; retryAfterMs: number }>();
    const failed = () => resolve({ status: 0, retryAfterMs: 0 });
    const isTls = url.startsWith('https:');
    const request = isTls ? httpsRequest : httpRequest;
    const asked = request(
      url,
      {
        method: 'POST',
        agent: isTls ? this.#agents.https : this.#agents.http,
        headers: headersOf(event, id, { signing, nowMs: this.#plan.now() }),
        timeout: ANSWER_TIMEOUT_MS,
        signal: this.#closing.signal,
      },
      (response) => {
        const retryAfterMs = Number(response.headers['retry-after'] ?? 0) * 1000 || 0;
        response.on('error', failed);
        response.on('end', () => resolve({ status: response.statusCode ?? 0, retryAfterMs }));
        response.resume();
      },
    );
    asked.on('timeout', () => asked.destroy(new Error('no answer in time')));
    asked.on('error', failed);
    asked.end(event.body);
    return promise;
  }
}

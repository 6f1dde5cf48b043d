// `POST /v1/webhooks`: registers a target for events. The document shows neither the response nor how targets are
// listed or deleted; so a registration without an Idempotency-Key creates a second target each time, as it would
// upstream. A repeated key with the same body gets the same response, with another body a 409. Registrations are in
// memory: a restarted sandbox has none.
import { randomUUID } from 'node:crypto';
import { failed, ok, type SandboxRequest, type SandboxResponse } from '../answers.ts';
import type { SandboxRoute } from '../routes.ts';

/** A target that was registered. */
export interface RegisteredTarget {
  readonly id: string;
  readonly url: string;
  /** Event names; `*` matches any part of one. */
  readonly events: readonly string[];
  readonly status: 'active';
  readonly created_at: string;
}

/** The stored response for a key that a client may repeat. */
interface Remembered {
  readonly body: string;
  readonly answer: SandboxResponse;
}

const KEYS_MAX = 1_000;

/** Handles registrations. `onNew` is called for each new target. */
export class Registrations {
  readonly #keys = new Map<string, Remembered>();
  readonly #now: () => number;
  readonly #onNew: (registration: RegisteredTarget) => void;

  constructor(now: () => number, onNew: (registration: RegisteredTarget) => void) {
    this.#now = now;
    this.#onNew = onNew;
  }

  /** Answers a registration request. */
  register(ask: SandboxRequest): SandboxResponse {
    const key = ask.headers['idempotency-key'];
    const known = typeof key === 'string' ? this.#keys.get(key) : undefined;
    if (known !== undefined) {
      const message = 'this Idempotency-Key was sent with another body';
      return known.body === ask.body ? known.answer : failed(ask.api, { status: 409, message });
    }
    const requested = requestedBy(ask);
    if ('status' in requested) return requested;
    const registration: RegisteredTarget = {
      id: `wh_${randomUUID().replaceAll('-', '').slice(0, 16)}`,
      ...requested,
      status: 'active',
      created_at: new Date(this.#now()).toISOString(),
    };
    this.#onNew(registration);
    const answer = { ...ok(registration), status: 201 };
    if (typeof key === 'string') this.#remember(key, { body: ask.body, answer });
    return answer;
  }

  #remember(key: string, remembered: Remembered): void {
    this.#keys.set(key, remembered);
    const [oldest] = this.#keys.keys();
    if (this.#keys.size > KEYS_MAX && oldest !== undefined) this.#keys.delete(oldest);
  }
}

/** The endpoint for `registrations`. */
export function webhooksRoute(registrations: Registrations): SandboxRoute {
  return {
    path: '/v1/webhooks',
    method: 'POST',
    scope: 'webhooks:manage',
    about: 'Register a webhook',
    answer: (ask) => registrations.register(ask),
  };
}

function requestedBy(
  ask: SandboxRequest,
): Pick<RegisteredTarget, 'url' | 'events'> | SandboxResponse {
  const wrong = (field: string, message: string) =>
    failed(ask.api, { status: 422, message: `${field} ${message}`, field });
  const body = objectIn(ask.body);
  if (body === null) return failed(ask.api, { status: 400, message: 'the body must be JSON' });
  const { url, events } = body;
  if (typeof url !== 'string' || !/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    return wrong('url', 'must be an http or https address');
  }
  const isNames = Array.isArray(events) && events.every((name) => typeof name === 'string');
  return isNames && events.length > 0
    ? { url, events }
    : wrong('events', 'must be a list of event names');
}

function objectIn(text: string): Readonly<Record<string, unknown>> | null {
  try {
    return Object(JSON.parse(text));
  } catch {
    return null;
  }
}

// Outgoing webhooks: each audit event is delivered to the targets registered for its name, together with or replaced by
// the deliveries of the fault script. Rules for deliveries have the path /webhooks/ and the event's name. A timer
// checks for events, and runs only while there are targets.
import { pathMatches } from '../behaviour.ts';
import type { Faults, SandboxFault } from '../faults.ts';
import type { GrowingList } from '../lists.ts';
import { eventOf, inventedLike, type Signing, type WebhookEvent } from './events.ts';
import { type RegisteredTarget, Registrations } from './registrations.ts';
import { type WebhookDelivery, WebhookSender } from './sender.ts';

/** How webhooks are delivered. */
export interface WebhookOptions {
  /** Default sandbox-webhook-secret. */
  readonly secret?: string;
  /** The header with the time in seconds; the signature then covers `{timestamp}.{body}`. Default none. */
  readonly timestampHeader?: string;
  /** The wait before a second attempt, doubled for each later one, milliseconds. Default 1000. */
  readonly retryMs?: number;
  /** PEM text: the trusted issuers of an https target. */
  readonly ca?: string;
}

/** The inputs of webhooks. */
export interface WebhooksPlan {
  readonly options: WebhookOptions;
  readonly audit: GrowingList;
  readonly faults: () => Faults;
  readonly now: () => number;
}

const LOOK_EVERY_MS = 100;
const STORM = 500;

/** The webhooks of a sandbox. */
export class Webhooks {
  readonly registrations: Registrations;
  readonly #plan: WebhooksPlan;
  readonly #sender: WebhookSender;
  #signing: Signing;
  /** The next audit event to deliver, by registration. */
  readonly #next = new Map<RegisteredTarget, number>();
  #timer: NodeJS.Timeout | undefined;
  #invented = 0;

  constructor(plan: WebhooksPlan) {
    const { options, audit, now } = plan;
    const { secret = 'sandbox-webhook-secret', timestampHeader, retryMs = 1_000, ca } = options;
    this.#plan = plan;
    this.#signing = { secret, timestampHeader };
    this.#sender = new WebhookSender({ signing: () => this.#signing, retryMs, ca, now });
    this.registrations = new Registrations(now, (registration) => {
      this.#next.set(registration, audit.size());
      this.#timer ??= setInterval(() => this.#look(), LOOK_EVERY_MS);
    });
  }

  /** The newest deliveries, oldest first. */
  deliveries(): readonly WebhookDelivery[] {
    return this.#sender.deliveries();
  }

  /** The secret that signs deliveries. */
  secret(): string {
    return this.#signing.secret;
  }

  /** Signs with another secret from the next attempt on. */
  rotateSecret(secret: string): void {
    this.#signing = { ...this.#signing, secret };
  }

  close(): void {
    clearInterval(this.#timer);
    this.#sender.close();
  }

  #look(): void {
    const { audit } = this.#plan;
    const size = audit.size();
    for (const [registration, next] of this.#next) {
      this.#next.set(registration, size);
      for (let index = next; index < size; index += 1) {
        const event = eventOf(audit.textAt(index));
        const requested = registration.events.some((name) => pathMatches(name, event.event));
        if (requested) this.#deliver(registration.url, event);
      }
    }
  }

  #deliver(url: string, event: WebhookEvent): void {
    const asked = { path: `/webhooks/${event.event}`, following: false, delivery: true };
    const fault = this.#plan.faults().next(asked);
    const genuine = { url, event, fault: null, genuine: true };
    if (fault?.kind === 'lost') {
      this.#sender.send({ ...genuine, fault: 'lost' });
    } else if (fault?.kind === 'late') {
      this.#sender.send({ ...genuine, fault: 'late', afterMs: fault.by_s * 1000 });
    } else {
      const { id } = this.#sender.send(genuine);
      if (fault !== null) this.#sendBeside(fault, { url, event, id });
    }
  }

  #sendBeside(
    fault: SandboxFault,
    { url, event, id }: { readonly url: string; readonly event: WebhookEvent; readonly id: string },
  ): void {
    const times = (count = 1) => Array.from({ length: count });
    const invented = () => {
      this.#invented += 1;
      return inventedLike(event, `evt_${fault.kind}_${this.#invented}`);
    };
    const beside = { url, event, fault: fault.kind, genuine: true };
    switch (fault.kind) {
      case 'replayed':
        for (const _ of times(fault.times)) this.#sender.send(beside);
        break;
      case 'redelivered':
        for (const _ of times(fault.times)) this.#sender.send({ ...beside, id });
        break;
      case 'storm':
        for (const _ of times(fault.count ?? STORM)) {
          this.#sender.send({ ...beside, event: invented() });
        }
        break;
      case 'forged': {
        const signing = { ...this.#signing, secret: 'of somebody else' };
        this.#sender.send({ ...beside, event: invented(), genuine: false, signing });
        break;
      }
      case 'unsigned':
        this.#sender.send({ ...beside, event: invented(), genuine: false, signing: null });
        break;
      default:
    }
  }
}

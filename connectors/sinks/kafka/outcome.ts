// A KafkaFailure as the Delivery of a batch, with the next step for the operator. Invariant: a
// failure that is not known to be final is retried.

import { type Delivery, ExportError } from '../../../src/contracts/index.ts';
import { type KafkaFailure, missingIssuerOf } from '../../../src/kafka/index.ts';

/** Context for the messages about a failure. */
export interface FailureContext {
  /** The operation, e.g. `sending to lake`. */
  readonly doing: string;
  readonly topic: string;
  readonly transactionalId?: string | undefined;
  /** True if records have no key, which a compacted topic rejects. */
  readonly keyless: boolean;
}

// The engine retries a sink that rejects everything, and at once when its config changes.
const again = 'it is tried again by itself, and at once when its config changes. Nothing was lost.';

/** The failure as a Delivery. */
export function deliveryOf(
  failure: KafkaFailure,
  context: FailureContext,
): Extract<Delivery, { readonly cause: ExportError }> {
  const { doing, topic, transactionalId } = context;
  const message = `${doing}: ${failure.message}`;
  const because = (code: 'sink_unreachable' | 'sink_refused' | 'record_refused', next: string) =>
    new ExportError(code, message, { next, details: { topic }, cause: failure });
  switch (failure.kind) {
    case 'passing': {
      const coordinator = transactionalId
        ? ` If it lasts, check that the account may use the transactional id ${transactionalId} and its group.`
        : '';
      const next = `Events stay held and are sent when Kafka answers; check the brokers and the network.${coordinator}`;
      return { outcome: 'retry', cause: because('sink_unreachable', next) };
    }
    case 'topic_missing': {
      const next = `Create the topic ${topic}, or allow the account to see it; events stay held until then.`;
      return { outcome: 'retry', cause: because('sink_refused', next) };
    }
    case 'untrusted': {
      const issuer = missingIssuerOf(failure);
      if (issuer !== null) {
        const cause = new ExportError('sink_refused', `${message}: ${issuer.what}`, {
          next: `${issuer.next} Events stay held until then.`,
          details: { topic },
          cause: failure,
        });
        return { outcome: 'retry', cause };
      }
      const next =
        'Check the brokers’ certificate and tls.ca_file, and tls.cert_file if they require a client certificate. Events stay in the spool until then.';
      return { outcome: 'retry', cause: because('sink_refused', next) };
    }
    case 'clock': {
      const next = `Set this machine’s clock right, which is further ahead than message.timestamp.after.max.ms of ${topic} allows; events stay held until then.`;
      return { outcome: 'retry', cause: because('sink_refused', next) };
    }
    case 'records': {
      if (context.keyless && failure.message.includes('INVALID_RECORD')) {
        const next = `If ${topic} is compacted its records need a key: set key: uid; sluice reads the change while it runs. Nothing was lost.`;
        return { outcome: 'refused', scope: 'sink', cause: because('sink_refused', next) };
      }
      const next = `Raise max.message.bytes of ${topic} if it should accept such events, then retry the dead letters.`;
      return { outcome: 'refused', scope: 'batch', cause: because('record_refused', next) };
    }
    case 'denied': {
      const next = `Check sasl and the account’s rights on ${topic}${transactionalId ? ` and the transactional id ${transactionalId}` : ''}; ${again}`;
      return { outcome: 'refused', scope: 'sink', cause: because('sink_refused', next) };
    }
    case 'misfit': {
      const next = `Check topic, compression, timeout and the brokers’ version; ${again}`;
      return { outcome: 'refused', scope: 'sink', cause: because('sink_refused', next) };
    }
    case 'fenced': {
      const next = `Another process took over the transactional id ${transactionalId ?? ''}; let only one use it (a copied state directory, or the same transactional_id twice); ${again}`;
      return { outcome: 'refused', scope: 'sink', cause: because('sink_refused', next) };
    }
  }
}

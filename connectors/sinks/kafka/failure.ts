// What Kafka's errors mean to the engine. A driver turns whatever its client throws into a
// KafkaFailure; here a failure becomes a Delivery, so that the same protocol error has the same
// consequence with every client. What is not known to be final is tried again: an outage, a change
// of leader or a coordinator that is still loading mends itself.

import { ExportError, errorCodeOf } from '../../../src/contracts/errors.ts';
import type { Delivery } from '../../../src/contracts/sink.ts';
import { type MissingIssuer, missingIssuer } from '../../../src/contracts/tls-files.ts';

/**
 * `passing`: no answer, or one that mends itself. `topic_missing`: mends when someone creates the
 * topic. `untrusted`: a certificate is not accepted, the broker's or ours. `records`: these records
 * are refused for good. `clock`: our clock is too far ahead of theirs. `denied`: who we are may not do this. `misfit`: broker and settings do not
 * fit together. `fenced`: someone else uses our transactional id.
 */
export type FailureKind =
  | 'passing'
  | 'topic_missing'
  | 'untrusted'
  | 'records'
  | 'clock'
  | 'denied'
  | 'misfit'
  | 'fenced';

// Names as in the Kafka protocol guide, "Error codes"
// (https://kafka.apache.org/protocol.html#protocol_error_codes).
const kinds: Readonly<Record<string, FailureKind>> = {
  UNKNOWN_TOPIC_OR_PARTITION: 'topic_missing',
  MESSAGE_TOO_LARGE: 'records',
  RECORD_LIST_TOO_LARGE: 'records',
  INVALID_RECORD: 'records',
  INVALID_TIMESTAMP: 'clock',
  TOPIC_AUTHORIZATION_FAILED: 'denied',
  GROUP_AUTHORIZATION_FAILED: 'denied',
  CLUSTER_AUTHORIZATION_FAILED: 'denied',
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 'denied',
  SASL_AUTHENTICATION_FAILED: 'denied',
  UNSUPPORTED_SASL_MECHANISM: 'denied',
  INVALID_TOPIC_EXCEPTION: 'misfit',
  UNSUPPORTED_COMPRESSION_TYPE: 'misfit',
  UNSUPPORTED_VERSION: 'misfit',
  UNSUPPORTED_FOR_MESSAGE_FORMAT: 'misfit',
  INVALID_TRANSACTION_TIMEOUT: 'misfit',
  INVALID_PRODUCER_EPOCH: 'fenced',
  PRODUCER_FENCED: 'fenced',
};

/** What an error that the broker answered with means. */
export function kindOfAnswer(protocolError: string): FailureKind {
  return Object.hasOwn(kinds, protocolError) ? (kinds[protocolError] ?? 'passing') : 'passing';
}

// Node's TLS errors that are about trust: a certificate or a protocol version that one side does
// not accept.
const trustCodes =
  /^(CERT_|ERR_TLS_|ERR_SSL_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH|ERR_OSSL)/;

/** True for an error of Node's about trust in a certificate or about the TLS version. */
export function isTrustCode(code: string | undefined): boolean {
  return code !== undefined && trustCodes.test(code);
}

/** What a broker's certificate lacks, by the code of the failure or of a cause of it; else null. */
export function missingIssuerOf(failure: KafkaFailure): MissingIssuer | null {
  let each: unknown = failure;
  for (let depth = 0; each instanceof Error && depth < 8; depth += 1, each = each.cause) {
    const issuer = missingIssuer(errorCodeOf(each));
    if (issuer !== null) return issuer;
  }
  return null;
}

/** What went wrong between us and Kafka. The message holds no secret. */
export class KafkaFailure extends Error {
  readonly kind: FailureKind;
  /** True when the broker answered: the connection works. */
  readonly answered: boolean;

  constructor(
    kind: FailureKind,
    message: string,
    parts: { readonly answered: boolean; readonly cause?: unknown },
  ) {
    super(message, { cause: parts.cause });
    this.name = 'KafkaFailure';
    this.kind = kind;
    this.answered = parts.answered;
  }
}

/** Of the failures of one attempt, at least one: what does not pass by itself; `answered` where each broker did. */
export function failureOfAll(failures: readonly KafkaFailure[]): KafkaFailure {
  const lasting = failures.find(({ kind }) => kind !== 'passing') ?? failures[0];
  const { kind = 'passing', message = 'no response', cause = undefined } = lasting ?? {};
  const answered = failures.every((failure) => failure.answered);
  return new KafkaFailure(kind, message, { answered, cause });
}

/** What the messages about a failure name. */
export interface FailureContext {
  /** What was being done, e.g. `sending to lake`. */
  readonly doing: string;
  readonly topic: string;
  readonly transactionalId?: string | undefined;
  /** True where records carry no key, which a compacted topic refuses. */
  readonly keyless: boolean;
}

// The engine asks a sink that refuses everything again, and at once when its config changes.
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
        'Check the brokers’ certificate and tls.ca_file, and tls.cert_file if they ask for ours; events stay held until both sides agree.';
      return { outcome: 'retry', cause: because('sink_refused', next) };
    }
    case 'clock': {
      const next = `Set this machine’s clock right, which is further ahead than message.timestamp.after.max.ms of ${topic} allows; events stay held until then.`;
      return { outcome: 'retry', cause: because('sink_refused', next) };
    }
    case 'records': {
      if (context.keyless && failure.message.includes('INVALID_RECORD')) {
        const next = `If ${topic} is compacted its records need a key: set key: uid, which is taken up while sluice runs. Nothing was lost.`;
        return { outcome: 'refused', scope: 'sink', cause: because('sink_refused', next) };
      }
      const next = `Raise max.message.bytes of ${topic} if it should take such events, then retry the dead letters.`;
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

// Kinds of Kafka errors. A driver converts each error of its client into a KafkaFailure, so a protocol error has the
// same consequence with every client. Invariant: an error that is not known to be final is `passing`; an outage, a
// leader change and a loading coordinator end by themselves.

import { errorCodeOf, type MissingIssuer, missingIssuer } from '../contracts/index.ts';

/**
 * `passing`: no response, or a temporary error. `topic_missing`: passes when the topic is created. `untrusted`: the
 * broker's or sluice's certificate is not accepted. `records`: these records are rejected for good. `clock`: the local
 * clock is too far ahead of the broker's. `denied`: the credentials lack a right. `misfit`: broker and settings do not
 * fit together. `fenced`: another producer uses the transactional id.
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

/** The kind of an error in a broker's response. */
export function kindOfAnswer(protocolError: string): FailureKind {
  return Object.hasOwn(kinds, protocolError) ? (kinds[protocolError] ?? 'passing') : 'passing';
}

// Node's TLS errors about trust: one side does not accept a certificate or a protocol version.
const trustCodes =
  /^(CERT_|ERR_TLS_|ERR_SSL_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH|ERR_OSSL)/;

/** True for Node's errors about trust in a certificate, or about the TLS version. */
export function isTrustCode(code: string | undefined): boolean {
  return code !== undefined && trustCodes.test(code);
}

/**
 * The issuer missing from a broker's certificate chain, by the code of the failure or of one of its causes; else null.
 */
export function missingIssuerOf(failure: KafkaFailure): MissingIssuer | null {
  let each: unknown = failure;
  for (let depth = 0; each instanceof Error && depth < 8; depth += 1, each = each.cause) {
    const issuer = missingIssuer(errorCodeOf(each));
    if (issuer !== null) return issuer;
  }
  return null;
}

/** A failure between sluice and Kafka. The message contains no secret. */
export class KafkaFailure extends Error {
  readonly kind: FailureKind;
  /** True if the broker answered: the connection works. */
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

/**
 * The decisive failure of one attempt (at least one failure): a lasting one first. `answered`: every broker answered.
 */
export function failureOfAll(failures: readonly KafkaFailure[]): KafkaFailure {
  const lasting = failures.find(({ kind }) => kind !== 'passing') ?? failures[0];
  const { kind = 'passing', message = 'no response', cause = undefined } = lasting ?? {};
  const answered = failures.every((failure) => failure.answered);
  return new KafkaFailure(kind, message, { answered, cause });
}

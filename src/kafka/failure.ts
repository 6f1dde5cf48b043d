// Kinds of Kafka's errors. A driver turns each error of its client into a KafkaFailure, so the same protocol error has the
// same consequence with every client. An error that is not known to be final is `passing`: an outage, a change of leader and
// a coordinator that is still loading end by themselves.

import { errorCodeOf } from '../contracts/errors.ts';
import { type MissingIssuer, missingIssuer } from '../contracts/tls-files.ts';

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

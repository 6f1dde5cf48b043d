// Kinds of Kafka errors. A driver converts each error of its client into a KafkaFailure, so a protocol error has the
// same consequence with every client. No client is loaded here. Invariant: an error that is not known to be final is `passing`; an outage, a
// leader change and a loading coordinator end by themselves.

import { ExportError, errorCodeOf, type MissingIssuer, missingIssuer } from '../contracts/index.ts';

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
function isTrustCode(code: string | undefined): boolean {
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

// Converts kafkajs's errors into KafkaFailures. It nests errors: the decisive protocol or socket error is somewhere in
// the `cause` chain, or only in a message. The error's name and the protocol error in `type` distinguish them.

// A connection that breaks during authentication is reported as a failed authentication.
const cutWhileAuthenticating = /closed|connection|timed out|timeout|not connected/i;
const fencedCode = 'Unknown error code 90'; // PRODUCER_FENCED is newer than kafkajs's table

/** The failure for `error`; `what`: a prefix of its message. */
export function kafkajsFailure(error: unknown, what?: string): KafkaFailure {
  if (error instanceof KafkaFailure && what === undefined) return error;
  if (error instanceof Error && error.cause instanceof KafkaFailure) return error.cause;
  const chain = [...causes(error)];
  const prefixed = (text: string) => (what === undefined ? text : `${what}: ${text}`);
  const answer = chain.find((each) => typeof each.type === 'string');
  if (answer?.type !== undefined) {
    const name = answer.message.startsWith(fencedCode) ? 'PRODUCER_FENCED' : answer.type;
    const message = prefixed(`Kafka answered ${name} (${answer.message})`);
    return new KafkaFailure(kindOfAnswer(name), message, { answered: true, cause: error });
  }
  const deepest = chain.at(-1);
  const message = prefixed(deepest?.message || deepest?.name || String(error));
  const fail = (kind: KafkaFailure['kind'], answered: boolean) =>
    new KafkaFailure(kind, message, { answered, cause: error });
  if (chain.some(({ code }) => isTrustCode(code))) return fail('untrusted', false);
  const names = new Set(chain.map(({ name }) => name));
  if (names.has('KafkaJSSASLAuthenticationError')) {
    return cutWhileAuthenticating.test(message) ? fail('passing', false) : fail('denied', true);
  }
  return fail(names.has('KafkaJSServerDoesNotSupportApiKey') ? 'misfit' : 'passing', false);
}

interface Cause {
  readonly name: string;
  readonly message: string;
  readonly type?: string;
  readonly code?: string;
}

function* causes(error: unknown): Generator<Cause> {
  for (
    let each = error, depth = 0;
    each instanceof Error && depth < 8;
    each = each.cause ?? firstOf(each), depth++
  ) {
    const { type, code } = each as { readonly type?: unknown; readonly code?: unknown }; // set by kafkajs and Node
    yield {
      name: each.name,
      message: each.message,
      ...(typeof type === 'string' ? { type } : {}),
      ...(typeof code === 'string' ? { code } : {}),
    };
  }
}

/** The first of several errors: the response to a request for topics has one for each. */
function firstOf(error: Error): unknown {
  const { errors } = error as { readonly errors?: unknown };
  return Array.isArray(errors) ? errors[0] : undefined;
}

// Converts errors of @platformatic/kafka into KafkaFailures. An error may contain the errors of all attempts and all
// brokers, each with causes: a tree whose leaves are decisive. The protocol error in `apiId` and the library's codes
// distinguish them.

/** The failure for `error`; `what`: a prefix of its message. */
export function kafkaFailureOf(error: unknown, what?: string): KafkaFailure {
  const failures = [...leaves(error)].map(failureOfLeaf);
  // A lasting failure is more informative than the temporary ones before it.
  const chosen = failures.find(({ kind }) => kind !== 'passing') ?? failures.at(-1);
  if (chosen === undefined) return new KafkaFailure('passing', String(error), { answered: false });
  if (what === undefined) return chosen;
  const { kind, message, answered, cause } = chosen;
  return new KafkaFailure(kind, `${what}: ${message}`, { answered, cause });
}

/** Resolves as the promise; rejects with the failure for its error. */
export async function rejecting<T>(promise: Promise<T>, what?: string): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw kafkaFailureOf(error, what);
  }
}

interface LibraryError extends Error {
  readonly code?: unknown;
  /** For a protocol error: its name, and the broker's message. */
  readonly apiId?: unknown;
  readonly serverErrorMessage?: unknown;
}

function failureOfLeaf(error: LibraryError): KafkaFailure {
  if (error instanceof KafkaFailure) return error;
  if (error instanceof ExportError) {
    // There is no password or token.
    const kind = error.code === 'sink_refused' ? 'denied' : 'passing';
    return new KafkaFailure(kind, error.message, { answered: false, cause: error });
  }
  const { apiId, code, serverErrorMessage } = error;
  if (typeof apiId === 'string') {
    const text = typeof serverErrorMessage === 'string' ? serverErrorMessage : error.message;
    const message = `Kafka answered ${apiId} (${text})`;
    return new KafkaFailure(kindOfAnswer(apiId), message, { answered: true, cause: error });
  }
  const fail = (kind: KafkaFailure['kind'], answered: boolean) =>
    new KafkaFailure(kind, error.message || error.name, { answered, cause: error });
  if (typeof code === 'string' && isTrustCode(code)) return fail('untrusted', false);
  switch (code) {
    case 'PLT_KFK_AUTHENTICATION':
      return fail('denied', true);
    case 'PLT_KFK_UNSUPPORTED_API':
      return fail('misfit', true);
    case 'PLT_KFK_USER': // the library puts it in place of the broker's answer
      return fail(error.message.startsWith('Unknown topic ') ? 'topic_missing' : 'passing', true);
    default:
      return fail('passing', false);
  }
}

function* leaves(error: unknown, depth = 0): Generator<LibraryError> {
  if (!(error instanceof Error) || depth > 12) return;
  const inner: readonly unknown[] = error instanceof AggregateError ? error.errors : [error.cause];
  const found = inner.flatMap((each) => [...leaves(each, depth + 1)]);
  if (found.length === 0 || error instanceof KafkaFailure) yield error;
  else yield* found;
}

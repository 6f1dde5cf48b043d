// Converts errors of @platformatic/kafka into KafkaFailures. An error may contain the errors of all attempts and all
// brokers, each with causes: a tree whose leaves are decisive. No import of the library: the protocol error in `apiId`
// and the library's codes distinguish its errors.

import { ExportError } from '../contracts/index.ts';
import { isTrustCode, KafkaFailure, kindOfAnswer } from './failure.ts';

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

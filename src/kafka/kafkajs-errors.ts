// Converts kafkajs's errors into KafkaFailures. It nests errors: the decisive protocol or socket error is somewhere in
// the `cause` chain, or only in a message. No kafkajs import: the error's name and the protocol error in `type`
// distinguish them.

import { isTrustCode, KafkaFailure, kindOfAnswer } from './failure.ts';

// A connection that breaks during authentication is reported as a failed authentication.
const cutWhileAuthenticating = /closed|connection|timed out|timeout|not connected|let go of/i;
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
    each = each.cause, depth++
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

// What either client throws, and what each failure means to the engine: the whole table, without a broker.

import {
  AuthenticationError,
  MultipleErrors,
  NetworkError,
  ProtocolError,
  UnsupportedApiError,
  UserError,
} from '@platformatic/kafka';
import kafkajs from 'kafkajs';
import { describe, expect, test } from 'vitest';
import { deliveryOf } from '../../../connectors/sinks/kafka/outcome.ts';
import {
  kafkaFailureOf as failureOfPlatformatic,
  KafkaFailure,
  kafkajsFailure,
  kindOfAnswer,
} from '../../../src/kafka/failure.ts';

const { KafkaJSNumberOfRetriesExceeded, KafkaJSProtocolError } = kafkajs;
const context = {
  doing: 'sending to lake',
  topic: 'events',
  transactionalId: 'tx-1',
  keyless: false,
};

function answer(type: string): Error {
  return named('KafkaJSProtocolError', `text of ${type}`, { type });
}

// kafkajs's own types hide the arguments of its constructors, so its errors are built from their distinguishing
// members.
function named(name: string, message: string, parts: object = {}): Error {
  return Object.assign(new Error(message), { name, ...parts });
}

function outcomeOf(error: unknown, { keyless = false, read = kafkajsFailure } = {}): string {
  const delivery = deliveryOf(read(error), { ...context, keyless });
  const scope = delivery.outcome === 'refused' ? ` ${delivery.scope}` : '';
  return `${delivery.outcome}${scope}: ${delivery.cause.code}`;
}

describe('deliveryOf', () => {
  test.each([kafkajsFailure, failureOfPlatformatic])(
    'a broker that sends no intermediate certificate is named as such (%#)',
    (read) => {
      const cause = named('Error', 'unable to verify the first certificate', {
        code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      });

      const { cause: reported, outcome } = deliveryOf(read(cause), context);

      expect(outcome).toBe('retry');
      expect(reported.code).toBe('sink_refused');
      expect(reported.message).toContain('sent no intermediate certificate');
      expect(reported.next).toContain('with the intermediate certificates');
    },
  );

  test.each([
    ['LEADER_NOT_AVAILABLE', 'retry: sink_unreachable'],
    ['NOT_LEADER_FOR_PARTITION', 'retry: sink_unreachable'],
    ['REQUEST_TIMED_OUT', 'retry: sink_unreachable'],
    ['NOT_ENOUGH_REPLICAS', 'retry: sink_unreachable'],
    ['GROUP_LOAD_IN_PROGRESS', 'retry: sink_unreachable'],
    ['CONCURRENT_TRANSACTIONS', 'retry: sink_unreachable'],
    ['OUT_OF_ORDER_SEQUENCE_NUMBER', 'retry: sink_unreachable'],
    ['INVALID_PRODUCER_ID_MAPPING', 'retry: sink_unreachable'],
    ['INVALID_TIMESTAMP', 'retry: sink_refused'],
    ['SOMETHING_OF_TOMORROW', 'retry: sink_unreachable'],
    ['constructor', 'retry: sink_unreachable'],
    ['UNKNOWN_TOPIC_OR_PARTITION', 'retry: sink_refused'],
    ['MESSAGE_TOO_LARGE', 'refused batch: record_refused'],
    ['RECORD_LIST_TOO_LARGE', 'refused batch: record_refused'],
    ['INVALID_RECORD', 'refused batch: record_refused'],
    ['TOPIC_AUTHORIZATION_FAILED', 'refused sink: sink_refused'],
    ['GROUP_AUTHORIZATION_FAILED', 'refused sink: sink_refused'],
    ['CLUSTER_AUTHORIZATION_FAILED', 'refused sink: sink_refused'],
    ['TRANSACTIONAL_ID_AUTHORIZATION_FAILED', 'refused sink: sink_refused'],
    ['SASL_AUTHENTICATION_FAILED', 'refused sink: sink_refused'],
    ['UNSUPPORTED_SASL_MECHANISM', 'refused sink: sink_refused'],
    ['INVALID_TOPIC_EXCEPTION', 'refused sink: sink_refused'],
    ['UNSUPPORTED_COMPRESSION_TYPE', 'refused sink: sink_refused'],
    ['INVALID_TRANSACTION_TIMEOUT', 'refused sink: sink_refused'],
    ['INVALID_PRODUCER_EPOCH', 'refused sink: sink_refused'],
    ['PRODUCER_FENCED', 'refused sink: sink_refused'],
  ])('%s is %s', (type, outcome) => {
    expect(outcomeOf(answer(type))).toBe(outcome);
  });

  test('INVALID_RECORD of records without key stops the sink: a compacted topic refuses them all', () => {
    expect(outcomeOf(answer('INVALID_RECORD'), { keyless: true })).toBe(
      'refused sink: sink_refused',
    );
  });

  test.each([
    ['TOPIC_AUTHORIZATION_FAILED', false],
    ['INVALID_TOPIC_EXCEPTION', false],
    ['PRODUCER_FENCED', false],
    ['INVALID_RECORD', true],
  ])('%s requires no restart, since the engine tries again', (type, keyless) => {
    const { cause } = deliveryOf(kafkajsFailure(answer(type)), { ...context, keyless });

    expect(cause.next).toMatch(/(tried again by itself|reads the change while it runs).*lost\.$/);
    expect(cause.next).not.toMatch(/restart/);
  });

  test('a fenced producer names the transactional id and says that someone took over', () => {
    const { cause } = deliveryOf(kafkajsFailure(answer('INVALID_PRODUCER_EPOCH')), context);

    expect(cause.next).toMatch(/another process took over the transactional id tx-1/i);
  });

  test('a message names the action and Kafka’s response', () => {
    const { cause } = deliveryOf(kafkajsFailure(answer('MESSAGE_TOO_LARGE')), context);

    expect(cause.message).toBe(
      'sending to lake: Kafka answered MESSAGE_TOO_LARGE (text of MESSAGE_TOO_LARGE)',
    );
  });
});

describe('failureOf kafkajs', () => {
  test('finds the broker’s response inside the errors of kafkajs', () => {
    const protocol = Object.assign(new KafkaJSProtocolError(answer('MESSAGE_TOO_LARGE')), {
      type: 'MESSAGE_TOO_LARGE',
    });
    const exceeded = new KafkaJSNumberOfRetriesExceeded(protocol, { retryCount: 5, retryTime: 1 });
    const wrapped = named('KafkaJSNonRetriableError', 'wrapped', { cause: exceeded });

    expect(outcomeOf(wrapped)).toBe('refused batch: record_refused');
  });

  test('names the right that the creation of topics needs, an error for each topic', () => {
    const errors = [answer('TOPIC_AUTHORIZATION_FAILED')];
    const all = named('KafkaJSAggregateError', 'Topic creation errors', { errors });

    expect(outcomeOf(all)).toBe('refused sink: sink_refused');
    expect(kafkajsFailure(all).message).toContain('TOPIC_AUTHORIZATION_FAILED');
  });

  test('knows PRODUCER_FENCED, which kafkajs does not', () => {
    const unknown = Object.assign(new Error('Unknown error code 90'), {
      type: 'KAFKAJS_UNKNOWN_ERROR_CODE',
    });

    expect(kafkajsFailure(unknown).kind).toBe('fenced');
  });

  test.each(['CERT_HAS_EXPIRED', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'])(
    'TLS error %s is tried again, and says that the certificate is not accepted',
    (code) => {
      const error = named('KafkaJSConnectionError', 'Connection error: no', { code });

      expect(outcomeOf(error)).toBe('retry: sink_refused');
    },
  );

  test('a connection that breaks during authentication is no wrong password', () => {
    const cut = named(
      'KafkaJSSASLAuthenticationError',
      'SASL SCRAM SHA256 authentication failed: Closed connection',
    );
    const wrong = named(
      'KafkaJSSASLAuthenticationError',
      'SASL SCRAM SHA256 authentication failed: Authentication failed due to invalid credentials',
    );

    expect(outcomeOf(cut)).toBe('retry: sink_unreachable');
    expect(outcomeOf(wrong)).toBe('refused sink: sink_refused');
  });

  test.each([['text'], [undefined], [new TypeError('of kafkajs')]])(
    'anything else, here %s, is tried again',
    (error) => {
      expect(outcomeOf(error)).toBe('retry: sink_unreachable');
    },
  );

  test('leaves a failure as it is', () => {
    const failure = new KafkaFailure('denied', 'no', { answered: true });

    expect(kafkajsFailure(failure)).toBe(failure);
    expect(kindOfAnswer('MESSAGE_TOO_LARGE')).toBe('records');
  });
});

describe('failureOf platformatic', () => {
  const read = failureOfPlatformatic;
  const refused = new ProtocolError('SASL_AUTHENTICATION_FAILED', 'invalid credentials');
  const cut = new NetworkError('Connection closed');
  const connecting = (cause: Error) => new NetworkError('Connection to k1:9092 failed.', { cause });

  test.each([
    ['an answer', new ProtocolError('MESSAGE_TOO_LARGE'), 'refused batch: record_refused'],
    ['fencing', new ProtocolError('PRODUCER_FENCED'), 'refused sink: sink_refused'],
    ['a missing topic', new UserError('Unknown topic events.'), 'retry: sink_refused'],
    [
      'a wrong password',
      connecting(new AuthenticationError('SASL authentication failed.', { cause: refused })),
      'refused sink: sink_refused',
    ],
    [
      'a lie about the password',
      connecting(new AuthenticationError('Invalid server signature.')),
      'refused sink: sink_refused',
    ],
    [
      'a connection that breaks during authentication',
      connecting(new AuthenticationError('SASL authentication failed.', { cause: cut })),
      'retry: sink_unreachable',
    ],
    [
      'a certificate',
      connecting(named('Error', 'self-signed', { code: 'SELF_SIGNED_CERT_IN_CHAIN' })),
      'retry: sink_refused',
    ],
    ['a broker that is too old', new UnsupportedApiError('no'), 'refused sink: sink_refused'],
    [
      'an answer that is not known yet',
      named('Error', 'x', { apiId: 'NEW' }),
      'retry: sink_unreachable',
    ],
    ['nothing', undefined, 'retry: sink_unreachable'],
  ])('%s', (_, error, outcome) => {
    expect(outcomeOf(error, { read })).toBe(outcome);
  });

  test('among attempts and brokers finds the one that says most', () => {
    const attempts = new MultipleErrors('produce failed 3 times.', [
      cut,
      new MultipleErrors('Producing messages failed.', [new ProtocolError('INVALID_RECORD'), cut]),
      cut,
    ]);

    expect(outcomeOf(attempts, { read })).toBe('refused batch: record_refused');
    expect(
      read(new MultipleErrors('x', [cut, connecting(new Error('ECONNREFUSED'))])).message,
    ).toBe('ECONNREFUSED');
  });

  test('keeps the error it has read, and puts the action before it', () => {
    const failure = new KafkaFailure('denied', 'no', { answered: true });

    expect(read(failure)).toBe(failure);
    expect(read(new UserError('again', { cause: failure }), 'committing')).toMatchObject({
      kind: 'denied',
      message: 'committing: no',
      answered: true,
    });
  });
});

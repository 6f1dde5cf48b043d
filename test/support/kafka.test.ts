// That the Kafka started for the tests is a whole one: transactions count, the protected listeners
// check who comes, a broker survives a crash with its records, and that `consumeAll` sees
// exactly what a consumer may see.
import { Kafka, type KafkaConfig, logLevel } from 'kafkajs';
import { describe, expect, test } from 'vitest';
import { makeCa, makeUntrustedCa } from './certificates.ts';
import {
  consumeAll,
  createTopic,
  kafkaAccount,
  kafkaBrokers,
  newTopic,
  sharedKafka,
  startKafka,
} from './kafka.ts';

function client(config: KafkaConfig): Kafka {
  return new Kafka({
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 50, retries: 8 },
    ...config,
  });
}

async function produce(config: KafkaConfig, topic: string, values: readonly string[]) {
  const producer = client(config).producer();
  await producer.connect();
  try {
    await producer.send({ topic, messages: values.map((value) => ({ value })) });
  } finally {
    await producer.disconnect();
  }
}

const ownBroker = 'KAFKA_BROKERS names a broker whose accounts and certificates are not known here';
const valuesOf = (records: readonly { readonly value: string }[]) => records.map((it) => it.value);

describe('shared Kafka', () => {
  test('shows committed records only, except to readers of uncommitted ones', async () => {
    const topic = await newTopic('transactions', { partitions: 2 });
    const producer = client({ brokers: [...(await kafkaBrokers())] }).producer({
      transactionalId: topic,
      maxInFlightRequests: 1,
      idempotent: true,
    });
    await producer.connect();
    const send = async (value: string, partition: number) => {
      const transaction = await producer.transaction();
      await transaction.send({ topic, messages: [{ value, partition, key: 'k' }] });
      return transaction;
    };

    await (await send('committed 1', 0)).commit();
    await (await send('aborted', 0)).abort();
    await (await send('committed 2', 1)).commit();
    await (await send('aborted at the end', 1)).abort();
    await producer.disconnect();

    const committed = await consumeAll(topic, { until: 2 });
    expect(valuesOf(committed).toSorted()).toEqual(['committed 1', 'committed 2']);
    const all = await consumeAll(topic, { isolation: 'read_uncommitted' });
    expect(all).toHaveLength(4);
  });

  test('gives back key, headers, partition and offset', async () => {
    const topic = await newTopic('parts');
    const producer = client({ brokers: [...(await kafkaBrokers())] }).producer();
    await producer.connect();

    await producer.send({
      topic,
      messages: [
        { key: null, value: 'no key' },
        {
          key: 'k',
          value: 'ü',
          headers: { uid: 'u-1', source: 'audit' },
          timestamp: '1767323045123',
        },
      ],
    });
    await producer.disconnect();

    const [first, second] = await consumeAll(topic);
    expect(first).toMatchObject({ partition: 0, offset: 0n, key: null, headers: {} });
    expect(second).toEqual({
      partition: 0,
      offset: 1n,
      key: 'k',
      value: 'ü',
      headers: { uid: 'u-1', source: 'audit' },
      timestampMs: 1_767_323_045_123,
    });
  });

  test('consumeAll names the missing records when it waits in vain', async () => {
    const topic = await newTopic('empty');

    const reading = consumeAll(topic, { until: 1, timeoutMs: 300 });

    await expect(reading).rejects.toThrow('to hold what the test waits for; 0 records read');
  });

  const accounts = [
    { mechanism: 'plain', ...kafkaAccount },
    { mechanism: 'scram-sha-256', ...kafkaAccount },
    { mechanism: 'scram-sha-512', ...kafkaAccount },
  ] as const;
  test.for(accounts)(
    'takes the account by $mechanism, with and without TLS',
    async (account, { skip }) => {
      const sasl = () => ({ ...account }); // kafkajs writes its authenticator into the object
      const listeners = (await sharedKafka()).protected;
      if (listeners === null) return skip(ownBroker);
      const { ca } = await makeCa();
      const topic = await newTopic('sasl');

      await produce({ brokers: [listeners.sasl], sasl: sasl() }, topic, ['sasl']);
      const both = { brokers: [listeners.saslTls], sasl: sasl(), ssl: { ca } };
      await produce(both, topic, ['sasl over tls']);
      const wrong = { ...sasl(), password: 'wrong' };
      const refused = produce({ brokers: [listeners.sasl], sasl: wrong }, topic, ['refused']);

      await expect(refused).rejects.toThrow();
      expect(valuesOf(await consumeAll(topic))).toEqual(['sasl', 'sasl over tls']);
    },
  );

  test('speaks TLS, takes a client certificate, and refuses one of another authority', async ({
    skip,
  }) => {
    const listeners = (await sharedKafka()).protected;
    if (listeners === null) return skip(ownBroker);
    const { ca, client: own } = await makeCa();
    const { client: foreign } = await makeUntrustedCa();
    const topic = await newTopic('tls');
    const brokers = [listeners.tls];

    await produce({ brokers, ssl: { ca } }, topic, ['tls']);
    await produce({ brokers, ssl: { ca, cert: own.cert, key: own.key } }, topic, ['mutual tls']);
    const { cert, key } = foreign;
    const refused = produce({ brokers, ssl: { ca, cert, key } }, topic, ['refused']);

    await expect(refused).rejects.toThrow();
    expect(valuesOf(await consumeAll(topic))).toEqual(['tls', 'mutual tls']);
  });
});

describe('startKafka', () => {
  // Stopping in order is tried by the Kafka sink's tests: each start takes its seconds.
  test('keeps records, ports and settings over a crash', async () => {
    const broker = await startKafka({ settings: { 'message.max.bytes': '2000' } });
    const brokers = [broker.addresses.plain];
    await createTopic(brokers, 'kept', { settings: { 'retention.ms': '-1' } });

    await produce({ brokers }, 'kept', ['before the crash']);
    await broker.kill();
    await expect(produce({ brokers, retry: { retries: 0 } }, 'kept', ['lost'])).rejects.toThrow();
    await broker.start();
    await produce({ brokers }, 'kept', ['after it']);
    const tooLarge = produce({ brokers }, 'kept', ['x'.repeat(5000)]);

    await expect(tooLarge).rejects.toThrow(/max message size/);
    const records = await consumeAll('kept', { brokers, until: 2 });
    expect(valuesOf(records)).toEqual(['before the crash', 'after it']);
  });
});
